//! The `[decode.NAME]` blocks of a speech synthesis recipe: from frames to frames, and to sound.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{MaxLength, SearchBlock};
use crate::validate::Findings;

/// How the frames of an utterance are computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SynthesisSearchSpec {
    /// Free-running inference: each frame of speech is computed from the model's own previous
    /// frame.
    FreeRunning(FreeRunningSpec),
    /// Teacher forcing: each frame of speech is computed from the true previous frame.
    /// The output is as long as the reference.
    TeacherForced {},
}

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

impl SearchBlock for SynthesisSearchSpec {}

impl SynthesisSearchSpec {
    /// Checks the numbers of the search at `path`.
    pub(super) fn check(&self, path: &str, findings: &mut Findings<'_, '_>) {
        let Self::FreeRunning(FreeRunningSpec { threshold, max_frames, vocoder }) = self else { return };
        findings.require(*threshold > 0.0 && *threshold < 1.0, &format!("{path}.threshold"), || {
            format!("`{path}.threshold` is {threshold}; it is a probability between 0 and 1")
        });
        max_frames.check(&format!("{path}.max_frames"), findings);
        findings.above_zero(vocoder.power, &format!("{path}.vocoder.power"));
        findings.share(vocoder.momentum, &format!("{path}.vocoder.momentum"));
    }
}
