//! Options of the metrics on spectrograms.

use crate::metrics::contract::ScoreError;

/// Maximum number of bands of a spectrogram; no front end uses more.
pub(crate) const MOST_MELS: usize = 4096;

/// Options of mel-cepstral distortion. The DCT-II is orthonormal (`dct:ortho`), c0 is left out, and
/// utterances have equal weight (`mean:utterance`). Other scales and means are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CepstralOptions {
    /// The last coefficient K of 1 to K; below the number of bands.
    pub coefficients: usize,
    /// Whether frames are paired by dynamic time warping. Otherwise they are paired by position,
    /// for a decoder that was teacher-forced with the target's frames.
    pub warped: bool,
    /// Number of mel bands, 2 to 4096.
    pub mels: usize,
}

impl Default for CepstralOptions {
    /// 13 coefficients of 80 bands, warped.
    fn default() -> Self {
        Self { coefficients: 13, warped: true, mels: 80 }
    }
}

impl CepstralOptions {
    pub(super) fn check_range(&self) -> Result<(), ScoreError> {
        check_mels(self.mels, 2)?;
        if (1..self.mels).contains(&self.coefficients) {
            return Ok(());
        }
        let (option, value) = ("last cepstral coefficient", self.coefficients.to_string());
        Err(ScoreError::OutOfRange { option, value, hint: "from 1, and below the number of mel bands" })
    }
}

pub(super) fn check_mels(mels: usize, least: usize) -> Result<(), ScoreError> {
    if (least..=MOST_MELS).contains(&mels) {
        return Ok(());
    }
    let (option, value) = ("number of mel bands", mels.to_string());
    Err(ScoreError::OutOfRange { option, value, hint: "1 to 4096, of cepstra 2 at least; 80 is usual" })
}

/// Options of the squared error of log-mel spectrograms. All frames of all utterances have equal
/// weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MelErrorOptions {
    /// Number of mel bands, 1 to 4096.
    pub mels: usize,
}
