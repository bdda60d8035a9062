//! Why the pictures of a recipe cannot be used.

use std::path::PathBuf;

use crate::corpora::CorpusError;
use crate::image::{FolderError, PictureError, ShapeError};
use crate::set_size::SetSizeError;

/// A recipe's pictures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PictureDataError {
    /// The corpus is damaged.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A file cannot be read.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// A folder of pictures cannot be listed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The sizes or numbers of the recipe fit no picture.
    #[error("{0}\nhint: see `data.picture`, `data.pixels` and `data.augmentation` of the recipe")]
    Shape(#[from] ShapeError),
    /// The names of the classes that a run kept cannot be written or read, or were changed.
    #[error(
        "{}: {reason}\nhint: restore it, or remove the run's folder and train again", path.display()
    )]
    Kept {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The corpus has no pictures.
    #[error("the split {split} has no pictures\nhint: the corpus is not one of pictures; see `zoo list`")]
    NoPictures {
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
    /// A picture is of a class that does not exist.
    #[error(
        "picture {picture} of {split} is of class {class}, and classes count from 0 to {last}\nhint: see the labels, and `data.classes`"
    )]
    Label {
        /// Name of the split.
        split: String,
        /// Number of the picture, from 1.
        picture: usize,
        /// Its class.
        class: u32,
        /// The last class.
        last: u32,
    },
    /// An evaluation set has a class that training does not have.
    #[error(
        "{split} has a folder {class}, which is no class of the training pictures\nhint: rename or remove the folder"
    )]
    UnknownClass {
        /// Name of the split.
        split: String,
        /// Name of the class.
        class: String,
    },
    /// A file of pictures and its file of labels do not belong together.
    #[error("{} has {pictures} pictures, {} has {labels} labels\nhint: both files must be of the same split", images.display(), labels_file.display())]
    Unequal {
        /// File of the pictures.
        images: PathBuf,
        /// Number of pictures.
        pictures: usize,
        /// File of the labels.
        labels_file: PathBuf,
        /// Number of labels.
        labels: usize,
    },
    /// An evaluation set does not have the size that the recipe states.
    #[error(transparent)]
    EvalSet(#[from] SetSizeError),
    /// There is nothing to train on.
    #[error(
        "{split} has {pictures} pictures, and a batch has {batch}\nhint: data.batching.pictures, or data.batching.remainder = \"short\""
    )]
    NoBatch {
        /// Name of the split.
        split: String,
        /// Its pictures.
        pictures: usize,
        /// Pictures of a batch.
        batch: usize,
    },
    /// The thread that makes batches ended early.
    #[error(transparent)]
    Thread(#[from] crate::batches::ThreadEnded),
    /// The pictures do not fit in the memory that they may take.
    #[error(
        "{split} takes {bytes} bytes in memory, the limit is {limit}\nhint: smaller pictures (data.picture), or fewer (data.share)"
    )]
    TooLarge {
        /// Name of the split.
        split: String,
        /// Bytes of its pictures.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}
