//! Error rates: alignment, counting and display of the edits that turn references into hypotheses.

mod error_rate;
mod error_report;
mod levenshtein;
mod options;

pub use error_rate::{Alignment, CER, EditCounts, Step, WER, read_characters, read_words};
pub use error_report::{ErrorReport, LengthClass, Utterance};
pub use levenshtein::Edit;
pub use options::{ErrorRateOptions, ErrorUnit, Whitespace};
