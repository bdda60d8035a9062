//! Errors of preparing data.

use std::path::{Path, PathBuf};

use zoo_recipes::untrusted::hint_or;

use crate::readers::ReadError;
use crate::set_size::SetSizeError;
use crate::text::TextError;
use crate::text::sentencepiece::TrainerError;

/// An error of preparing or loading prepared data.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A text or a file of the text treatment is not valid.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The text of a split cannot be read.
    #[error(transparent)]
    Read(Box<ReadError>),
    /// A SentencePiece model cannot be learnt.
    #[error("data.tokenizer: {0}")]
    Trainer(#[from] TrainerError),
    /// A model's number of pieces differs from the recipe's.
    #[error(
        "{}: it gives {found} rows with the four special tokens, data.tokenizer.pieces says {expected}\nhint: set data.tokenizer.pieces = {found}, or give the model that is meant", file.display()
    )]
    Pieces {
        /// Path of the model.
        file: PathBuf,
        /// Number of rows that the model gives.
        found: usize,
        /// Number of rows in the recipe.
        expected: u32,
    },
    /// Prepared text differs from the published text.
    #[error(
        "split `{split}`, {file}: its MD5 is {found}, {by} published {published}\nhint: the text, its order or a step differs from theirs; another tokenizer in the recipe is not compared, and its scores are not theirs"
    )]
    NotAsPublished {
        /// Name of the split.
        split: String,
        /// Language, or `raw.` and the language.
        file: String,
        /// MD5 of the prepared text.
        found: String,
        /// Published MD5.
        published: String,
        /// Publisher of the MD5.
        by: String,
    },
    /// A split has more lines than an index can number.
    #[error("split `{0}`: it has more than 2^32 pairs\nhint: use a part of it")]
    TooManyLines(String),
    /// A file or folder could not be read or written.
    #[error("{}: {source}\nhint: {}", path.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// An evaluation set to be scored has several target languages.
    #[error(
        "data.eval.{set}: it is in {targets} together\nhint: add an evaluation set of its split for each, with its `target`"
    )]
    Languages {
        /// Name of the evaluation set.
        set: String,
        /// Its target languages.
        targets: String,
    },
    /// A split that the recipe uses has no text.
    #[error("there is no split `{split}`, which {user} uses\nhint: the splits are {known}")]
    MissingSplit {
        /// Name of the split.
        split: String,
        /// Setting that needs the split.
        user: String,
        /// The known splits.
        known: String,
    },
    /// The training split has no pairs left.
    #[error("split `{split}`: 0 of {read} training examples are left\nhint: check the files and data.filter")]
    NothingToTrainOn {
        /// Name of the split.
        split: String,
        /// Number of pairs that were read.
        read: u64,
    },
    /// The two sides of a split have different numbers of lines.
    #[error(
        "split `{split}`: {source_lines} source and {target_lines} target lines\nhint: line i of one must be the translation of line i of the other"
    )]
    LineCounts {
        /// Name of the split.
        split: String,
        /// Number of source lines.
        source_lines: usize,
        /// Number of target lines.
        target_lines: usize,
    },
    /// An evaluation set does not have the size that the recipe states.
    #[error(transparent)]
    EvalSet(#[from] SetSizeError),
    /// The tokenizer cannot be made.
    #[error("{what} is not available yet\nhint: {hint}")]
    Unavailable {
        /// The requested treatment.
        what: &'static str,
        /// Hint for the user.
        hint: &'static str,
    },
    /// A split's name is not valid as a file name.
    #[error(
        "split `{0}`: a name is letters, digits, `_`, `-` and `.`, and does not begin with `.`\nhint: rename the split"
    )]
    SplitName(String),
    /// A prepared file differs from the one that was written.
    #[error("{}: {problem}\nhint: remove the folder {}; it is made again from the text", file.display(), folder.display())]
    Damaged {
        /// Name of the file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
        /// Path of the prepared folder.
        folder: PathBuf,
    },
    /// A file that a run kept cannot be written or read, or was changed.
    #[error("{}: {problem}\nhint: restore it; the model was trained with what it held", file.display())]
    Kept {
        /// Path of the file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A prepared folder was made with other settings.
    #[error("{}: prepared with other settings ({what})\nhint: remove the folder or give another one", folder.display())]
    OtherSettings {
        /// Path of the prepared folder.
        folder: PathBuf,
        /// The settings that differ.
        what: String,
    },
}

impl From<ReadError> for PrepareError {
    fn from(error: ReadError) -> Self {
        Self::Read(Box::new(error))
    }
}

impl PrepareError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }
}
