//! torchaudio's `Resample` with its defaults: a Hann-windowed sinc of 6 zero crossings and a roll-off of 0.99, one row of taps
//! for each phase. lhotse's `Speed` uses it.

use std::f64::consts::PI;

use super::dot;

const ZERO_CROSSINGS: f64 = 6.0;
const ROLLOFF: f64 = 0.99;

/// Resamples from one rate to another. There is a row of taps for each sample of the new rate within the common period, so
/// memory grows with the new rate over the greatest common divisor.
#[derive(Debug, Clone)]
pub struct SincResampler {
    /// Rates over their greatest common divisor.
    from: usize,
    to: usize,
    /// [to, columns] row-major.
    taps: Vec<f32>,
    columns: usize,
    /// Zeros before the samples.
    before: usize,
}

impl SincResampler {
    /// Rates are in hertz, above 0.
    pub fn new(from: u32, to: u32) -> Self {
        let divisor = greatest_common_divisor(from.max(1), to.max(1));
        let (from, to) = ((from.max(1) / divisor) as usize, (to.max(1) / divisor) as usize);
        let base = from.min(to) as f64 * ROLLOFF;
        let width = (ZERO_CROSSINGS * from as f64 / base).ceil() as usize;
        // Phase p lies at p * from / to; its taps reach `width` to both sides of the sample before it.
        let columns = 2 * width + 2;
        let mut taps = Vec::with_capacity(to * columns);
        for phase in 0..to {
            let floor = phase * from / to;
            for column in 0..columns {
                let place = (floor + column) as f64 - width as f64;
                let at = (place / from as f64 - phase as f64 / to as f64) * base;
                let at = at.clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS);
                let window = (at * PI / ZERO_CROSSINGS / 2.0).cos().powi(2);
                let sinc = if at == 0.0 { 1.0 } else { (at * PI).sin() / (at * PI) };
                taps.push((sinc * window * base / from as f64) as f32);
            }
        }
        Self { from, to, taps, columns, before: width }
    }

    /// Samples that so many become: rounded up.
    pub fn length(&self, samples: usize) -> usize {
        (samples * self.to).div_ceil(self.from)
    }

    /// The samples at the new rate.
    pub fn resample(&self, samples: &[f32]) -> Vec<f32> {
        if self.from == self.to {
            return samples.to_vec();
        }
        let mut padded = vec![0.0; self.before + samples.len() + self.columns];
        padded[self.before..self.before + samples.len()].copy_from_slice(samples);
        (0..self.length(samples.len()))
            .map(|at| {
                let phase = at % self.to;
                let first = at * self.from / self.to;
                dot(&self.taps[phase * self.columns..][..self.columns], &padded[first..first + self.columns])
            })
            .collect()
    }
}

fn greatest_common_divisor(left: u32, right: u32) -> u32 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_and_ratio_gives_its_length() {
        for samples in [0, 1, 2, 100] {
            for (from, to) in [(9, 10), (11, 10), (1, 1), (2, 1), (7_200, 8_000), (16_000, 15_999)] {
                let resampler = SincResampler::new(from, to);
                let made = resampler.resample(&vec![1.0; samples]);
                assert_eq!(made.len(), resampler.length(samples), "{samples} {from} {to}");
            }
        }
    }

    #[test]
    fn a_constant_stays_one_away_from_the_ends() {
        for (from, to) in [(9, 10), (11, 10), (3, 2)] {
            let made = SincResampler::new(from, to).resample(&[1.0; 400]);
            assert!(
                made[50..made.len() - 50].iter().all(|sample| (sample - 1.0).abs() < 2e-3),
                "{from} {to}"
            );
        }
    }
}
