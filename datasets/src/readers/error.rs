//! Errors of reading parallel text.

use std::path::PathBuf;

use crate::corpora::CorpusError;
use crate::text::TextError;

/// Errors of reading parallel text.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be read or is not text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A file has no lines.
    #[error("{}: the file is empty\nhint: check the path and that the download or export was complete", file.display())]
    Empty {
        /// Path of the file.
        file: PathBuf,
    },
    /// The two sides have different numbers of lines.
    #[error("{}:{line}: the file ends here, but {} has {other_lines} lines\nhint: line i of one file must say the same as line i of the other", file.display(), other.display())]
    LineCounts {
        /// Path of the shorter file.
        file: PathBuf,
        /// Number of the shorter file's last line.
        line: usize,
        /// Path of the longer file.
        other: PathBuf,
        /// Number of lines of the longer file.
        other_lines: usize,
    },
    /// A corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A split cannot be generated.
    #[error("reader `{reader}`: {problem}\nhint: {hint}")]
    Generated {
        /// Kind of the reader.
        reader: &'static str,
        /// What is wrong with its settings.
        problem: String,
        /// Hint for the user.
        hint: &'static str,
    },
    /// The source of a split's text is not specified.
    #[error("no text for the split `{split}`: {problem}\nhint: {hint}")]
    NoText {
        /// Name of the split.
        split: String,
        /// What is missing.
        problem: String,
        /// Hint for the user.
        hint: &'static str,
    },
}
