//! Estimates magnitudes from mels. Mels have fewer numbers than spectra, so many spectra have the
//! same mels.

use rayon::prelude::*;

use super::{SynthesisError, each_is, frames};
use crate::audio::mel::MelFilters;
use crate::audio::vectors::vectorised;

/// Number of frames that are solved side by side.
const SIDES: usize = 8;
/// Number of least-squares steps. It is fixed, so that a frame's magnitudes do not depend on its
/// neighbours. For mels of speech, the residual of filters like Tacotron's reaches its minimum in
/// fewer steps.
const STEPS: u32 = 300;
/// Ridge relative to the largest value on the diagonal of the products of filters. It prevents a
/// division by 0 for filters without bins.
const RIDGE: f64 = 1e-10;

/// How magnitudes are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MelMethod {
    /// The transposed filters applied to the mels, as in OpenSeq2Seq's `inverse_mel`. The result is
    /// smooth and has another level.
    Transposed,
    /// Non-negative magnitudes with the least squared error of their mels: the problem that
    /// librosa's `mel_to_stft` solves.
    LeastSquares,
}

/// A planned inverse of mel filters; FP64 inside.
#[derive(Debug, Clone)]
pub struct MelInverse {
    filters: MelFilters,
    method: MelMethod,
    power: f64,
    /// Step size along the gradient for each bin.
    steps: Vec<f64>,
    /// Lower triangle of the Cholesky factor of the products of filters, [filters, filters].
    factor: Vec<f64>,
}

/// Frames side by side, one row per bin or filter.
type Rows = Vec<[f64; SIDES]>;

impl MelInverse {
    /// Plans the inverse of filters that were applied to magnitudes raised to `power`: 1 in
    /// Tacotron 2, 2 by librosa's default.
    ///
    /// # Errors
    /// The power is not above 0, or there are no filters.
    pub fn new(filters: MelFilters, method: MelMethod, power: f64) -> Result<Self, SynthesisError> {
        if !(power > 0.0 && power.is_finite()) {
            return Err(SynthesisError::setting("power", power, "above 0"));
        }
        if filters.is_empty() {
            return Err(SynthesisError::setting("filters", 0, "1 or more"));
        }
        // The row sums of F^T F form a diagonal matrix that bounds F^T F from above, because no
        // weight is negative.
        let mut row_sums = vec![[0.0]; filters.len()];
        filters.apply(&vec![[1.0]; filters.bins()], &mut row_sums);
        let mut curvature = vec![[0.0]; filters.bins()];
        filters.apply_transposed(&row_sums, &mut curvature);
        let steps = curvature.iter().map(|[sum]| if *sum > 0.0 { 1.0 / sum } else { 0.0 }).collect();
        let factor = if method == MelMethod::LeastSquares { cholesky(&filters) } else { Vec::new() };
        Ok(Self { filters, method, power, steps, factor })
    }

    /// Number of mels per frame.
    pub fn mels(&self) -> usize {
        self.filters.len()
    }

    /// Number of bins per frame.
    pub fn bins(&self) -> usize {
        self.filters.bins()
    }

    /// Magnitudes, [frames, bins], for mels, [frames, mels], which must not be logarithms.
    ///
    /// # Errors
    /// The mels are not a whole number of frames, are negative, or are not finite.
    pub fn magnitudes(&self, mels: &[f32]) -> Result<Vec<f32>, SynthesisError> {
        frames(mels.len(), self.mels())?;
        each_is(mels, self.mels(), |mel| mel >= 0.0 && mel.is_finite())?;
        let mels: Vec<f64> = mels.iter().map(|mel| f64::from(*mel)).collect();
        Ok(self.of(&mels).into_iter().map(|magnitude| magnitude as f32).collect())
    }

    /// Magnitudes for whole frames of finite mels.
    pub(super) fn of(&self, mels: &[f64]) -> Vec<f64> {
        let mut magnitudes = vec![0.0; mels.len() / self.mels() * self.bins()];
        let groups = magnitudes.par_chunks_mut(SIDES * self.bins()).zip(mels.par_chunks(SIDES * self.mels()));
        groups.for_each(|(magnitudes, mels)| {
            let mut sides = vec![[0.0; SIDES]; self.mels()];
            for (side, frame) in mels.chunks_exact(self.mels()).enumerate() {
                frame.iter().zip(&mut sides).for_each(|(mel, sides)| sides[side] = *mel);
            }
            let spectra = match self.method {
                MelMethod::Transposed => self.transposed(&sides),
                MelMethod::LeastSquares => self.least_squares(&sides),
            };
            for (side, frame) in magnitudes.chunks_exact_mut(self.bins()).enumerate() {
                for (magnitude, sides) in frame.iter_mut().zip(&spectra) {
                    *magnitude =
                        if self.power == 1.0 { sides[side] } else { sides[side].powf(1.0 / self.power) };
                }
            }
        });
        magnitudes
    }

    fn transposed(&self, mels: &[[f64; SIDES]]) -> Rows {
        let mut spectra = vec![[0.0; SIDES]; self.bins()];
        self.filters.apply_transposed(mels, &mut spectra);
        spectra
    }

    /// Projected gradient descent with Nesterov's momentum, which restarts when it points uphill
    /// (O'Donoghue and Candès, "Adaptive restart for accelerated gradient schemes", 2015). The
    /// start is the minimum-norm spectrum with these mels (as in librosa), clipped at 0.
    fn least_squares(&self, mels: &[[f64; SIDES]]) -> Rows {
        let mut spectra = self.transposed(&self.divided(mels));
        spectra.iter_mut().flatten().for_each(|value| *value = value.max(0.0));
        let (mut ahead, mut gradient) = (spectra.clone(), spectra.clone());
        let mut residual = mels.to_vec();
        let mut pace = [1.0_f64; SIDES];
        for _ in 0..STEPS {
            self.filters.apply(&ahead, &mut residual);
            for (residual, mel) in residual.iter_mut().flatten().zip(mels.as_flattened()) {
                *residual -= mel;
            }
            self.filters.apply_transposed(&residual, &mut gradient);
            vectorised(
                #[inline(always)]
                || self.step(&mut spectra, &mut ahead, &mut gradient, &mut pace),
            );
        }
        spectra
    }

    /// One step from the extrapolated point `ahead`, which is updated. `gradient` is overwritten.
    #[inline(always)]
    fn step(
        &self,
        spectra: &mut [[f64; SIDES]],
        ahead: &mut [[f64; SIDES]],
        gradient: &mut [[f64; SIDES]],
        pace: &mut [f64; SIDES],
    ) {
        // For each side, whether the momentum points up the gradient. It is then reset.
        let mut upwards = [0.0; SIDES];
        for (((gradient, ahead), before), step) in
            gradient.iter_mut().zip(ahead.iter()).zip(spectra.iter()).zip(&self.steps)
        {
            for side in 0..SIDES {
                let next = (ahead[side] - step * gradient[side]).max(0.0);
                upwards[side] += (ahead[side] - next) * (next - before[side]);
                gradient[side] = next;
            }
        }
        let mut momentum = [0.0; SIDES];
        for side in 0..SIDES {
            let last = if upwards[side] > 0.0 { 1.0 } else { pace[side] };
            pace[side] = (1.0 + (1.0 + 4.0 * last * last).sqrt()) / 2.0;
            momentum[side] = (last - 1.0) / pace[side];
        }
        for ((next, ahead), spectra) in gradient.iter().zip(ahead).zip(spectra) {
            for side in 0..SIDES {
                ahead[side] = next[side] + momentum[side] * (next[side] - spectra[side]);
                spectra[side] = next[side];
            }
        }
    }

    /// Solves for mels divided by the products of filters. The transposed filters turn the result
    /// into the minimum-norm spectrum.
    fn divided(&self, mels: &[[f64; SIDES]]) -> Rows {
        let (mut rows, count) = (mels.to_vec(), self.mels());
        for at in 0..count {
            let mut row = rows[at];
            for (weight, other) in self.factor[at * count..].iter().zip(&rows[..at]) {
                (0..SIDES).for_each(|side| row[side] -= weight * other[side]);
            }
            rows[at] = row.map(|value| value / self.factor[at * count + at]);
        }
        for at in (0..count).rev() {
            let mut row = rows[at];
            for (other, values) in rows.iter().enumerate().skip(at + 1) {
                let weight = self.factor[other * count + at];
                (0..SIDES).for_each(|side| row[side] -= weight * values[side]);
            }
            rows[at] = row.map(|value| value / self.factor[at * count + at]);
        }
        rows
    }
}

/// Cholesky factor of the products of filters with each other, plus a ridge.
fn cholesky(filters: &MelFilters) -> Vec<f64> {
    let (count, dense) = (filters.len(), filters.dense());
    let row = |at: usize| &dense[at * filters.bins()..(at + 1) * filters.bins()];
    let product = |a: usize, b: usize| -> f64 {
        row(a).iter().zip(row(b)).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let largest = (0..count).map(|at| product(at, at)).fold(f64::MIN_POSITIVE, f64::max);
    let mut factor = vec![0.0; count * count];
    for a in 0..count {
        for b in 0..=a {
            let known: f64 = (0..b).map(|at| factor[a * count + at] * factor[b * count + at]).sum();
            let rest = product(a, b) - known;
            factor[a * count + b] = if a == b {
                (rest + RIDGE * largest).max(RIDGE * largest).sqrt()
            } else {
                rest / factor[b * count + b]
            };
        }
    }
    factor
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{MelScale, MelSpec};

    use super::*;

    /// Filters of Tacotron 2 and of OpenSeq2Seq's Tacotron.
    const SPECS: [MelSpec; 2] = [
        MelSpec { scale: MelScale::Slaney, area_normalized: true, low_hz: 0.0, high_hz: Some(8_000.0) },
        MelSpec { scale: MelScale::Htk, area_normalized: false, low_hz: 0.0, high_hz: None },
    ];

    fn spectra(bins: usize, frames: usize) -> Vec<[f64; 1]> {
        (0..bins * frames).map(|at| [(at * at % 97) as f64 * (at % 3) as f64]).collect()
    }

    fn mels(filters: &MelFilters, spectra: &[[f64; 1]]) -> Vec<f32> {
        let of = |frame: &[[f64; 1]]| {
            let mut mels = vec![[0.0]; filters.len()];
            filters.apply(frame, &mut mels);
            mels.into_iter().map(|[mel]| mel as f32).collect::<Vec<_>>()
        };
        spectra.chunks_exact(filters.bins()).flat_map(of).collect()
    }

    #[test]
    fn mels_of_spectra_are_met() {
        for spec in SPECS {
            let filters = MelFilters::triangular(22_050, 1024, 80, &spec);
            let due = mels(&filters, &spectra(513, 19));
            let inverse = MelInverse::new(filters.clone(), MelMethod::LeastSquares, 1.0).unwrap();
            let made = inverse.magnitudes(&due).unwrap();
            assert_eq!(made.len(), 513 * 19);
            assert!(made.iter().all(|magnitude| *magnitude >= 0.0));
            let again = mels(&filters, &made.iter().map(|m| [f64::from(*m)]).collect::<Vec<_>>());
            let largest = due.iter().fold(0.0_f32, |most, mel| most.max(*mel));
            // HTK's narrowest filters converge most slowly: 1.2e-4 here, while librosa stops at
            // 4.8e-4.
            for (a, b) in again.iter().zip(&due) {
                assert!((a - b).abs() < 2e-4 * largest, "{a} {b}");
            }
            // A frame gives the same result alone, and its power gives the root.
            let power = MelInverse::new(filters, MelMethod::LeastSquares, 2.0).unwrap();
            let alone = power.magnitudes(&due[80 * 10..80 * 11]).unwrap();
            for (root, magnitude) in alone.iter().zip(&made[513 * 10..]) {
                assert!((root - magnitude.sqrt()).abs() <= 1e-6 * root);
            }
        }
    }

    #[test]
    fn filters_without_bins_and_twins_break_nothing() {
        let filters = MelFilters::triangular(16_000, 64, 200, &MelSpec::default());
        for method in [MelMethod::LeastSquares, MelMethod::Transposed] {
            let inverse = MelInverse::new(filters.clone(), method, 1.0).unwrap();
            let made = inverse.magnitudes(&[1.0; 400]).unwrap();
            assert_eq!((made.len(), inverse.bins()), (66, 33));
            assert!(made.iter().all(|magnitude| magnitude.is_finite() && *magnitude >= 0.0));
        }
    }

    #[test]
    fn settings_and_mels_without_sense_are_errors() {
        let filters = MelFilters::triangular(16_000, 512, 40, &MelSpec::default());
        let none = MelFilters::triangular(16_000, 512, 0, &MelSpec::default());
        assert!(MelInverse::new(none, MelMethod::Transposed, 1.0).is_err());
        for power in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(MelInverse::new(filters.clone(), MelMethod::Transposed, power).is_err());
        }
        let inverse = MelInverse::new(filters, MelMethod::LeastSquares, 1.0).unwrap();
        assert!(inverse.magnitudes(&[]).unwrap().is_empty());
        assert!(matches!(inverse.magnitudes(&[1.0; 41]), Err(SynthesisError::Shape { .. })));
        assert!(matches!(inverse.magnitudes(&[f32::NAN; 40]), Err(SynthesisError::Value { .. })));
    }
}
