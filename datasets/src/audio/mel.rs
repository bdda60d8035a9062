//! Mel scales and filter banks as in librosa, Kaldi, python_speech_features and TensorFlow.

use zoo_recipes::{MelScale, MelSpec};

use super::vectors::vectorised;

/// Slaney's scale is linear up to this frequency in hertz.
const SLANEY_LINEAR_TO: f64 = 1000.0;
/// Hertz per mel in the linear part of Slaney's scale.
const SLANEY_HERTZ: f64 = 200.0 / 3.0;
/// Mels per factor of 6.4 in frequency, above the linear part of Slaney's scale.
const SLANEY_MELS: f64 = 27.0;

/// Converts a frequency in hertz to mels.
pub fn mel(scale: MelScale, hertz: f64) -> f64 {
    match scale {
        MelScale::Htk => 2595.0 * (1.0 + hertz / 700.0).log10(),
        MelScale::Slaney if hertz < SLANEY_LINEAR_TO => hertz / SLANEY_HERTZ,
        MelScale::Slaney => {
            SLANEY_LINEAR_TO / SLANEY_HERTZ + (hertz / SLANEY_LINEAR_TO).ln() * SLANEY_MELS / 6.4_f64.ln()
        }
    }
}

/// Converts mels to a frequency in hertz; the inverse of [`mel`].
pub fn hertz(scale: MelScale, mels: f64) -> f64 {
    let corner = SLANEY_LINEAR_TO / SLANEY_HERTZ;
    match scale {
        MelScale::Htk => 700.0 * (10_f64.powf(mels / 2595.0) - 1.0),
        MelScale::Slaney if mels < corner => mels * SLANEY_HERTZ,
        MelScale::Slaney => SLANEY_LINEAR_TO * ((mels - corner) * 6.4_f64.ln() / SLANEY_MELS).exp(),
    }
}

/// HTK's mels, with the natural logarithm as in Kaldi and TensorFlow.
fn natural_mel(hertz: f64) -> f64 {
    1127.0 * (1.0 + hertz / 700.0).ln()
}

/// Mel filters over the `fft / 2 + 1` bins of a spectrum. They are computed in FP64 and stored in
/// FP32 without their zeros.
#[derive(Debug, Clone, PartialEq)]
pub struct MelFilters {
    bins: usize,
    /// First bin of each filter, and its end in `weights`.
    filters: Vec<(usize, usize)>,
    weights: Vec<f32>,
}

impl MelFilters {
    /// Filters of librosa's `filters.mel`: triangles in hertz whose corners are evenly spaced in
    /// mels.
    pub fn triangular(rate: u32, fft: usize, count: usize, spec: &MelSpec) -> Self {
        let rate = f64::from(rate);
        let (low, high) = (mel(spec.scale, spec.low_hz), mel(spec.scale, spec.high_hz.unwrap_or(rate / 2.0)));
        let corner = |at: usize| hertz(spec.scale, low + (high - low) * at as f64 / (count + 1) as f64);
        Self::collect(fft, count, |filter, bin| {
            let (left, centre, right) = (corner(filter), corner(filter + 1), corner(filter + 2));
            let frequency = bin as f64 * rate / fft as f64;
            let height = ((frequency - left) / (centre - left)).min((right - frequency) / (right - centre));
            height.max(0.0) * if spec.area_normalized { 2.0 / (right - left) } else { 1.0 }
        })
    }

    /// Kaldi's filters: triangles in mels (HTK's, with natural logarithms). The highest bin is in
    /// none of them. A `high_hz` of 0 or less is relative to half the rate.
    pub fn kaldi(rate: u32, fft: usize, count: usize, low_hz: f64, high_hz: f64) -> Self {
        let rate = f64::from(rate);
        let high_hz = if high_hz <= 0.0 { high_hz + rate / 2.0 } else { high_hz };
        let (low, high) = (natural_mel(low_hz), natural_mel(high_hz));
        let step = (high - low) / (count + 1) as f64;
        Self::collect(fft, count, |filter, bin| {
            if bin == fft / 2 {
                return 0.0;
            }
            let (left, right) = (low + filter as f64 * step, low + (filter + 2) as f64 * step);
            let at = natural_mel(bin as f64 * rate / fft as f64);
            ((at - left) / step).min((right - at) / step).max(0.0)
        })
    }

    /// TensorFlow's filters: Kaldi's triangles, without the bins up to the one nearest to `low_hz`
    /// and without those above `high_hz`. TensorFlow applies them to magnitudes.
    pub fn tensorflow(rate: u32, fft: usize, count: usize, low_hz: f64, high_hz: f64) -> Self {
        let spacing = f64::from(rate) / fft as f64;
        let (first, last) = ((1.5 + low_hz / spacing) as usize, (high_hz / spacing) as usize);
        let (low, high) = (natural_mel(low_hz), natural_mel(high_hz));
        let step = (high - low) / (count + 1) as f64;
        Self::collect(fft, count, |filter, bin| {
            let left = low + filter as f64 * step;
            let at = natural_mel(bin as f64 * spacing);
            let inside = (first..=last).contains(&bin);
            if inside { ((at - left) / step).min((left + 2.0 * step - at) / step).max(0.0) } else { 0.0 }
        })
    }

    /// Filters of python_speech_features' `get_filterbanks`: HTK mels from 0 to half the rate, with
    /// corners rounded down to whole bins. A filter whose corners coincide is empty.
    pub fn on_whole_bins(rate: u32, fft: usize, count: usize) -> Self {
        let rate = f64::from(rate);
        let high = mel(MelScale::Htk, rate / 2.0);
        let corner = |at: usize| {
            let frequency = hertz(MelScale::Htk, high * at as f64 / (count + 1) as f64);
            ((fft + 1) as f64 * frequency / rate).floor()
        };
        Self::collect(fft, count, |filter, bin| {
            let (left, centre, right) = (corner(filter), corner(filter + 1), corner(filter + 2));
            let at = bin as f64;
            if at >= left && at < centre {
                (at - left) / (centre - left)
            } else if at >= centre && at < right {
                (right - at) / (right - centre)
            } else {
                0.0
            }
        })
    }

    fn collect(fft: usize, count: usize, weight: impl Fn(usize, usize) -> f64) -> Self {
        let bins = fft / 2 + 1;
        let (mut filters, mut weights) = (Vec::with_capacity(count), Vec::new());
        for filter in 0..count {
            let row: Vec<f32> = (0..bins).map(|bin| weight(filter, bin) as f32).collect();
            let first = row.iter().position(|weight| *weight > 0.0).unwrap_or(0);
            let end = row.iter().rposition(|weight| *weight > 0.0).map_or(first, |last| last + 1);
            weights.extend_from_slice(&row[first..end]);
            filters.push((first, weights.len()));
        }
        Self { bins, filters, weights }
    }

    /// Number of filters.
    pub fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether there are no filters.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Number of bins of the spectra to filter.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// All weights, [filters, bins] row-major.
    pub fn dense(&self) -> Vec<f32> {
        let mut dense = vec![0.0; self.len() * self.bins];
        for (row, (first, weights)) in dense.chunks_exact_mut(self.bins).zip(self.rows()) {
            row[first..first + weights.len()].copy_from_slice(weights);
        }
        dense
    }

    /// Filters several spectra side by side: `energies[f] = sum over b of weight[f, b] spectra[b]`.
    ///
    /// # Panics
    /// If the spectra have fewer than [`Self::bins`] bins.
    pub fn apply<const SIDES: usize>(&self, spectra: &[[f64; SIDES]], energies: &mut [[f64; SIDES]]) {
        vectorised(
            #[inline(always)]
            || {
                for (energy, (first, weights)) in energies.iter_mut().zip(self.rows()) {
                    *energy = weighted(weights, &spectra[first..first + weights.len()]);
                }
            },
        );
    }

    /// Applies the transposed filters to several rows of energies side by side: `spectra[b] = sum
    /// over f of weight[f, b] energies[f]`.
    ///
    /// # Panics
    /// If the spectra have fewer than [`Self::bins`] bins.
    pub fn apply_transposed<const SIDES: usize>(
        &self,
        energies: &[[f64; SIDES]],
        spectra: &mut [[f64; SIDES]],
    ) {
        vectorised(
            #[inline(always)]
            || {
                spectra.fill([0.0; SIDES]);
                for (energies, (first, weights)) in energies.iter().zip(self.rows()) {
                    for (sums, weight) in spectra[first..first + weights.len()].iter_mut().zip(weights) {
                        add(sums, f64::from(*weight), energies);
                    }
                }
            },
        );
    }

    fn rows(&self) -> impl Iterator<Item = (usize, &[f32])> {
        let starts = std::iter::once(0).chain(self.filters.iter().map(|(_, end)| *end));
        starts.zip(&self.filters).map(|(start, (first, end))| (*first, &self.weights[start..*end]))
    }
}

/// Weighted sums in four independent chains (every fourth term in one), so that an addition does
/// not wait for the previous one.
#[inline(always)]
fn weighted<const SIDES: usize>(weights: &[f32], spectra: &[[f64; SIDES]]) -> [f64; SIDES] {
    let (fours, rest) = weights.as_chunks::<4>();
    let (spectra, tail) = spectra.as_chunks::<4>();
    let mut sums = [[0.0; SIDES]; 4];
    for (weights, spectra) in fours.iter().zip(spectra) {
        for ((sums, weight), spectrum) in sums.iter_mut().zip(weights).zip(spectra) {
            add(sums, f64::from(*weight), spectrum);
        }
    }
    let mut last = [0.0; SIDES];
    for (weight, spectrum) in rest.iter().zip(tail) {
        add(&mut last, f64::from(*weight), spectrum);
    }
    let [a, b, c, d] = sums;
    std::array::from_fn(|side| (a[side] + b[side]) + (c[side] + d[side]) + last[side])
}

#[inline(always)]
fn add<const SIDES: usize>(sums: &mut [f64; SIDES], weight: f64, spectrum: &[f64; SIDES]) {
    for (sum, power) in sums.iter_mut().zip(spectrum) {
        *sum += weight * power;
    }
}

/// Number of frames whose spectra are filtered side by side.
const SIDES: usize = 8;

/// Writes two spectra side by side.
fn put<const SIDE: usize>(spectra: &mut [[f64; SIDES]], first: &[f64], second: &[f64]) {
    vectorised(
        #[inline(always)]
        || {
            for ((sides, first), second) in spectra.iter_mut().zip(first).zip(second) {
                (sides[SIDE], sides[SIDE + 1]) = (*first, *second);
            }
        },
    );
}

/// Collects spectra and filters several of them at once.
#[derive(Debug)]
pub(super) struct MelEnergies<'f> {
    filters: &'f MelFilters,
    spectra: Vec<[f64; SIDES]>,
    waiting: usize,
    energies: Vec<[f64; SIDES]>,
    values: Vec<f64>,
}

impl<'f> MelEnergies<'f> {
    /// Starts a collection for `frames` frames.
    pub(super) fn new(filters: &'f MelFilters, frames: usize) -> Self {
        Self {
            filters,
            spectra: vec![[0.0; SIDES]; filters.bins()],
            waiting: 0,
            energies: vec![[0.0; SIDES]; filters.len()],
            values: Vec::with_capacity(frames * filters.len()),
        }
    }

    /// Adds the spectra of the next frame, or of the next two.
    pub(super) fn push(&mut self, first: &[f64], second: Option<&[f64]>) {
        let spectra = &mut self.spectra;
        match (self.waiting, second) {
            (0, Some(second)) => put::<0>(spectra, first, second),
            (2, Some(second)) => put::<2>(spectra, first, second),
            (4, Some(second)) => put::<4>(spectra, first, second),
            (6, Some(second)) => put::<6>(spectra, first, second),
            (side, _) => {
                for (sides, value) in spectra.iter_mut().zip(first) {
                    sides[side] = *value;
                }
                self.pushed(1);
                return second.into_iter().for_each(|second| self.push(second, None));
            }
        }
        self.pushed(2);
    }

    fn pushed(&mut self, frames: usize) {
        self.waiting += frames;
        if self.waiting == SIDES {
            self.filter();
        }
    }

    fn filter(&mut self) {
        self.filters.apply(&self.spectra, &mut self.energies);
        for side in 0..self.waiting {
            self.values.extend(self.energies.iter().map(|sides| sides[side]));
        }
        self.waiting = 0;
    }

    /// Energies, [frames, filters] row-major.
    pub(super) fn finish(mut self) -> Vec<f64> {
        self.filter();
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_turn_back() {
        for scale in [MelScale::Slaney, MelScale::Htk] {
            for frequency in [0.0, 20.0, 999.0, 1000.0, 1001.0, 8000.0, 22_050.0] {
                assert!(
                    (hertz(scale, mel(scale, frequency)) - frequency).abs() < 1e-9,
                    "{scale:?} {frequency}"
                );
            }
        }
    }

    #[test]
    fn dense_and_sparse_filters_agree() {
        let filters = MelFilters::triangular(16_000, 512, 64, &MelSpec::default());
        let frames: Vec<Vec<f64>> = (1..=SIDES + 3)
            .map(|frame| (0..257).map(|bin| (bin * 37 * frame % 101) as f64).collect())
            .collect();
        let mut collected = MelEnergies::new(&filters, frames.len());
        // Frames in pairs, alone, and in pairs that straddle two blocks.
        let (pairs, alone) = frames.as_chunks::<2>();
        let (begin, end) = pairs.split_at(2);
        begin.iter().for_each(|[first, second]| collected.push(first, Some(second)));
        alone.iter().for_each(|frame| collected.push(frame, None));
        end.iter().for_each(|[first, second]| collected.push(first, Some(second)));
        let in_order: Vec<_> = begin.iter().flatten().chain(alone).chain(end.iter().flatten()).collect();
        let (collected, dense) = (collected.finish(), filters.dense());
        assert_eq!(collected.len(), frames.len() * 64);
        for (spectrum, energies) in in_order.into_iter().zip(collected.chunks_exact(64)) {
            for (row, energy) in dense.chunks_exact(257).zip(energies) {
                let due: f64 = row.iter().zip(spectrum).map(|(w, s)| f64::from(*w) * s).sum();
                assert!((due - energy).abs() < 1e-9 * due.abs().max(1.0));
            }
        }
    }

    #[test]
    fn more_filters_than_bins_leave_some_empty_and_break_nothing() {
        for filters in [
            MelFilters::triangular(16_000, 64, 200, &MelSpec::default()),
            MelFilters::kaldi(16_000, 64, 200, 20.0, -400.0),
            MelFilters::on_whole_bins(16_000, 64, 200),
            MelFilters::tensorflow(16_000, 64, 200, 20.0, 8_000.0),
        ] {
            assert_eq!((filters.len(), filters.bins()), (200, 33));
            let mut energies = vec![[1.0]; 200];
            filters.apply(&[[1.0]; 33], &mut energies);
            assert!(energies.contains(&[0.0]));
        }
    }
}
