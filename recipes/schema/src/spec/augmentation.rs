//! How training examples of speech are varied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done to training examples; each part may be left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AugmentationSpec {
    /// Speed, and pitch with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedSpec>,
    /// White noise on the waveform, after the speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSpec>,
    /// Parts of the normalised features that become 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<MasksSpec>,
}

/// A changed speed: the waveform is resampled and played at its old rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SpeedSpec {
    /// A factor drawn from [1 - ratio, 1 + ratio] for each example (OpenSeq2Seq). It multiplies the *number of samples*:
    /// 1.05 is slower.
    Uniform {
        /// Largest change.
        ratio: f64,
        /// Whose filter.
        #[serde(default)]
        filter: KaiserBest,
    },
    /// A factor of a list for each example (OpenSeq2Seq). It multiplies the *number of samples*: 1.1 is slower.
    Choice {
        /// Factors, each as likely.
        factors: Vec<f64>,
        /// Whose filter.
        #[serde(default)]
        filter: KaiserBest,
    },
    /// Every example also at each of these speeds, in every epoch (Kaldi, lhotse). A factor *divides* the number of samples:
    /// 1.1 is faster. torchaudio's sinc filter.
    Copies {
        /// Factors, without 1.
        factors: Vec<f64>,
    },
}

/// resampy's `kaiser_best`, which is not the same filter in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum KaiserBest {
    /// resampy 0.2, of OpenSeq2Seq's time: 64 zero crossings.
    #[default]
    #[serde(rename = "resampy-0.2")]
    Resampy02,
    /// resampy 0.4: 50 zero crossings, finer steps.
    #[serde(rename = "resampy-0.4")]
    Resampy04,
}

/// White Gaussian noise of a level drawn for each example: a whole number of decibels in [min_db, max_db). 0 dB is a
/// deviation of 1 in the scale of the front end: of the peak for `librosa`, of one step of 16 bits for
/// `python-speech-features`, where the published -90 to -60 dB are therefore next to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseSpec {
    /// Lowest level.
    pub min_db: i32,
    /// Above the highest level.
    pub max_db: i32,
}

/// Masks over features and frames. A width is drawn from 0 to the largest, both included; the start from the places where it
/// fits, the last one left out (OpenSeq2Seq).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MasksSpec {
    /// Masks over features.
    #[serde(default)]
    pub frequency_masks: u32,
    /// Most features that a mask hides.
    #[serde(default)]
    pub max_features: u32,
    /// Masks over frames.
    #[serde(default)]
    pub time_masks: u32,
    /// Most frames that a mask hides.
    #[serde(default)]
    pub max_frames: u32,
}
