//! Tables of verdicts in four formats, and the generated part of the README.
