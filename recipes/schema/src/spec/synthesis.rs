//! Searches of speech synthesis, and the vocoder that turns frames into sound.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MaxLength;

/// Free-running inference, and the vocoder that turns its frames into sound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeRunningSpec {
    /// Stop threshold: the output ends at the first frame with a stop probability above it.
    pub threshold: f64,
    /// Largest number of frames.
    pub max_frames: MaxLength,
    /// Vocoder, which computes sound from frames.
    pub vocoder: VocoderSpec,
}

/// Griffin-Lim vocoder (Griffin and Lim 1984), with the momentum of Perraudin et al. 2013.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VocoderSpec {
    /// Number of iterations. Each takes the phases from the current signal.
    pub iterations: u32,
    /// Exponent applied to the magnitudes.
    pub power: f64,
    /// Momentum. 0 is the original method.
    #[serde(default)]
    pub momentum: f64,
}
