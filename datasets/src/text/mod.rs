//! From lines of text to token ids: normalisation, sub-words, vocabulary.

pub mod bpe;
pub mod counts;
pub mod english;
mod file;
mod merges;
pub mod moses;
pub mod sentencepiece;
pub mod vocabulary;

use std::path::{Path, PathBuf};

pub use file::open_text;
pub(crate) use file::{decode_utf8, not_utf8};

use zoo_recipes::untrusted::hint_or;

/// What can go wrong with text and the files that describe how to treat it.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A file could not be read or written.
    #[error("{}: {source}\nhint: {}", file.display(), hint_or(source, "check that the file exists and that you may use it"))]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of a file is not what it should be.
    #[error("{}:{line}: {problem}\nhint: {hint}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
        /// What to do next.
        hint: String,
    },
    /// A file that holds a model is not one that can be used.
    #[error("{}: {problem}\nhint: {hint}", file.display())]
    Model {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do next.
        hint: String,
    },
    /// A normalisation step has no rules for a language.
    #[error(
        "{step} has no rules for the language `{language}`\nhint: it knows {known}; leave the step out or prepare the text beforehand"
    )]
    Language {
        /// The step.
        step: &'static str,
        /// The language code that was asked for.
        language: String,
        /// The codes there are.
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
