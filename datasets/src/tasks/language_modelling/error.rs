//! Why the text of a recipe cannot be used.

use std::path::PathBuf;

use crate::batches::ThreadEnded;
use crate::corpora::CorpusError;
use crate::set_size::SetSizeError;

/// A recipe's text cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LanguageDataError {
    /// The corpus is damaged.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A file cannot be read.
    #[error("read {}: {source}{}", .file.display(), zoo_recipes::untrusted::hint_line(.source))]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Error of the file system; also of a text that is not UTF-8.
        source: std::io::Error,
    },
    /// A text is larger than the limit.
    #[error(
        "{} has more than {limit} bytes, the most that a text may have\nhint: cut it into smaller files", .file.display()
    )]
    TooLarge {
        /// Path of the file.
        file: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The corpus has no such text.
    #[error("the split {split} has no plain text\nhint: the corpus is not one of text lines; see `zoo list`")]
    NoText {
        /// Name of the split.
        split: String,
    },
    /// There is no such split.
    #[error("the text has no split {split}\nhint: it has {known}")]
    UnknownSplit {
        /// Name of the split.
        split: String,
        /// The splits that there are.
        known: String,
    },
    /// The text has another number of units than the recipe says.
    #[error(
        "the text has {found} different units, `data.vocabulary.size` is {expected}\nhint: data.vocabulary.size = {found}"
    )]
    Vocabulary {
        /// Units of the text.
        found: usize,
        /// Units of the recipe.
        expected: u32,
    },
    /// A unit is not in the vocabulary, and no other unit stands for it.
    #[error(
        "line {line} of the split {split} has {unit:?}, which is not in the vocabulary\nhint: data.vocabulary.of = \"all\", or for words data.unit.unknown = \"<unk>\""
    )]
    UnknownUnit {
        /// Name of the split.
        split: String,
        /// Number of the line, from 1.
        line: usize,
        /// The unit.
        unit: String,
    },
    /// The word for unknown words is not in the vocabulary.
    #[error(
        "the training text does not have the word {unknown:?}, which `data.unit.unknown` names\nhint: add the word to the text in place of rare words, or leave out `unknown`"
    )]
    NoUnknown {
        /// The word.
        unknown: String,
    },
    /// A list of words lacks one that the recipe needs.
    #[error(
        "the vocabulary's list does not have the word {word:?}, which `data.unit` names\nhint: add a line with it to the list"
    )]
    NotListed {
        /// The word.
        word: String,
    },
    /// An evaluation set does not have the size that the recipe states.
    #[error(transparent)]
    EvalSet(#[from] SetSizeError),
    /// A text is too short for its windows.
    #[error(
        "{split} has {units} units, too few for {rows} rows of {steps} and one more each\nhint: fewer rows or steps in `data.batching` or in the set's `windows`"
    )]
    TooShort {
        /// Name of the split.
        split: String,
        /// Units of the split.
        units: usize,
        /// Rows of a batch.
        rows: usize,
        /// Steps that a row needs.
        steps: usize,
    },
    /// The units that a run keeps cannot be written or read.
    #[error("{}: {reason}\nhint: restore the file, or train again", path.display())]
    Kept {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The thread that makes batches ended early.
    #[error(transparent)]
    Thread(#[from] ThreadEnded),
}
