//! From lines of text to token ids: normalisation, sub-words, vocabulary.

pub mod bpe;
pub mod counts;
pub mod english;
mod file;
pub mod kept_units;
pub mod keras;
pub mod kim;
mod merges;
pub mod moses;
pub mod reviews;
pub mod sentencepiece;
pub mod treebank;
pub mod vocabulary;

use std::path::{Path, PathBuf};

pub use file::open_text;
pub(crate) use file::{decode_utf8, not_utf8};

use zoo_recipes::untrusted::hint_or;

/// Errors of text, and of the files that define its treatment.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A file could not be read or written.
    #[error("{}: {source}\nhint: {}", file.display(), hint_or(source, "check that the file exists and that you may use it"))]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A line of a file is not valid.
    #[error("{}:{line}: {problem}\nhint: {hint}", file.display())]
    Malformed {
        /// Path of the file.
        file: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with the line.
        problem: String,
        /// Hint for the user.
        hint: String,
    },
    /// A file does not hold a usable model.
    #[error("{}: {problem}\nhint: {hint}", file.display())]
    Model {
        /// Path of the file.
        file: PathBuf,
        /// What is wrong with the model.
        problem: String,
        /// Hint for the user.
        hint: String,
    },
    /// A normalisation step has no rules for a language.
    #[error(
        "{step} has no rules for the language `{language}`\nhint: it knows {known}; leave the step out or prepare the text beforehand"
    )]
    Language {
        /// Name of the step.
        step: &'static str,
        /// The requested language code.
        language: String,
        /// The known language codes.
        known: &'static str,
    },
}

impl TextError {
    pub(crate) fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io { file: file.to_path_buf(), source }
    }

    pub(crate) fn malformed(
        file: &Path,
        line: usize,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Malformed { file: file.to_path_buf(), line, problem: problem.into(), hint: hint.into() }
    }
}
