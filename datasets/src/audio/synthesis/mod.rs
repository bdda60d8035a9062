//! Features become samples again.
//!
//! [`Vocoder`] takes the log magnitudes or log mels of a model. It is made of [`MelInverse`], which finds magnitudes behind mels, and
//! [`GriffinLim`], which finds phases for magnitudes; [`InverseStft`] takes spectra that have their phases.

mod griffin_lim;
mod istft;
mod mel_inverse;
mod vocoder;

pub use griffin_lim::{GriffinLim, GriffinLimSpec, Start};
pub use istft::InverseStft;
pub use mel_inverse::{MelInverse, MelMethod};
pub use vocoder::{Speech, Vocoder, VocoderSpec};

/// What no sound can be made of.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SynthesisError {
    /// A setting has no meaning.
    #[error("{setting} is {found}, expected {due}\nhint: correct the settings of the synthesis")]
    Setting {
        /// Which.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        due: String,
    },
    /// Values are no whole number of frames.
    #[error("{values} values are no frames of {width}\nhint: features are laid out as [frames, width]")]
    Shape {
        /// How many there are.
        values: usize,
        /// Values of a frame.
        width: usize,
    },
    /// A value is infinite, not a number, or negative where it must not be.
    #[error(
        "frame {frame}: value {place} is {value}\nhint: the features come from a model that diverged, or are of another kind"
    )]
    Value {
        /// Its frame, from 0.
        frame: usize,
        /// Its place there, from 0.
        place: usize,
        /// What it is.
        value: f32,
    },
    /// So many samples have another number of frames.
    #[error(
        "{samples} samples have {due} frames, not {frames}\nhint: leave the length out, or give that of the recording"
    )]
    Length {
        /// The samples that are asked for.
        samples: usize,
        /// The frames that are there.
        frames: usize,
        /// The frames of so many samples.
        due: usize,
    },
}

impl SynthesisError {
    fn setting(setting: &'static str, found: impl ToString, due: impl Into<String>) -> Self {
        Self::Setting { setting, found: found.to_string(), due: due.into() }
    }
}

/// The number of frames of so many values.
fn frames(values: usize, width: usize) -> Result<usize, SynthesisError> {
    match values.checked_div(width) {
        Some(frames) if frames * width == values => Ok(frames),
        _ => Err(SynthesisError::Shape { values, width }),
    }
}

/// Finds the first value that is not as it must be.
fn each_is(values: &[f32], width: usize, right: impl Fn(f32) -> bool) -> Result<(), SynthesisError> {
    match values.iter().position(|value| !right(*value)) {
        None => Ok(()),
        Some(at) => Err(SynthesisError::Value { frame: at / width, place: at % width, value: values[at] }),
    }
}
