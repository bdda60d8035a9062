//! Silence off both ends, as `librosa.effects.trim` finds it.

use std::ops::Range;

use super::vectors::{largest, sum};

/// What librosa takes for the least power (the square of the amplitude 1e-5).
const LEAST_POWER: f64 = 1e-10;

/// What silence is: frames whose root mean square is `top_db` decibels or more below that of the loudest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trim {
    /// Samples of a frame; frames are centred, with silence before and behind the samples.
    pub frame_length: usize,
    /// Samples from frame to frame.
    pub hop: usize,
    /// Decibels below the loudest frame.
    pub top_db: f64,
}

impl Default for Trim {
    /// librosa's.
    fn default() -> Self {
        Self { frame_length: 2048, hop: 512, top_db: 60.0 }
    }
}

impl Trim {
    /// As OpenSeq2Seq trims before a transform of `n_fft` samples and a hop.
    pub fn openseq2seq(n_fft: usize, hop: usize) -> Self {
        Self { frame_length: n_fft / 2, hop: hop / 2, ..Self::default() }
    }

    /// Where the samples are that are kept: from the middle of the first frame that is not silent to that of the frame behind the last one.
    /// Empty where nothing is kept. Samples that are all 0 are all kept, as there. Lengths of 0 count as 1.
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
