//! Speech audio: from files to samples and from samples to features, and back.
//!
//! [`decode`] reads WAV and FLAC. [`FrontEnd`] turns samples into features as
//! python_speech_features, librosa, Kaldi or another library does. It consists of [`mel`],
//! [`window`], [`stft`] and [`spectrum`], which speech synthesis needs as well. [`synthesis`] turns
//! features into samples, and [`encode`] writes them to a file. [`trim`] removes silence from both
//! ends. [`Extractor`] augments training examples; [`resample`] has its filters.

mod augment;
pub mod decode;
pub mod encode;
mod front_end;
pub mod mel;
pub mod resample;
pub mod spectrum;
pub mod stft;
pub mod synthesis;
pub mod trim;
mod vectors;
pub mod window;

pub use augment::{Extractor, Turn};
pub use front_end::{Features, FrontEnd, SpecError};
