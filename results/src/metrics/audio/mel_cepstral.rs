//! Mel-cepstral distortion (Kubichek, 1993) of log-mel spectrograms. Frames are paired by dynamic
//! time warping or by position.

use std::f64::consts::PI;

use super::log_mel::LogMel;
use super::options::CepstralOptions;
use super::warping::{Path, cheapest, straight};
use crate::metrics::contract::ScoreError;

/// Maximum number of frame pairs in one comparison: some ten seconds on one core.
const MOST_PAIRS: usize = 1 << 30;

/// The distortion of an utterance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CepstralDistortion {
    /// Mean over the pairs of frames, in dB.
    pub decibels: f64,
    /// Number of pairs of frames: those of the path, or the number of frames.
    pub pairs: u32,
}

impl CepstralDistortion {
    /// (sum, count) for the mean over utterances, which have equal weight whatever their length.
    pub fn ratio(self) -> (f64, f64) {
        (self.decibels, 1.0)
    }
}

/// Distance between the spectrum of a synthesised utterance and that of a recording.
///
/// For each frame, the coefficients 1 to K of an orthonormal DCT-II over its bands are used; c0,
/// the loudness, is left out. A pair of frames costs (10 / ln 10) sqrt(2 sum of squared
/// differences) dB. With `warped`, the pairs are those of a path from the first pair to the last
/// with steps (1, 0), (0, 1) and (1, 1) and the least sum of Euclidean distances (of equally cheap
/// paths, the shortest). Otherwise frames are paired by position. The distortion is the mean over
/// the pairs.
///
/// # Errors
/// The number of bands differs from the options, the lengths differ without warping, or there are
/// too many pairs.
pub fn mel_cepstral_distortion(
    target: LogMel<'_>,
    predicted: LogMel<'_>,
    options: CepstralOptions,
) -> Result<CepstralDistortion, ScoreError> {
    options.check_range()?;
    target.same_mels(predicted)?;
    let fail = |problem, hint| Err(ScoreError::Array { what: "mel-cepstral distortion", problem, hint });
    if target.mels() != options.mels {
        let problem = format!("{} bands, {} stated", target.mels(), options.mels);
        return fail(problem, "distortions of different numbers of bands cannot be compared");
    }
    if !options.warped {
        target.same_frames(predicted)?;
    } else if target.frames().saturating_mul(predicted.frames()) > MOST_PAIRS {
        let problem = format!("{} frames against {}", target.frames(), predicted.frames());
        return fail(problem, "shorten the recording; the limit is 2^30 pairs of frames");
    }
    let basis = basis(options.mels, options.coefficients);
    let (a, b) = (cepstra(target, &basis), cepstra(predicted, &basis));
    let pair = if options.warped { cheapest } else { straight };
    let Path { cost, pairs } = pair(&a, &b, options.coefficients);
    let decibels = 10.0 * std::f64::consts::SQRT_2 / std::f64::consts::LN_10;
    Ok(CepstralDistortion { decibels: decibels * cost / f64::from(pairs), pairs })
}

/// Rows 1 to `coefficients` of the orthonormal DCT-II over `mels` points: `[coefficients, mels]`.
fn basis(mels: usize, coefficients: usize) -> Vec<f64> {
    let scale = (2.0 / mels as f64).sqrt();
    let row = |k: usize| (0..mels).map(move |n| (PI * k as f64 * (n as f64 + 0.5) / mels as f64, scale));
    (1..=coefficients).flat_map(row).map(|(angle, scale)| scale * libm::cos(angle)).collect()
}

/// Cepstra, `[frames, coefficients]`.
fn cepstra(mel: LogMel<'_>, basis: &[f64]) -> Vec<f64> {
    let product = |frame: &[f32], row: &[f64]| -> f64 {
        row.iter().zip(frame).map(|(weight, value)| weight * f64::from(*value)).sum()
    };
    let frames = mel.values().chunks_exact(mel.mels());
    frames.flat_map(|frame| basis.chunks_exact(mel.mels()).map(move |row| product(frame, row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mels: usize, coefficients: usize, warped: bool) -> CepstralOptions {
        CepstralOptions { coefficients, warped, mels }
    }

    #[test]
    fn the_basis_is_orthonormal_and_without_loudness() {
        let basis = basis(8, 7);
        for (i, a) in basis.chunks_exact(8).enumerate() {
            assert!(a.iter().sum::<f64>().abs() < 1e-12);
            for (j, b) in basis.chunks_exact(8).enumerate() {
                let product: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_known_difference_has_a_known_distortion() {
        // [1, -1] against [0, 0]: c1 = cos(pi/4) - cos(3 pi/4) = sqrt 2, so the distortion is
        // 10/ln 10 sqrt(2 x 2) dB.
        let (a, b) = (LogMel::new(&[1.0, -1.0], 2).unwrap(), LogMel::new(&[0.0, 0.0], 2).unwrap());
        let found = mel_cepstral_distortion(a, b, options(2, 1, false)).unwrap();
        assert!((found.decibels - 20.0 / std::f64::consts::LN_10).abs() < 1e-12 && found.pairs == 1);
        // A pure difference of loudness gives no distortion.
        let (a, b) = (LogMel::new(&[3.0, 3.0], 2).unwrap(), LogMel::new(&[0.0, 0.0], 2).unwrap());
        assert!(mel_cepstral_distortion(a, b, options(2, 1, true)).unwrap().decibels < 1e-12);
    }

    #[test]
    fn what_cannot_be_compared_is_an_error() {
        let zeros = vec![0.0; 80_000];
        let mel = |values: usize, mels| LogMel::new(&zeros[..values], mels).unwrap();
        for (a, b, options, says) in [
            (mel(8, 4), mel(8, 4), options(80, 13, true), "4 bands, 80 stated"),
            (mel(8, 4), mel(10, 5), options(4, 3, true), "4 bands in one, 5 in the other"),
            (mel(8, 4), mel(4, 4), options(4, 3, false), "2 frames and 1"),
            (mel(8, 4), mel(8, 4), options(4, 4, true), "out of range"),
            (mel(8, 4), mel(8, 4), options(4, 0, true), "out of range"),
            (mel(80_000, 2), mel(80_000, 2), options(2, 1, true), "40000 frames against 40000"),
        ] {
            let error = mel_cepstral_distortion(a, b, options).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("\nhint: "), "{error}");
        }
    }
}
