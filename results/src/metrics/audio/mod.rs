//! Metrics on synthesised speech, from arrays: spectrograms compared with those of recordings, and
//! attention alignments.
//!
//! [`mel_cepstral_distortion`] and [`mel_error`] give a (sum, count) for each utterance, from which
//! the value of a set is computed. [`AlignmentScore`] needs no recording. `docs/synthesis.md` has
//! the definitions and their sources.

mod alignment;
mod line;
mod log_mel;
mod mel_cepstral;
mod mel_error;
mod metric;
mod options;
mod stopping;
mod warping;

pub use alignment::{AlignmentScore, Attention};
pub use line::MeasuredLine;
pub use log_mel::LogMel;
pub use mel_cepstral::{CepstralDistortion, mel_cepstral_distortion};
pub use mel_error::mel_error;
pub use metric::{MCD, MEL_ERROR, MOS, read_cepstra, read_error};
pub use options::{CepstralOptions, MelErrorOptions};
pub use stopping::{Stop, StopCounts, StopError};
