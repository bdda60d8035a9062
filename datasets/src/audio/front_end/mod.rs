//! Front ends: compute the input features of a recogniser, or the target features of a synthesiser,
//! from waveforms. Each file follows one library.
//!
//! A [`FrontEnd`] is planned once and used by many threads. All internal numbers are FP64.

mod cepstra;
mod kaldi;
mod librosa;
mod normalize;
mod python_speech_features;
mod tacotron;
mod tensorflow;

use std::ops::Range;

use zoo_recipes::{FeatureNorm, FeaturesSpec, Problem};

use self::kaldi::Kaldi;
use self::librosa::Librosa;
use self::python_speech_features::PythonSpeechFeatures;
use self::tacotron::Tacotron;
use self::tensorflow::TensorFlow;
use super::Turn;
use super::vectors::{logarithms, vectorised};
use crate::random::{Purpose, RandomStream};

/// Features of one utterance.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// [frames, width] row-major.
    pub values: Vec<f32>,
    /// Number of features per frame.
    pub width: usize,
}

impl Features {
    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.values.len() / self.width
    }
}

/// Why a spec does not give a valid front end or augmentation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SpecError {
    /// The problems of the spec.
    pub problems: Vec<Problem>,
}

impl SpecError {
    pub(super) fn unless_none(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

/// A planned front end.
#[derive(Debug, Clone)]
pub struct FrontEnd {
    analysis: Analysis,
    normalize: FeatureNorm,
    width: usize,
    rate: u32,
}

#[derive(Debug, Clone)]
enum Analysis {
    PythonSpeechFeatures(PythonSpeechFeatures),
    Librosa(Librosa),
    Kaldi(Kaldi),
    TensorFlow(TensorFlow),
    Tacotron(Tacotron),
}

impl FrontEnd {
    /// Plans the front end of a spec for audio of `rate` hertz.
    ///
    /// # Errors
    /// What is wrong with the spec's values.
    pub fn new(spec: &FeaturesSpec, rate: u32) -> Result<Self, SpecError> {
        SpecError::unless_none(spec.problems(rate))?;
        let (analysis, normalize) = match spec {
            FeaturesSpec::PythonSpeechFeatures { normalize, .. } => {
                (PythonSpeechFeatures::new(spec, rate).map(Analysis::PythonSpeechFeatures), normalize)
            }
            FeaturesSpec::Librosa { normalize, .. } => {
                (Librosa::new(spec, rate).map(Analysis::Librosa), normalize)
            }
            FeaturesSpec::Kaldi { normalize, .. } => (Kaldi::new(spec, rate).map(Analysis::Kaldi), normalize),
            FeaturesSpec::TensorFlow { normalize, .. } => {
                (TensorFlow::new(spec, rate).map(Analysis::TensorFlow), normalize)
            }
            FeaturesSpec::Tacotron { .. } => {
                (Tacotron::new(spec, rate).map(Analysis::Tacotron), &FeatureNorm::None)
            }
        };
        let analysis = analysis.expect("each front end is made of its own kind of spec");
        Ok(Self { analysis, normalize: *normalize, width: spec.features() as usize, rate })
    }

    /// The expected sample rate in hertz.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Number of features per frame.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Range of the samples from which frames are made: all samples, or without silence at both
    /// ends if the spec trims it.
    pub fn kept(&self, samples: &[f32]) -> Range<usize> {
        match &self.analysis {
            Analysis::Librosa(analysis) => analysis.kept(&analysis.scaled(samples)),
            Analysis::Tacotron(analysis) => analysis.kept(samples),
            _ => 0..samples.len(),
        }
    }

    /// Number of frames for `samples` samples that are not trimmed.
    pub fn frames(&self, samples: usize) -> usize {
        match &self.analysis {
            Analysis::PythonSpeechFeatures(analysis) => analysis.frames(samples),
            Analysis::Librosa(analysis) => analysis.frames(samples),
            Analysis::Kaldi(analysis) => analysis.frames(samples),
            Analysis::TensorFlow(analysis) => analysis.frames(samples),
            Analysis::Tacotron(analysis) => analysis.frames(samples),
        }
    }

    /// Number of silent frames that a batch appends to `frames` frames of sound, and the values of
    /// a silent frame. They count in an utterance's length.
    pub fn tail(&self, frames: usize) -> (usize, Vec<f32>) {
        match &self.analysis {
            Analysis::Tacotron(analysis) => analysis.tail(frames),
            _ => (0, Vec::new()),
        }
    }

    /// Padding value after the shorter utterances of a batch.
    pub fn batch_padding(&self) -> f32 {
        match &self.analysis {
            Analysis::Tacotron(analysis) => analysis.batch_padding(),
            _ => 0.0,
        }
    }

    /// Features of samples in [-1, 1). `dither` is the random stream for the noise in the spec;
    /// without it no noise is added.
    pub fn features(&self, samples: &[f32], dither: Option<RandomStream>) -> Features {
        self.of_scaled(self.scaled(samples), dither)
    }

    /// Features of utterance number `utterance` of an evaluation set (0 for a recording outside a
    /// set), without augmentation but with the front end's dither.
    pub fn evaluation(&self, samples: &[f32], utterance: u32) -> Features {
        let turn = Turn { seed: 0, epoch: 0, utterance };
        self.features(samples, Some(turn.stream(Purpose::Dither)))
    }

    /// Converts samples to the scale in which this front end's source augments them. Augmentation
    /// comes between this and [`Self::of_scaled`].
    pub(super) fn scaled(&self, samples: &[f32]) -> Vec<f32> {
        match &self.analysis {
            Analysis::PythonSpeechFeatures(_) => samples.iter().map(|sample| sample * INT16).collect(),
            Analysis::Librosa(analysis) => analysis.scaled(samples),
            Analysis::Kaldi(analysis) => analysis.scaled(samples),
            Analysis::TensorFlow(_) | Analysis::Tacotron(_) => samples.to_vec(),
        }
    }

    /// Features of samples in the scale of [`Self::scaled`].
    pub(super) fn of_scaled(&self, samples: Vec<f32>, dither: Option<RandomStream>) -> Features {
        let values = match &self.analysis {
            Analysis::PythonSpeechFeatures(analysis) => analysis.features(&samples),
            Analysis::Librosa(analysis) => analysis.features(samples, dither),
            Analysis::Kaldi(analysis) => analysis.features(samples, dither),
            Analysis::TensorFlow(analysis) => analysis.features(&samples),
            Analysis::Tacotron(analysis) => analysis.features(&samples),
        };
        Features { values: normalize::normalized(&values, self.width, self.normalize), width: self.width }
    }
}

/// The 16-bit integer for a sample of 1.
const INT16: f32 = 32_768.0;

/// OpenSeq2Seq adds this value, in the scale of 16 bits, to the peak before it divides by it.
const OVER_PEAK: f32 = 1e-5;

/// The largest magnitude of samples scaled by a power of two, plus [`OVER_PEAK`].
fn peak(samples: &[f32], scale: f32) -> f32 {
    vectorised(
        #[inline(always)]
        || {
            let (eights, rest) = samples.as_chunks::<8>();
            let mut lanes = [0.0_f32; 8];
            for eight in eights {
                for (lane, sample) in lanes.iter_mut().zip(eight) {
                    *lane = lane.max(sample.abs());
                }
            }
            scale * lanes.iter().chain(rest).fold(0.0, |peak: f32, sample| peak.max(sample.abs())) + OVER_PEAK
        },
    )
}

/// Raises values below `floor` to `floor`.
fn at_least(values: &mut [f64], floor: f64) {
    vectorised(
        #[inline(always)]
        || values.iter_mut().for_each(|value| *value = value.max(floor)),
    );
}

/// Computes 10 log10 of powers, in place.
fn decibels(powers: &mut [f64]) {
    logarithms(powers);
    vectorised(
        #[inline(always)]
        || powers.iter_mut().for_each(|power| *power *= 10.0 / std::f64::consts::LN_10),
    );
}

/// y[t] = x[t] - coefficient x[t - 1], y[0] = x[0].
fn pre_emphasised(samples: &[f32], coefficient: f64) -> Vec<f64> {
    let mut signal = Vec::with_capacity(samples.len());
    vectorised(
        #[inline(always)]
        || {
            if coefficient == 0.0 {
                signal.extend(samples.iter().map(|sample| f64::from(*sample)));
                return;
            }
            signal.extend(samples.first().map(|first| f64::from(*first)));
            let pairs = samples.iter().zip(samples.iter().skip(1));
            signal.extend(pairs.map(|(before, now)| f64::from(*now) - coefficient * f64::from(*before)));
        },
    );
    signal
}

#[cfg(test)]
mod tests;
