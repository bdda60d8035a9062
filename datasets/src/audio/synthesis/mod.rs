//! Converts features to samples.
//!
//! [`Vocoder`] takes the log magnitudes or log mels of a model. It consists of [`MelInverse`],
//! which estimates magnitudes from mels, and [`GriffinLim`], which reconstructs phases for
//! magnitudes. [`InverseStft`] takes spectra that have their phases.

mod griffin_lim;
mod istft;
mod mel_inverse;
mod vocoder;

pub use griffin_lim::{GriffinLim, GriffinLimSpec, Start};
pub use istft::InverseStft;
pub use mel_inverse::{MelInverse, MelMethod};
pub use vocoder::{Speech, Vocoder, VocoderSpec};

/// Why no sound can be made from features.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SynthesisError {
    /// A setting is not valid.
    #[error("{setting} is {found}, expected {due}\nhint: correct the settings of the synthesis")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// Allowed values.
        due: String,
    },
    /// The values are not a whole number of frames.
    #[error("{values} values are no frames of {width}\nhint: features are laid out as [frames, width]")]
    Shape {
        /// Number of values.
        values: usize,
        /// Number of values per frame.
        width: usize,
    },
    /// A value is infinite, not a number, or negative where that is not allowed.
    #[error(
        "frame {frame}: value {place} is {value}\nhint: the features come from a model that diverged, or are of another kind"
    )]
    Value {
        /// Index of the frame, from 0.
        frame: usize,
        /// Index of the value in the frame, from 0.
        place: usize,
        /// The value.
        value: f32,
    },
    /// The requested number of samples does not match the number of frames.
    #[error(
        "{samples} samples have {due} frames, not {frames}\nhint: leave the length out, or give that of the recording"
    )]
    Length {
        /// Requested number of samples.
        samples: usize,
        /// Actual number of frames.
        frames: usize,
        /// Number of frames for the requested samples.
        due: usize,
    },
}

impl SynthesisError {
    fn setting(setting: &'static str, found: impl ToString, due: impl Into<String>) -> Self {
        Self::Setting { setting, found: found.to_string(), due: due.into() }
    }
}

/// The number of frames in `values` values.
fn frames(values: usize, width: usize) -> Result<usize, SynthesisError> {
    match values.checked_div(width) {
        Some(frames) if frames * width == values => Ok(frames),
        _ => Err(SynthesisError::Shape { values, width }),
    }
}

/// Checks all values with `right`, and reports the first that fails.
fn each_is(values: &[f32], width: usize, right: impl Fn(f32) -> bool) -> Result<(), SynthesisError> {
    match values.iter().position(|value| !right(*value)) {
        None => Ok(()),
        Some(at) => Err(SynthesisError::Value { frame: at / width, place: at % width, value: values[at] }),
    }
}
