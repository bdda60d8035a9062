//! python_speech_features 0.6 (`base.py`, `sigproc.py`) as OpenSeq2Seq's `get_speech_features_psf` calls it.
//!
//! Where we knowingly differ: utterances shorter than a frame become one frame and its padding; OpenSeq2Seq stops at some of
//! them. A frame's length is rounded down for all outputs; there it is rounded to the nearest for mel filters, which is the same
//! for whole milliseconds at whole kilohertz.

use zoo_recipes::{FeatureOutput, FeaturesSpec, WindowFunction};

use super::cepstra::{Cepstra, Scaling};
use super::{at_least, decibels, peak, pre_emphasise};
use crate::audio::mel::{MelEnergies, MelFilters};
use crate::audio::spectrum::Spectrum;
use crate::audio::vectors::{largest, logarithms, vectorised};
use crate::audio::window::window;

/// Least power of a bin in decibels' logarithm.
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

    /// Frames that the samples reach into, before any are added.
    fn reached(&self, samples: usize) -> usize {
        1 + samples.saturating_sub(self.window.len()).div_ceil(self.hop)
    }

    pub(super) fn frames(&self, samples: usize) -> usize {
        if samples == 0 { 0 } else { self.reached(samples).next_multiple_of(self.pad_frames_to) }
    }

    /// Of samples in the scale of 16 bits.
    pub(super) fn features(&self, samples: &[f32]) -> Vec<f64> {
        let frames = self.frames(samples.len());
        if frames == 0 {
            return Vec::new();
        }
        let mut signal = vec![0.0; (frames - 1) * self.hop + self.window.len()];
        integers(samples, &mut signal);
        let scale = 1.0 / self.spectrum.length() as f64;
        match &self.output {
            Output::Spectrogram { bins } => {
                let mut loudest = f64::NEG_INFINITY;
                let mut values = Vec::with_capacity(frames * bins + 1);
                self.each_power(&signal, frames, |power| {
                    loudest = largest(power, loudest);
                    values.extend_from_slice(&power[..*bins]);
                });
                values.push(loudest);
                vectorised(
                    #[inline(always)]
                    || values.iter_mut().for_each(|power| *power *= scale),
                );
                at_least(&mut values, POWER_FLOOR);
                decibels(&mut values);
                let loudest = values.pop().unwrap_or_default();
                vectorised(
                    #[inline(always)]
                    || values.iter_mut().for_each(|value| *value -= loudest),
                );
                values
            }
            Output::Mel { filters, preemphasis, cepstra } => {
                // OpenSeq2Seq's silence is there before the pre-emphasis, python_speech_features' own after it.
                let added = (frames - self.reached(samples.len())) * self.hop;
                pre_emphasise(&mut signal[..samples.len() + added], *preemphasis);
                let mut energies = MelEnergies::new(filters, frames);
                self.each_power(&signal, frames, |power| energies.push(power));
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

    fn each_power(&self, signal: &[f64], frames: usize, mut visit: impl FnMut(&[f64])) {
        let mut room = self.spectrum.room();
        for frame in 0..frames {
            room.window(0, &signal[frame * self.hop..], &self.window);
            visit(self.spectrum.power(&mut room));
        }
    }
}

/// Samples as integers of which the largest has 15 bits; in FP32, as there: what is cut off depends on the last bit.
fn integers(samples: &[f32], signal: &mut [f64]) {
    let peak = peak(samples);
    vectorised(
        #[inline(always)]
        || {
            for (integer, sample) in signal.iter_mut().zip(samples) {
                *integer = f64::from((sample / peak * 32_767.0).trunc());
            }
        },
    );
}
