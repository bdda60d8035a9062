//! librosa as OpenSeq2Seq's `get_speech_features_librosa` calls it (Jasper, QuartzNet).
//!
//! Where we knowingly differ: FP64 inside where librosa keeps the samples' FP32; `mfcc` is librosa's own, of decibels (floor
//! 1e-10, at most 80 below the loudest), while OpenSeq2Seq hands the power spectrum to librosa in place of decibels.

use zoo_recipes::{FeatureOutput, FeaturesSpec};

use super::cepstra::Cepstra;
use super::{INT16, decibels, peak, pre_emphasise};
use crate::audio::mel::MelFilters;
use crate::audio::stft::Stft;
use crate::random::RandomStream;

/// Least power of a spectrogram's bin.
const POWER_FLOOR: f64 = 1e-30;
/// Least mel energy under cepstra,
const CEPSTRA_FLOOR: f64 = 1e-10;
/// and how far below the loudest they may lie, in decibels.
const CEPSTRA_RANGE: f64 = 80.0;

#[derive(Debug, Clone)]
pub(super) struct Librosa {
    stft: Stft,
    peak_normalize: bool,
    dither: f64,
    preemphasis: f64,
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
                cepstra: Cepstra::new(2 * features, features, 0),
            },
        };
        let spectrogram = matches!(output, Output::Spectrogram { .. });
        Some(Self {
            stft: Stft::new(fft, spec.hop_samples(rate), *window, spec.window_samples(rate), Some(*padding)),
            peak_normalize: *peak_normalize,
            dither: *dither,
            preemphasis: if spectrogram { 0.0 } else { *preemphasis },
            output,
        })
    }

    pub(super) fn frames(&self, samples: usize) -> usize {
        self.stft.frames(samples)
    }

    /// Scaled to a peak of 1, in FP32 as there.
    pub(super) fn scaled(&self, samples: &[f32]) -> Vec<f32> {
        if !self.peak_normalize {
            return samples.to_vec();
        }
        let peak = peak(samples.iter().map(|sample| sample * INT16));
        samples.iter().map(|sample| sample * INT16 / peak).collect()
    }

    pub(super) fn features(&self, mut samples: Vec<f32>, dither: Option<RandomStream>) -> Vec<f64> {
        if let Some(mut stream) = dither.filter(|_| self.dither > 0.0) {
            stream.add_normal(&mut samples, self.dither);
        }
        let mut signal: Vec<f64> = samples.into_iter().map(f64::from).collect();
        if self.preemphasis > 0.0 {
            pre_emphasise(&mut signal, self.preemphasis);
        }
        let mut values = Vec::new();
        match &self.output {
            Output::Spectrogram { bins } => self.stft.each_power(&signal, |power| {
                values.extend(power[..*bins].iter().map(|power| decibels(power.max(POWER_FLOOR))));
            }),
            Output::LogMel { filters, offset } => {
                let mut energies = vec![0.0; filters.len()];
                self.stft.each_power(&signal, |power| {
                    filters.apply(power, &mut energies);
                    values.extend(energies.iter().map(|energy| (energy + offset).ln()));
                });
            }
            Output::Cepstra { filters, cepstra } => {
                let mut energies = vec![0.0; filters.len()];
                let mut all = Vec::new();
                self.stft.each_power(&signal, |power| {
                    filters.apply(power, &mut energies);
                    all.extend(energies.iter().map(|energy| decibels(energy.max(CEPSTRA_FLOOR))));
                });
                let least =
                    all.iter().fold(f64::NEG_INFINITY, |most: f64, one| most.max(*one)) - CEPSTRA_RANGE;
                all.iter_mut().for_each(|energy| *energy = energy.max(least));
                all.chunks_exact(filters.len()).for_each(|frame| cepstra.extend(frame, &mut values));
            }
        }
        values
    }
}
