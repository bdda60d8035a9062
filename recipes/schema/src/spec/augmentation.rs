//! Augmentation of speech training examples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Augmentations of training examples. An absent part is not applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AugmentationSpec {
    /// Speed perturbation. It also changes the pitch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedSpec>,
    /// White noise on the waveform, added after the speed perturbation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSpec>,
    /// Masks: parts of the normalised features that are set to 0 (SpecAugment).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<MasksSpec>,
}

/// Speed perturbation: the waveform is resampled and read at its original rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SpeedSpec {
    /// A factor drawn from [1 - ratio, 1 + ratio] for each example (OpenSeq2Seq).
    /// It multiplies the *number of samples*: 1.05 is slower.
    Uniform {
        /// Largest change of the factor.
        ratio: f64,
        /// Version of resampy's filter.
        #[serde(default)]
        filter: KaiserBest,
    },
    /// A factor drawn from a list for each example (OpenSeq2Seq).
    /// It multiplies the *number of samples*: 1.1 is slower.
    Choice {
        /// Factors, all equally likely.
        factors: Vec<f64>,
        /// Version of resampy's filter.
        #[serde(default)]
        filter: KaiserBest,
    },
    /// Adds a copy of every example at each of these speeds to every epoch (Kaldi, lhotse).
    /// A factor *divides* the number of samples: 1.1 is faster. Resampling uses torchaudio's sinc
    /// filter.
    Copies {
        /// Speed factors of the copies. Factor 1, the example itself, is not listed.
        factors: Vec<f64>,
    },
}

/// The filter `kaiser_best` of resampy, which differs between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum KaiserBest {
    /// resampy 0.2, current when OpenSeq2Seq was written: 64 zero crossings.
    #[default]
    #[serde(rename = "resampy-0.2")]
    Resampy02,
    /// resampy 0.4: 50 zero crossings, finer steps.
    #[serde(rename = "resampy-0.4")]
    Resampy04,
}

/// White Gaussian noise. Its level is drawn for each example: a whole number of decibels in
/// [min_db, max_db). 0 dB is a standard deviation of 1 in the scale of the front end. For `librosa`
/// this is the peak. For `python-speech-features` it is one step of 16 bits, so the published -90
/// to -60 dB have almost no effect there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseSpec {
    /// Lowest level, in decibels.
    pub min_db: i32,
    /// Upper limit of the level, in decibels, exclusive.
    pub max_db: i32,
}

/// Masks over features and frames. The width is drawn from 0 to the largest, inclusive. The start
/// is drawn from the positions where the mask fits, except the last one (OpenSeq2Seq).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MasksSpec {
    /// Number of masks over features.
    #[serde(default)]
    pub frequency_masks: u32,
    /// Largest width of a mask over features, in features.
    #[serde(default)]
    pub max_features: u32,
    /// Number of masks over frames.
    #[serde(default)]
    pub time_masks: u32,
    /// Largest width of a mask over frames, in frames.
    #[serde(default)]
    pub max_frames: u32,
}
