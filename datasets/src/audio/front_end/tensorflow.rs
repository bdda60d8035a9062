//! TensorFlow's ops `AudioSpectrogram` (of squared magnitudes) and `Mfcc`
//! (`tensorflow/core/kernels/spectrogram.cc`, `mfcc.cc`, `mfcc_mel_filterbank.cc`, `mfcc_dct.cc`)
//! as called by Mozilla's DeepSpeech (`util/feeding.py`).
//!
//! Known difference: computation is in FP64 throughout, while the first op passes its spectrogram
//! to the second in FP32.

use zoo_recipes::{FeaturesSpec, WindowFunction};

use super::at_least;
use super::cepstra::{Cepstra, Scaling};
use crate::audio::mel::{MelEnergies, MelFilters};
use crate::audio::spectrum::{Spectrum, windowed};
use crate::audio::vectors::{logarithms, vectorised};
use crate::audio::window::window;

/// Minimum output of a filter before the logarithm.
const FLOOR: f64 = 1e-12;

#[derive(Debug, Clone)]
pub(super) struct TensorFlow {
    window: Vec<f64>,
    hop: usize,
    spectrum: Spectrum,
    filters: MelFilters,
    cepstra: Cepstra,
}

impl TensorFlow {
    pub(super) fn new(spec: &FeaturesSpec, rate: u32) -> Option<Self> {
        let FeaturesSpec::TensorFlow { features, filters, low_hz, high_hz, .. } = spec else { return None };
        let (fft, filters) = (spec.fft_length(rate), *filters as usize);
        Some(Self {
            window: window(WindowFunction::HannPeriodic, spec.window_samples(rate)),
            hop: spec.hop_samples(rate),
            spectrum: Spectrum::new(fft),
            filters: MelFilters::tensorflow(rate, fft, filters, *low_hz, *high_hz),
            cepstra: Cepstra::new(filters, *features as usize, Scaling::Alike, 0),
        })
    }

    /// Number of frames that are completely within the samples.
    pub(super) fn frames(&self, samples: usize) -> usize {
        samples.checked_sub(self.window.len()).map_or(0, |rest| 1 + rest / self.hop)
    }

    pub(super) fn features(&self, samples: &[f32]) -> Vec<f64> {
        let signal: Vec<f64> = samples.iter().map(|sample| f64::from(*sample)).collect();
        let frames = self.frames(samples.len());
        let mut magnitudes = vec![0.0; self.spectrum.bins()];
        let mut energies = MelEnergies::new(&self.filters, frames);
        let fill = |frame: usize, place: &mut [f64]| {
            windowed(place, &signal[frame * self.hop..], &self.window);
        };
        self.spectrum.each_power(frames, 0..self.window.len(), fill, |power| {
            vectorised(
                #[inline(always)]
                || magnitudes.iter_mut().zip(power).for_each(|(magnitude, power)| *magnitude = power.sqrt()),
            );
            energies.push(&magnitudes, None);
        });
        let mut energies = energies.finish();
        at_least(&mut energies, FLOOR);
        logarithms(&mut energies);
        self.cepstra.of(&energies)
    }
}
