//! Validated log-mel spectrograms, the input of metrics.

use super::options::MOST_MELS;
use crate::metrics::contract::ScoreError;

/// Name of the array in error messages.
const WHAT: &str = "a log-mel spectrogram";

/// Natural logarithms of mel bands, frame by frame: at least one frame, all values finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogMel<'a> {
    values: &'a [f32],
    mels: usize,
}

impl<'a> LogMel<'a> {
    /// From values `[frames, mels]`, row-major.
    ///
    /// # Errors
    /// There are no frames or no bands, the last frame is incomplete, or a value is not finite.
    pub fn new(values: &'a [f32], mels: usize) -> Result<Self, ScoreError> {
        let fail = |problem, hint| Err(ScoreError::Array { what: WHAT, problem, hint });
        if !(1..=MOST_MELS).contains(&mels) {
            return fail(format!("{mels} bands"), "1 to 4096 bands; 80 is usual");
        }
        if values.is_empty() || !values.len().is_multiple_of(mels) {
            let problem = format!("{} values are not one or more frames of {mels} bands", values.len());
            return fail(problem, "give whole frames, one after the other, without padding");
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (frame, band, value) = (at / mels, at % mels, values[at]);
            let problem = format!("{value} in frame {frame}, band {band}, counted from 0");
            return fail(problem, "bound energies from below before the logarithm; did the model diverge?");
        }
        Ok(Self { values, mels })
    }

    /// The values, `[frames, mels]`.
    pub fn values(self) -> &'a [f32] {
        self.values
    }

    /// Number of bands.
    pub fn mels(self) -> usize {
        self.mels
    }

    /// Number of frames.
    pub fn frames(self) -> usize {
        self.values.len() / self.mels
    }

    /// Checks that both have the same number of bands.
    pub(super) fn same_mels(self, other: LogMel<'_>) -> Result<(), ScoreError> {
        if self.mels == other.mels {
            return Ok(());
        }
        let problem = format!("{} bands in one, {} in the other", self.mels, other.mels);
        let hint = "compute both with the same front end";
        Err(ScoreError::Array { what: "two log-mel spectrograms", problem, hint })
    }

    /// Checks that both have the same numbers of bands and frames.
    pub(super) fn same_frames(self, other: LogMel<'_>) -> Result<(), ScoreError> {
        self.same_mels(other)?;
        if self.frames() == other.frames() {
            return Ok(());
        }
        let problem = format!("{} frames and {} cannot be paired", self.frames(), other.frames());
        let hint = "force the decoder with the target's frames, or warp time (dtw:yes)";
        Err(ScoreError::Array { what: "two log-mel spectrograms", problem, hint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_finite_frames_are_taken() {
        let mel = LogMel::new(&[0.0; 6], 3).unwrap();
        assert_eq!((mel.frames(), mel.mels()), (2, 3));
        for (values, mels, says) in [
            (&[][..], 80, "0 values are not"),
            (&[0.0; 5], 3, "5 values are not"),
            (&[0.0; 5], 0, "0 bands"),
            (&[0.0; 5], usize::MAX, "bands"),
            (&[0.0, 1.0, f32::NAN, 0.0], 2, "NaN in frame 1, band 0"),
            (&[f32::NEG_INFINITY], 1, "-inf in frame 0"),
        ] {
            let error = LogMel::new(values, mels).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("\nhint: "), "{error}");
        }
    }
}
