//! Public corpora: sources and licences of their files, and how their splits are read.
//!
//! A corpus is a TOML file in `corpora/` of this crate; docs/data.md shows how to add one.

mod definition;
mod error;
mod fetched;
mod files;
mod pictures;
mod preparation;
mod recordings;
mod text;
mod texts;
mod unpacked;

pub use crate::fetch::Packing;
pub use definition::{CorpusDefinition, Licence, SplitDefinition, TextFormat, TextPart};
pub use error::CorpusError;
pub use fetched::{FetchedCorpus, FetchedSplit, FileCheck, Fingerprint};
pub use files::{ByteCount, FileDefinition};
pub use pictures::{FetchedPictures, LabelledPictures, PicturesDefinition};
pub use preparation::{CleanSpec, Preparation};
pub(crate) use recordings::TRANS_TXT;
pub use recordings::{
    FetchedRecordings, NameField, RecordingsDefinition, RecordingsFolder, Selection, Transcripts,
};
pub use text::{Lines, TextFile, read_lines};
pub use texts::{
    ClassFolder, FetchedTexts, LabelledTexts, TEXT_SUFFIX, TextsDefinition, labelled, lines_of,
    texts_of_folder,
};
