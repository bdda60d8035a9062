//! Errors of corpora.

use std::path::PathBuf;

use crate::fetch::FetchError;
use crate::image::PictureError;

/// Why a corpus could not be had or read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// No definition of that name.
    #[error("there is no corpus {name:?}\nhint: the corpora are {}", .known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A definition that cannot be right.
    #[error("{origin}: {reason}\nhint: docs/data.md shows how a corpus is written")]
    Definition {
        /// The file.
        origin: String,
        /// What is wrong, with line and column where it is the form.
        reason: String,
    },
    /// A split that the corpus does not have.
    #[error("corpus {corpus} has no split {split:?}\nhint: its splits are {}", .known.join(", "))]
    UnknownSplit {
        /// The corpus.
        corpus: String,
        /// The split asked for.
        split: String,
        /// The splits there are.
        known: Vec<String>,
    },
    /// A language that the split does not have.
    #[error("split {split:?} has no text in {language:?}\nhint: it has {}", .known.join(", "))]
    UnknownLanguage {
        /// The split.
        split: String,
        /// The language asked for.
        language: String,
        /// The languages there are.
        known: Vec<String>,
    },
    /// A file could not be had.
    #[error("corpus {corpus}, file {file}: {source}")]
    Fetch {
        /// The corpus.
        corpus: String,
        /// The file's name in the definition.
        file: String,
        /// What went wrong.
        source: Box<FetchError>,
    },
    /// A folder of the user's that does not hold the corpus.
    #[error(
        "{}: it holds no {folder:?}, which corpus {corpus} has\nhint: give the folder in which the archive was unpacked, or the one that was in it", .path.display()
    )]
    Folder {
        /// The corpus.
        corpus: String,
        /// The user's folder.
        path: PathBuf,
        /// What is missing.
        folder: String,
    },
    /// A text file that cannot be read.
    #[error("{}, line {line}: {reason}\nhint: verify the corpus; if its files are whole, its definition is wrong", .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// Pictures of a split that cannot be read.
    #[error("split {split:?}: {source}")]
    Pictures {
        /// The split.
        split: String,
        /// What went wrong.
        source: PictureError,
    },
    /// A split with another number of pictures, or of their labels, than it must have.
    #[error(
        "split {split:?} has {actual} {what}, expected {expected}\n\
         hint: another version of the set; scores on it are not comparable"
    )]
    PictureCount {
        /// The split.
        split: String,
        /// `pictures` or `labels`.
        what: &'static str,
        /// Number stated.
        expected: u64,
        /// Number found.
        actual: u64,
    },
    /// A picture whose class the definition does not name.
    #[error(
        "{}: picture {picture} is of class {class}, there are {classes} classes, from 0 on\n\
         hint: verify the corpus; if its files are whole, its definition is wrong", .path.display()
    )]
    PictureClass {
        /// The file with the labels.
        path: PathBuf,
        /// The picture, counted from 0.
        picture: usize,
        /// The number of its class.
        class: u8,
        /// How many classes there are.
        classes: usize,
    },
    /// A split that has not the lines that it must have.
    #[error(
        "split {split:?} has {actual} lines in {language:?}, expected {expected}\n\
         hint: another version of the set; scores on it are not comparable"
    )]
    LineCount {
        /// The split.
        split: String,
        /// The language.
        language: String,
        /// Lines stated.
        expected: u64,
        /// Lines found.
        actual: u64,
    },
}
