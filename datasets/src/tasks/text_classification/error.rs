//! Why the texts of a recipe cannot be used.

use std::path::PathBuf;

use crate::corpora::CorpusError;

/// A recipe's texts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelledTextError {
    /// The corpus is damaged, or a file of the recipe cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The corpus has no labelled texts.
    #[error("the split {split} has no labelled texts\nhint: the corpus has no classes; see `zoo list`")]
    NoTexts {
        /// Name of the split.
        split: String,
    },
    /// The reader has no such split.
    #[error("the reader has no split {split}\nhint: it has {known}")]
    UnknownSplit {
        /// Name of the split.
        split: String,
        /// The splits that there are.
        known: String,
    },
    /// The data has another number of classes than the recipe.
    #[error(
        "{split} has {found} classes, `data.classes` is {expected}\nhint: data.classes = {found}, and as many outputs of the model"
    )]
    Classes {
        /// Name of the split.
        split: String,
        /// Classes of the data.
        found: usize,
        /// Classes of the recipe.
        expected: u32,
    },
    /// An evaluation set has a class that training does not have.
    #[error(
        "{split} has the class {class}, which no training text has\nhint: rename the class, or leave its texts out"
    )]
    UnknownClass {
        /// Name of the split.
        split: String,
        /// Name of the class.
        class: String,
    },
    /// An evaluation set has another number of texts than the recipe says.
    #[error(
        "the evaluation set {set} has {found} texts, expected {expected}\nhint: another version of the set; scores on it are not comparable"
    )]
    Count {
        /// Name of the evaluation set.
        set: String,
        /// Texts found.
        found: usize,
        /// Texts expected.
        expected: u32,
    },
    /// There is nothing to train on.
    #[error(
        "{split} has {texts} texts, and a batch has {batch}\nhint: data.batching.texts, or data.batching.remainder = \"short\""
    )]
    NoBatch {
        /// Name of the split.
        split: String,
        /// Its texts.
        texts: usize,
        /// Texts of a batch.
        batch: usize,
    },
    /// The held-out part leaves nothing to train on.
    #[error(
        "`data.held_out` takes {asked} of {texts} training texts\nhint: data.held_out.texts must be fewer"
    )]
    HeldOut {
        /// Texts of the part.
        asked: u32,
        /// Training texts.
        texts: usize,
    },
    /// The words or classes that a run keeps cannot be written or read.
    #[error("{}: {reason}\nhint: remove the folder it is in; the training texts are then read again", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The thread that makes batches ended early.
    #[error(transparent)]
    Thread(#[from] crate::batches::ThreadEnded),
}
