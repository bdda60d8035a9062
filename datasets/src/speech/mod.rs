//! Recordings and their transcripts: from a recipe's `[data]` to batches of frames.
//!
//! [`prepare`] lists the recordings of the splits (from a corpus, the user's own, or generated
//! tones), checks them, and stores the lists. [`PreparedSpeech`] has the data of every utterance
//! except the sound. [`SpeechBatches`] plans epochs, reads and augments recordings, and computes
//! frames batch by batch; [`evaluation_batches`] does so for evaluation. Recognition reads frames
//! and writes labels. Synthesis reads labels, which are the symbols of a text, and writes frames.

mod batch;
mod cache;
mod classes;
mod error;
mod join;
mod listing;
mod manifest;
mod own;
mod plan;
mod prepare;
mod prepared;
mod recordings;
mod source;
mod splits;
mod tones;
mod unknown;

pub use batch::{SpeechBatch, SpeechBatches, evaluation_batches};
pub use cache::check_frames;
pub(crate) use classes::LabelledTexts;
pub use classes::{Classes, Labels};
pub use error::{Fault, Skipped, SpeechError};
pub use listing::check_list;
pub use manifest::stamp as manifest_stamp;
pub use own::stamp as own_folder_stamp;
pub use prepare::{SpeechPlace, SpeechStep, prepare};
pub use prepared::{PreparedSpeech, SpeechSplit, SpeechStatistics, Utterance};
pub use unknown::UnknownText;
