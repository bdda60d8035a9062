//! Recordings and what is said in them: from a recipe's `[data]` to batches of frames.
//!
//! [`prepare`] lists the recordings of the splits (a corpus's, a user's own, or generated tones), checks them, and keeps the lists;
//! [`PreparedSpeech`] has what is known of every utterance, but no sound. [`SpeechBatches`] plans epochs, and reads, varies and
//! turns recordings into frames batch by batch; [`evaluation_batches`] does so for evaluation. Recognition reads frames and writes labels;
//! synthesis reads labels, which are the symbols of a text, and writes frames.

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
mod symbols;
mod tones;

pub use batch::{Ahead, SpeechBatch, SpeechBatches, evaluation_batches};
pub use classes::{Classes, UnknownText};
pub use error::{Fault, Skipped, SpeechError};
pub use manifest::stamp as manifest_stamp;
pub use own::stamp as own_folder_stamp;
pub use prepare::{SpeechPlace, SpeechStep, prepare};
pub use prepared::{PreparedSpeech, SpeechSplit, SpeechStatistics, Utterance};
