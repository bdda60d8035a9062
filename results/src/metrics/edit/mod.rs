//! Error rates: alignment, counting and display of the edits that turn references into hypotheses.

pub mod error_rate;
pub mod error_report;
pub mod levenshtein;
mod options;

pub use error_rate::{CER, WER};
pub use options::{ErrorRateOptions, ErrorUnit, Whitespace};
