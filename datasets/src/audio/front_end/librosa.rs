//! librosa as called by OpenSeq2Seq's `get_speech_features_librosa` (Jasper, QuartzNet).
//!
//! Known differences: computation is in FP64, while librosa keeps the samples' FP32. `mfcc` is
//! librosa's own, computed from decibels (floor 1e-10, at most 80 below the loudest), while
//! OpenSeq2Seq passes the power spectrum to librosa in place of decibels.

use std::ops::Range;

use zoo_recipes::{FeatureOutput, FeaturesSpec, TrimSpec};

use super::cepstra::{Cepstra, Scaling};
use super::{INT16, at_least, decibels, peak};
use crate::audio::mel::{MelEnergies, MelFilters};
use crate::audio::stft::Stft;
use crate::audio::trim::Nonsilent;
use crate::audio::vectors::{largest, logarithms, vectorised};
use crate::random::RandomStream;

/// Minimum power of a spectrogram's bin.
const POWER_FLOOR: f64 = 1e-30;
/// Minimum mel energy for cepstra.
const CEPSTRA_FLOOR: f64 = 1e-10;
/// Maximum distance of a mel energy below the loudest one for cepstra, in decibels.
const CEPSTRA_RANGE: f64 = 80.0;

#[derive(Debug, Clone)]
pub(super) struct Librosa {
    stft: Stft,
    trim: Option<Nonsilent>,
    peak_normalize: bool,
    dither: f64,
    output: Output,
}

#[derive(Debug, Clone)]
enum Output {
    Spectrogram { bins: usize },
    LogMel { filters: MelFilters, offset: f64 },
    Cepstra { filters: MelFilters, cepstra: Cepstra },
}

impl Librosa {
    pub(super) fn new(spec: &FeaturesSpec, rate: u32) -> Option<Self> {
        let FeaturesSpec::Librosa {
            output,
            features,
            window,
            padding,
            trim,
            peak_normalize,
            dither,
            preemphasis,
            mel,
            log_offset,
            ..
        } = spec
        else {
            return None;
        };
        let (fft, features) = (spec.fft_length(rate), *features as usize);
        let filters = |count| MelFilters::triangular(rate, fft, count, mel);
        let output = match output {
            FeatureOutput::Spectrogram => Output::Spectrogram { bins: features },
            FeatureOutput::LogMel => Output::LogMel { filters: filters(features), offset: *log_offset },
            FeatureOutput::Mfcc => Output::Cepstra {
                filters: filters(2 * features),
                cepstra: Cepstra::new(2 * features, features, Scaling::Orthonormal, 0),
            },
        };
        let spectrogram = matches!(output, Output::Spectrogram { .. });
        let (hop, length) = (spec.hop_samples(rate), spec.window_samples(rate));
        let stft = Stft::new(fft, hop, *window, length, Some(*padding));
        Some(Self {
            stft: stft.pre_emphasising(if spectrogram { 0.0 } else { *preemphasis }),
            trim: trim.map(|TrimSpec { below_db, window_samples }| Nonsilent {
                window: window_samples as usize,
                below_db,
            }),
            peak_normalize: *peak_normalize,
            dither: *dither,
            output,
        })
    }

    /// Number of frames for samples that are not trimmed. For trimmed recordings it depends on the
    /// sound.
    pub(super) fn frames(&self, samples: usize) -> usize {
        self.stft.frames(samples)
    }

    /// Range of the samples from which frames are made.
    pub(super) fn kept(&self, samples: &[f32]) -> Range<usize> {
        self.trim.map_or(0..samples.len(), |trim| trim.interval(samples))
    }

    /// Scales samples to a peak of 1, in FP32 as in OpenSeq2Seq.
    pub(super) fn scaled(&self, samples: &[f32]) -> Vec<f32> {
        if !self.peak_normalize {
            return samples.to_vec();
        }
        // Scaling by a power of two is exact.
        let peak = peak(samples, INT16);
        let mut scaled = Vec::with_capacity(samples.len());
        vectorised(
            #[inline(always)]
            || scaled.extend(samples.iter().map(|sample| sample * INT16 / peak)),
        );
        scaled
    }

    pub(super) fn features(&self, mut samples: Vec<f32>, dither: Option<RandomStream>) -> Vec<f64> {
        if self.trim.is_some() {
            let kept = self.kept(&samples);
            samples.truncate(kept.end);
            samples.drain(..kept.start);
        }
        if let Some(mut stream) = dither.filter(|_| self.dither > 0.0) {
            stream.add_normal(&mut samples, self.dither);
        }
        match &self.output {
            Output::Spectrogram { bins } => {
                let mut values = Vec::with_capacity(self.stft.frames(samples.len()) * bins);
                self.stft.each_power(&samples, |power| values.extend_from_slice(&power[..*bins]));
                at_least(&mut values, POWER_FLOOR);
                decibels(&mut values);
                values
            }
            Output::LogMel { filters, offset } => {
                let mut values = self.energies(filters, &samples);
                vectorised(
                    #[inline(always)]
                    || values.iter_mut().for_each(|energy| *energy += offset),
                );
                logarithms(&mut values);
                values
            }
            Output::Cepstra { filters, cepstra } => {
                let mut energies = self.energies(filters, &samples);
                at_least(&mut energies, CEPSTRA_FLOOR);
                decibels(&mut energies);
                let least = largest(&energies, f64::NEG_INFINITY) - CEPSTRA_RANGE;
                at_least(&mut energies, least);
                cepstra.of(&energies)
            }
        }
    }

    fn energies(&self, filters: &MelFilters, samples: &[f32]) -> Vec<f64> {
        let mut energies = MelEnergies::new(filters, self.stft.frames(samples.len()));
        self.stft.each_pair(samples, |first, second| energies.push(first, second));
        energies.finish()
    }
}
