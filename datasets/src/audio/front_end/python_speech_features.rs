//! python_speech_features 0.6 (`base.py`, `sigproc.py`) as called by OpenSeq2Seq's
//! `get_speech_features_psf`.
//!
//! Known differences: an utterance shorter than a frame becomes one frame and its padding, while
//! OpenSeq2Seq fails on some of them. A frame's length is rounded down for all outputs; OpenSeq2Seq
//! rounds to the nearest for mel filters, which gives the same length for whole milliseconds at
//! whole kilohertz.

use zoo_recipes::{FeatureOutput, FeaturesSpec, WindowFunction};

use super::cepstra::{Cepstra, Scaling};
use super::{at_least, decibels, peak, pre_emphasised};
use crate::audio::mel::{MelEnergies, MelFilters};
use crate::audio::spectrum::{Spectrum, windowed};
use crate::audio::vectors::{largest, logarithms, vectorised};
use crate::audio::window::window;

/// Minimum power of a bin before the conversion to decibels.
const POWER_FLOOR: f64 = 1e-30;

#[derive(Debug, Clone)]
pub(super) struct PythonSpeechFeatures {
    window: Vec<f64>,
    hop: usize,
    pad_frames_to: usize,
    spectrum: Spectrum,
    output: Output,
}

#[derive(Debug, Clone)]
enum Output {
    Spectrogram { bins: usize },
    Mel { filters: MelFilters, preemphasis: f64, cepstra: Option<Cepstra> },
}

impl PythonSpeechFeatures {
    pub(super) fn new(spec: &FeaturesSpec, rate: u32) -> Option<Self> {
        let FeaturesSpec::PythonSpeechFeatures { output, features, preemphasis, pad_frames_to, .. } = spec
        else {
            return None;
        };
        let (fft, features) = (spec.fft_length(rate), *features as usize);
        let mel = |count: usize, cepstra: Option<Cepstra>| Output::Mel {
            filters: MelFilters::on_whole_bins(rate, fft, count),
            preemphasis: *preemphasis,
            cepstra,
        };
        let (function, output) = match output {
            FeatureOutput::Spectrogram => (WindowFunction::Hann, Output::Spectrogram { bins: features }),
            FeatureOutput::LogMel => (WindowFunction::Rectangular, mel(features, None)),
            FeatureOutput::Mfcc => {
                let cepstra = Cepstra::new(2 * features, features, Scaling::Orthonormal, 2 * features);
                (WindowFunction::Rectangular, mel(2 * features, Some(cepstra)))
            }
        };
        Some(Self {
            window: window(function, spec.window_samples(rate)),
            hop: spec.hop_samples(rate),
            pad_frames_to: *pad_frames_to as usize,
            spectrum: Spectrum::new(fft),
            output,
        })
    }

    /// Number of frames that the samples reach, without padding frames.
    fn reached(&self, samples: usize) -> usize {
        1 + samples.saturating_sub(self.window.len()).div_ceil(self.hop)
    }

    pub(super) fn frames(&self, samples: usize) -> usize {
        if samples == 0 { 0 } else { self.reached(samples).next_multiple_of(self.pad_frames_to) }
    }

    /// Features of samples in the scale of 16 bits.
    pub(super) fn features(&self, samples: &[f32]) -> Vec<f64> {
        let frames = self.frames(samples.len());
        if frames == 0 {
            return Vec::new();
        }
        let mut integers = integers(samples);
        let length = (frames - 1) * self.hop + self.window.len();
        let scale = 1.0 / self.spectrum.length() as f64;
        match &self.output {
            Output::Spectrogram { bins } => {
                let mut signal = pre_emphasised(&integers, 0.0);
                signal.resize(length, 0.0);
                let in_decibels = |powers: &mut [f64]| {
                    vectorised(
                        #[inline(always)]
                        || powers.iter_mut().for_each(|power| *power *= scale),
                    );
                    at_least(powers, POWER_FLOOR);
                    decibels(powers);
                };
                let mut loudest = f64::NEG_INFINITY;
                let mut values = Vec::with_capacity(frames * bins);
                self.spectrum.each_power(frames, 0..self.window.len(), self.framing(&signal), |power| {
                    loudest = largest(power, loudest);
                    let from = values.len();
                    values.extend_from_slice(&power[..*bins]);
                    in_decibels(&mut values[from..]);
                });
                let mut loudest = [loudest];
                in_decibels(&mut loudest);
                let [loudest] = loudest;
                vectorised(
                    #[inline(always)]
                    || values.iter_mut().for_each(|value| *value -= loudest),
                );
                values
            }
            Output::Mel { filters, preemphasis, cepstra } => {
                // OpenSeq2Seq appends its silence before the pre-emphasis, python_speech_features
                // its own after it.
                let added = (frames - self.reached(samples.len())) * self.hop;
                integers.resize(samples.len() + added, 0.0);
                let mut signal = pre_emphasised(&integers, *preemphasis);
                signal.resize(length, 0.0);
                let mut energies = MelEnergies::new(filters, frames);
                self.spectrum.each_pair(
                    frames,
                    0..self.window.len(),
                    self.framing(&signal),
                    |first, second| energies.push(first, second),
                );
                let mut energies = energies.finish();
                vectorised(
                    #[inline(always)]
                    || {
                        for energy in &mut energies {
                            *energy = if *energy == 0.0 { f64::EPSILON } else { *energy * scale };
                        }
                    },
                );
                logarithms(&mut energies);
                match cepstra {
                    Some(cepstra) => cepstra.of(&energies),
                    None => energies,
                }
            }
        }
    }

    /// Returns a function that writes the windowed samples of a frame.
    fn framing<'s>(&'s self, signal: &'s [f64]) -> impl Fn(usize, &mut [f64]) + 's {
        |frame, place| windowed(place, &signal[frame * self.hop..], &self.window)
    }
}

/// Converts samples to integers; the largest has 15 bits. In FP32 as in OpenSeq2Seq, because the
/// truncation depends on the last bit.
fn integers(samples: &[f32]) -> Vec<f32> {
    let peak = peak(samples, 1.0);
    let mut integers = Vec::with_capacity(samples.len());
    vectorised(
        #[inline(always)]
        || integers.extend(samples.iter().map(|sample| (sample / peak * 32_767.0).trunc())),
    );
    integers
}
