//! What can go wrong while data is prepared.

use std::path::{Path, PathBuf};

use zoo_recipes::untrusted::hint_or;

use crate::readers::parallel_text::ReadError;
use crate::text::TextError;
use crate::text::sentencepiece::TrainerError;

/// An error of preparing or loading prepared data.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Text or one of its files.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The text of a split cannot be read.
    #[error(transparent)]
    Read(Box<ReadError>),
    /// No SentencePiece model can be learnt.
    #[error("data.tokenizer: {0}")]
    Trainer(#[from] TrainerError),
    /// A model has another number of pieces than the recipe says.
    #[error(
        "{}: it gives {found} rows with the four special tokens, data.tokenizer.pieces says {expected}\nhint: set data.tokenizer.pieces = {found}, or give the model that is meant", file.display()
    )]
    Pieces {
        /// The model.
        file: PathBuf,
        /// Rows that it gives.
        found: usize,
        /// Rows that the recipe says.
        expected: u32,
    },
    /// Prepared text is not what was published.
    #[error(
        "split `{split}`, {file}: its MD5 is {found}, {by} published {published}\nhint: the text, its order or a step differs from theirs; another tokenizer in the recipe is not compared, and its scores are not theirs"
    )]
    NotAsPublished {
        /// The split.
        split: String,
        /// Language, or `raw.` and the language.
        file: String,
        /// MD5 of what was prepared.
        found: String,
        /// MD5 that was published.
        published: String,
        /// Who published it.
        by: String,
    },
    /// More lines than indices.
    #[error("split `{0}`: it has more than 2^32 pairs\nhint: use a part of it")]
    TooManyLines(String),
    /// A file or folder could not be read or written.
    #[error("{}: {source}\nhint: {}", path.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An evaluation set that is to be scored is not in one language.
    #[error(
        "data.eval.{set}: it is in {targets} together\nhint: add an evaluation set of its split for each, with its `target`"
    )]
    Languages {
        /// The evaluation set.
        set: String,
        /// The target languages.
        targets: String,
    },
    /// A split that the recipe uses has no text.
    #[error("there is no split `{split}`, which {user} uses\nhint: the splits are {known}")]
    MissingSplit {
        /// The split.
        split: String,
        /// What needs it.
        user: String,
        /// The splits there are.
        known: String,
    },
    /// Nothing is left to train on.
    #[error("split `{split}`: 0 of {read} training examples are left\nhint: check the files and data.filter")]
    NothingToTrainOn {
        /// The split.
        split: String,
        /// Pairs that were read.
        read: u64,
    },
    /// The two sides of a split differ in length.
    #[error(
        "split `{split}`: {source_lines} source and {target_lines} target lines\nhint: line i of one must be the translation of line i of the other"
    )]
    LineCounts {
        /// The split.
        split: String,
        /// Lines of the source.
        source_lines: usize,
        /// Lines of the target.
        target_lines: usize,
    },
    /// An evaluation set is not the one that the recipe means.
    #[error(
        "data.eval.{set}: its split `{split}` has {found} {what}, the recipe says {expected}\nhint: another version of the set is not comparable; check the corpus and its version"
    )]
    EvalSet {
        /// The set.
        set: String,
        /// Its split.
        split: String,
        /// Lines or reference tokens.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: u32,
    },
    /// A tokenizer that cannot be made.
    #[error("{what} is not available yet\nhint: {hint}")]
    Unavailable {
        /// What was asked for.
        what: &'static str,
        /// What to do next.
        hint: &'static str,
    },
    /// A split's name cannot be a file's name.
    #[error(
        "split `{0}`: a name is letters, digits, `_`, `-` and `.`, and does not begin with `.`\nhint: rename the split"
    )]
    SplitName(String),
    /// A prepared file is not what was written.
    #[error("{}: {problem}\nhint: remove the folder {}; it is made again from the text", file.display(), folder.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
        /// The prepared folder.
        folder: PathBuf,
    },
    /// A prepared folder belongs to other settings.
    #[error("{}: prepared with other settings ({what})\nhint: remove the folder or give another one", folder.display())]
    OtherSettings {
        /// The prepared folder.
        folder: PathBuf,
        /// What differs.
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
