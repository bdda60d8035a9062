//! Errors of corpora.

use std::path::PathBuf;

use crate::fetch::FetchError;
use crate::image::PictureError;

/// Why a corpus could not be fetched or read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// There is no definition of this name.
    #[error("there is no corpus {name:?}\nhint: the corpora are {}", .known.join(", "))]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// A definition is not valid.
    #[error("{origin}: {reason}\nhint: docs/data.md shows how a corpus is written")]
    Definition {
        /// Name of the definition's file.
        origin: String,
        /// What is wrong; with line and column for an error of syntax.
        reason: String,
    },
    /// The corpus does not have this split.
    #[error("corpus {corpus} has no split {split:?}\nhint: its splits are {}", .known.join(", "))]
    UnknownSplit {
        /// Name of the corpus.
        corpus: String,
        /// The requested split.
        split: String,
        /// The known splits.
        known: Vec<String>,
    },
    /// The split does not have this language.
    #[error("split {split:?} has no text in {language:?}\nhint: it has {}", .known.join(", "))]
    UnknownLanguage {
        /// Name of the split.
        split: String,
        /// The requested language.
        language: String,
        /// The known languages.
        known: Vec<String>,
    },
    /// A file could not be fetched.
    #[error("corpus {corpus}, file {file}: {source}")]
    Fetch {
        /// Name of the corpus.
        corpus: String,
        /// The file's name in the definition.
        file: String,
        /// Error of the fetch.
        source: Box<FetchError>,
    },
    /// A user's folder does not hold the corpus.
    #[error(
        "{}: it holds no {folder:?}, which corpus {corpus} has\nhint: give the folder in which the archive was unpacked, or the one that was in it", .path.display()
    )]
    Folder {
        /// Name of the corpus.
        corpus: String,
        /// The user's folder.
        path: PathBuf,
        /// The missing folder.
        folder: String,
    },
    /// A text file cannot be read.
    #[error("{}, line {line}: {reason}\nhint: verify the corpus; if its files are whole, its definition is wrong", .path.display())]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What is wrong with the line.
        reason: String,
    },
    /// The pictures of a split cannot be read.
    #[error("split {split:?}: {source}")]
    Pictures {
        /// Name of the split.
        split: String,
        /// Error of the reader.
        source: PictureError,
    },
    /// A split has an unexpected number of pictures or labels.
    #[error(
        "split {split:?} has {actual} {what}, expected {expected}\n\
         hint: another version of the set; scores on it are not comparable"
    )]
    PictureCount {
        /// Name of the split.
        split: String,
        /// `pictures` or `labels`.
        what: &'static str,
        /// Expected number.
        expected: u64,
        /// Actual number.
        actual: u64,
    },
    /// The definition has no class for a picture's label.
    #[error(
        "{}: picture {picture} is of class {class}, there are {classes} classes, from 0 on\n\
         hint: verify the corpus; if its files are whole, its definition is wrong", .path.display()
    )]
    PictureClass {
        /// Path of the file with the labels.
        path: PathBuf,
        /// Index of the picture, counted from 0.
        picture: usize,
        /// Number of the picture's class.
        class: u8,
        /// Number of classes in the definition.
        classes: usize,
    },
    /// A split has an unexpected number of labelled texts.
    #[error(
        "split {split:?} has {actual} texts, expected {expected}\n\
         hint: another version of the set; scores on it are not comparable"
    )]
    TextCount {
        /// Name of the split.
        split: String,
        /// Expected number.
        expected: u64,
        /// Actual number.
        actual: u64,
    },
    /// A split has an unexpected number of lines.
    #[error(
        "split {split:?} has {actual} lines in {language:?}, expected {expected}\n\
         hint: another version of the set; scores on it are not comparable"
    )]
    LineCount {
        /// Name of the split.
        split: String,
        /// Language of the lines.
        language: String,
        /// Expected number of lines.
        expected: u64,
        /// Actual number of lines.
        actual: u64,
    },
}
