//! Removes silence from both ends, as librosa's `librosa.effects.trim` and DALI's
//! `nonsilent_region` do.

use std::cmp::Ordering;
use std::ops::Range;

use super::vectors::{largest, sum};

/// Minimum power in librosa (the square of the amplitude 1e-5).
const LEAST_POWER: f64 = 1e-10;

/// librosa's definition of silence: frames whose root mean square is at least `top_db` decibels
/// below that of the loudest frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trim {
    /// Number of samples in a frame. Frames are centred, with silence before and after the samples.
    pub frame_length: usize,
    /// Number of samples from frame to frame.
    pub hop: usize,
    /// Decibels below the loudest frame.
    pub top_db: f64,
}

impl Default for Trim {
    /// librosa's defaults.
    fn default() -> Self {
        Self { frame_length: 2048, hop: 512, top_db: 60.0 }
    }
}

impl Trim {
    /// OpenSeq2Seq's trimming before a transform with `n_fft` samples and this hop.
    pub fn openseq2seq(n_fft: usize, hop: usize) -> Self {
        Self { frame_length: n_fft / 2, hop: hop / 2, ..Self::default() }
    }

    /// The range of samples to keep: from the middle of the first frame that is not silent to the
    /// middle of the frame after the last such frame. Empty if nothing is kept. If all samples are
    /// 0, all are kept, as in librosa. Lengths of 0 count as 1.
    pub fn interval(&self, samples: &[f32]) -> Range<usize> {
        let (length, hop) = (self.frame_length.max(1), self.hop.max(1));
        let margin = length / 2;
        let squares: Vec<f64> = samples.iter().map(|sample| f64::from(*sample).powi(2)).collect();
        let frames = match (samples.len() + 2 * margin).checked_sub(length) {
            Some(rest) if !samples.is_empty() => 1 + rest / hop,
            _ => 0,
        };
        let power = |frame: usize| {
            let (start, end) = (frame * hop, frame * hop + length);
            let inside = start.saturating_sub(margin).min(squares.len())
                ..end.saturating_sub(margin).min(squares.len());
            (sum(&squares[inside]) / length as f64).max(LEAST_POWER)
        };
        let powers: Vec<f64> = (0..frames).map(power).collect();
        let decibels = |power: f64| 10.0 * power.log10();
        let least = decibels(largest(&powers, LEAST_POWER)) - self.top_db;
        let loud = |power: &f64| decibels(*power) > least;
        match (powers.iter().position(loud), powers.iter().rposition(loud)) {
            (Some(first), Some(last)) => first * hop..((last + 1) * hop).min(samples.len()),
            _ => 0..0,
        }
    }
}

/// DALI's definition of silence: samples outside every window whose mean square is less than
/// `below_db` decibels below that of the loudest window.
///
/// Known difference: sums are in FP64; DALI's are in FP32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nonsilent {
    /// Number of samples in the window, which moves by one sample. There is silence before the
    /// first sample.
    pub window: usize,
    /// Decibels below the loudest window.
    pub below_db: f64,
}

impl Nonsilent {
    /// The range of samples to keep: from the beginning of the first window that is not silent to
    /// the end of the last one. If all samples are 0, all are kept. A length of 0 counts as 1.
    pub fn interval(&self, samples: &[f32]) -> Range<usize> {
        let window = self.window.max(1);
        let square = |at: usize| f64::from(samples[at]).powi(2);
        let mut sum = 0.0;
        let windows = (0..samples.len()).map(|last| {
            sum += square(last);
            sum -= last.checked_sub(window).map_or(0.0, square);
            sum
        });
        let sums: Vec<f64> = windows.collect();
        let least = largest(&sums, 0.0) * 10.0_f64.powf(-self.below_db / 10.0);
        // A NaN does not count as silence, so it stays visible in the features.
        let loud = |sum: &f64| sum.partial_cmp(&least) != Some(Ordering::Less);
        match (sums.iter().position(loud), sums.iter().rposition(loud)) {
            (Some(first), Some(last)) => first.saturating_sub(window - 1)..last + 1,
            _ => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_goes_and_sound_stays() {
        let mut samples = vec![1e-6_f32; 20_000];
        samples[6_000..9_000].fill(0.5);
        let Range { start, end } = Trim::default().interval(&samples);
        assert!((4_900..=6_000).contains(&start) && (9_000..=10_300).contains(&end), "{start} {end}");
        let finer = Trim::openseq2seq(1024, 256).interval(&samples);
        assert!(finer.start > start && finer.end < end);
    }

    #[test]
    fn windows_that_hold_no_sound_go() {
        let rule = Nonsilent { window: 4, below_db: 20.0 };
        // A hundredth of the loudest window's power does not count as silence; less does.
        let mut samples = [0.0_f32; 20];
        samples[6] = 0.11;
        samples[10] = 1.0;
        samples[15] = 0.09;
        // The first window with sample 6 ends there.
        assert_eq!(rule.interval(&samples), 3..14);
        samples[15] = 0.11;
        assert_eq!(rule.interval(&samples), 3..19);
        // There is silence before the beginning.
        assert_eq!(rule.interval(&samples[6..]), 0..13);
        assert_eq!(rule.interval(&[]), 0..0);
        assert_eq!(rule.interval(&[0.5]), 0..1);
        assert_eq!(rule.interval(&[0.0; 9]), 0..9);
        assert_eq!(Nonsilent { window: 0, ..rule }.interval(&samples), 6..16);
        assert_eq!(rule.interval(&[f32::NAN; 9]), 0..9);
    }

    #[test]
    fn ends_are_within_the_samples() {
        assert_eq!(Trim::default().interval(&[]), 0..0);
        for samples in [1, 2, 511, 512, 513, 5_000] {
            assert_eq!(Trim::default().interval(&vec![0.0; samples]), 0..samples, "{samples}");
            assert_eq!(Trim::default().interval(&vec![0.3; samples]), 0..samples, "{samples}");
            let none = Trim { top_db: 0.0, ..Trim::default() };
            assert_eq!(none.interval(&vec![0.0; samples]), 0..0);
            let odd = Trim { frame_length: 0, hop: 0, top_db: 60.0 };
            assert_eq!(odd.interval(&vec![0.3; samples]), 0..samples);
        }
        assert!(Trim::default().interval(&[f32::NAN; 3_000]).len() <= 3_000);
    }
}
