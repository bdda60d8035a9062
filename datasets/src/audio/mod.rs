//! Speech: files become samples, samples become features.
//!
//! [`decode`] reads WAV and FLAC. [`FrontEnd`] turns samples into features as python_speech_features, librosa or Kaldi do;
//! [`mel`], [`window`], [`stft`] and [`spectrum`] are what it is made of, and what speech synthesis needs as well.
//! [`Extractor`] varies training examples on the way; [`resample`] has its filters.

mod augment;
pub mod decode;
mod front_end;
pub mod mel;
pub mod resample;
pub mod spectrum;
pub mod stft;
pub mod trim;
mod vectors;
pub mod window;

pub use augment::{Extractor, Turn};
pub use front_end::{Features, FrontEnd, SpecError};
