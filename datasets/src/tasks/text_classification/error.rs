//! Why the texts of a recipe cannot be used.

use std::path::PathBuf;

use crate::corpora::CorpusError;
use crate::set_size::SetSizeError;

/// A recipe's texts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelledTextError {
    /// The corpus is damaged, or a file of the recipe cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The corpus has no labelled texts.
    #[error(
        "the split {split} has no labelled texts\nhint: name a corpus with classes: imdb, trec, mr, subj, cr or mpqa"
    )]
    NoTexts {
        /// Name of the split.
        split: String,
    },
    /// An evaluation set names a split that the reader does not have.
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
    /// An evaluation set does not have the size that the recipe states.
    #[error(transparent)]
    EvalSet(#[from] SetSizeError),
    /// The words are those of a language model, and none are given.
    #[error(
        "the words of a language model are needed, and there are none\nhint: train the recipe of `train.transfer`, or name its run: --init-from RUN"
    )]
    NoWords,
    /// The words of a language model lack the word for those that it does not know.
    #[error(
        "the language model does not have the word {unknown:?}\nhint: `data.tokenizer.unknown` is its word for those that it lacks"
    )]
    NoUnknown {
        /// The word.
        unknown: String,
    },
    /// The training texts do not fill a batch, and incomplete batches are dropped.
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
    #[error("{}: {reason}\nhint: restore the file, or train again", path.display())]
    Kept {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The thread that makes batches ended early.
    #[error(transparent)]
    Thread(#[from] crate::batches::ThreadEnded),
}
