//! torchaudio's `Resample` with its defaults: a Hann-windowed sinc with 6 zero crossings and a
//! roll-off of 0.99, and one row of taps per phase. lhotse's `Speed` uses it.
//!
//! Eight consecutive output samples form a group and are computed together from one table: an input
//! sample times a row of the table gives its contribution to each of the eight. Eight groups that
//! are a common period apart share the rows of the table.

use std::f64::consts::PI;

use crate::audio::vectors::vectorised;

const ZERO_CROSSINGS: f64 = 6.0;
const ROLLOFF: f64 = 0.99;
/// Number of samples in a group, and number of groups that are computed together.
const GROUP: usize = 8;

/// Resamples from one rate to another. There is one row of taps per output sample within the common
/// period, so memory grows with the new rate divided by the greatest common divisor.
#[derive(Debug, Clone)]
pub struct SincResampler {
    /// Old rate over the greatest common divisor of the rates; `to` is the new one.
    from: usize,
    to: usize,
    /// [groups, rows]: contributions of an input sample to the samples of a group, by its distance
    /// from the first input sample that the group needs. Groups repeat after at most `to` of them.
    taps: Vec<[f32; GROUP]>,
    rows: usize,
    /// Number of input samples needed before the current position.
    before: usize,
}

impl SincResampler {
    /// Plans a resampler. Rates are in hertz, above 0.
    pub fn new(from: u32, to: u32) -> Self {
        let divisor = greatest_common_divisor(from.max(1), to.max(1));
        let groups = (to.max(1) / divisor) / greatest_common_divisor(to.max(1) / divisor, GROUP as u32);
        let (from, to) = ((from.max(1) / divisor) as usize, (to.max(1) / divisor) as usize);
        let base = from.min(to) as f64 * ROLLOFF;
        let before = (ZERO_CROSSINGS * from as f64 / base).ceil() as usize;
        // The taps of an output sample reach `before` input samples to both sides of the input
        // sample before it.
        let tap = |place: usize, column: usize| {
            let phase = place % to;
            let distance = (phase * from / to + column) as f64 - before as f64;
            let at = (distance / from as f64 - phase as f64 / to as f64) * base;
            let at = at.clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS);
            let window = (at * PI / ZERO_CROSSINGS / 2.0).cos().powi(2);
            let sinc = if at == 0.0 { 1.0 } else { (at * PI).sin() / (at * PI) };
            (sinc * window * base / from as f64) as f32
        };
        let columns = 2 * before + 2;
        let rows = columns + (GROUP - 1) * from / to + 1;
        let mut taps = vec![[0.0; GROUP]; groups as usize * rows];
        for (group, taps) in taps.chunks_exact_mut(rows).enumerate() {
            let first = group * GROUP * from / to;
            for place in group * GROUP..(group + 1) * GROUP {
                let start = place * from / to - first;
                for column in 0..columns {
                    taps[start + column][place % GROUP] = tap(place, column);
                }
            }
        }
        Self { from, to, taps, rows, before }
    }

    /// Number of output samples for `samples` input samples, rounded up.
    pub fn length(&self, samples: usize) -> usize {
        (samples * self.to).div_ceil(self.from)
    }

    /// Resamples the samples.
    pub fn resample(&self, samples: &[f32]) -> Vec<f32> {
        if self.from == self.to {
            return samples.to_vec();
        }
        let length = self.length(samples.len());
        let groups = self.taps.len() / self.rows;
        // The number of groups in a period, and the input samples that they advance.
        let advance = groups * GROUP * self.from / self.to;
        let needed = (GROUP - 1) * advance + advance + self.rows;
        let mut edge = vec![0.0; needed];
        let mut made = vec![[[0.0; GROUP]; GROUP]; groups];
        let mut resampled = Vec::with_capacity(length + GROUP * GROUP * groups);
        while resampled.len() < length {
            let first = resampled.len() * self.from / self.to;
            let inside = first.checked_sub(self.before).and_then(|first| samples.get(first..first + needed));
            let signal = inside.unwrap_or_else(|| {
                for (at, place) in edge.iter_mut().enumerate() {
                    let at = (first + at).checked_sub(self.before);
                    *place = at.and_then(|at| samples.get(at)).copied().unwrap_or(0.0);
                }
                &edge
            });
            vectorised(
                #[inline(always)]
                || {
                    for ((group, taps), made) in self.taps.chunks_exact(self.rows).enumerate().zip(&mut made)
                    {
                        *made = eight_groups(taps, &signal[group * GROUP * self.from / self.to..], advance);
                    }
                },
            );
            for period in 0..GROUP {
                made.iter().for_each(|made| resampled.extend_from_slice(&made[period]));
            }
        }
        resampled.truncate(length);
        resampled
    }
}

/// The samples of eight groups whose inputs are `advance` samples apart.
#[inline(always)]
fn eight_groups(taps: &[[f32; GROUP]], signal: &[f32], advance: usize) -> [[f32; GROUP]; GROUP] {
    let signals: [&[f32]; GROUP] = std::array::from_fn(|group| &signal[group * advance..][..taps.len()]);
    let mut sums = [[0.0; GROUP]; GROUP];
    for (row, taps) in taps.iter().enumerate() {
        for (sums, signal) in sums.iter_mut().zip(&signals) {
            let sample = signal[row];
            for (sum, tap) in sums.iter_mut().zip(taps) {
                *sum += sample * tap;
            }
        }
    }
    sums
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
