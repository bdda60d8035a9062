//! Files that cannot be compared.

/// Reason why a file cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AlignError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Read {
        /// Name of the file.
        file: String,
        source: std::io::Error,
    },
    /// The file does not have the layout of `docs/align.md`.
    #[error("`{file}`: {problem}\nhint: docs/align.md describes the layout")]
    Layout {
        /// Name of the file.
        file: String,
        /// Description of the problem.
        problem: String,
    },
}
