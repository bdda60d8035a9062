//! python_speech_features 0.6 (`base.py`, `sigproc.py`) as OpenSeq2Seq's `get_speech_features_psf` calls it.
//!
//! Where we knowingly differ: utterances shorter than a frame become one frame and its padding; OpenSeq2Seq stops at some of
//! them. A frame's length is rounded down for all outputs; there it is rounded to the nearest for mel filters, which is the same
//! for whole milliseconds at whole kilohertz.

use zoo_recipes::{FeatureOutput, FeaturesSpec, WindowFunction};

use super::cepstra::Cepstra;
use super::{decibels, peak, pre_emphasise};
use crate::audio::mel::MelFilters;
use crate::audio::spectrum::Spectrum;
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
                let cepstra = Cepstra::new(2 * features, features, 2 * features);
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
        // In FP32, as there: what is cut to an integer depends on the last bit.
        let peak = peak(samples.iter().copied());
        let mut signal = vec![0.0; (frames - 1) * self.hop + self.window.len()];
        for (integer, sample) in signal.iter_mut().zip(samples) {
            *integer = f64::from((sample / peak * 32_767.0).trunc());
        }
        if let Output::Mel { preemphasis, .. } = self.output {
            // OpenSeq2Seq's silence is there before the pre-emphasis, python_speech_features' own after it.
            let added = (frames - self.reached(samples.len())) * self.hop;
            pre_emphasise(&mut signal[..samples.len() + added], preemphasis);
        }
        let scale = 1.0 / self.spectrum.length() as f64;
        let mut room = self.spectrum.room();
        let mut values = Vec::new();
        let mut loudest = f64::NEG_INFINITY;
        let mut energies =
            vec![0.0; if let Output::Mel { filters, .. } = &self.output { filters.len() } else { 0 }];
        for frame in 0..frames {
            room.frame.fill(0.0);
            for ((place, sample), weight) in
                room.frame.iter_mut().zip(&signal[frame * self.hop..]).zip(&self.window)
            {
                *place = sample * weight;
            }
            let power = self.spectrum.power(&mut room);
            match &self.output {
                Output::Spectrogram { bins } => {
                    loudest = power.iter().fold(loudest, |loudest, power| loudest.max(*power));
                    values.extend(
                        power[..*bins].iter().map(|power| decibels((power * scale).max(POWER_FLOOR))),
                    );
                }
                Output::Mel { filters, cepstra, .. } => {
                    filters.apply(power, &mut energies);
                    for energy in &mut energies {
                        *energy = if *energy == 0.0 { f64::EPSILON.ln() } else { (*energy * scale).ln() };
                    }
                    match cepstra {
                        Some(cepstra) => cepstra.extend(&energies, &mut values),
                        None => values.extend_from_slice(&energies),
                    }
                }
            }
        }
        if let Output::Spectrogram { .. } = self.output {
            let loudest = decibels((loudest * scale).max(POWER_FLOOR));
            values.iter_mut().for_each(|value| *value -= loudest);
        }
        values
    }
}
