//! The `[loss]` block of a speech synthesis recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::Findings;

/// The training loss of a model that writes frames of speech.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SpectrogramLossSpec {
    /// Loss of speech frames: the sum of the mean squared errors before and after the post-net (and
    /// of magnitudes, if there are any) and the cross-entropy of the stop prediction, in nats per
    /// frame. Computed in FP32.
    Spectrogram {
        /// Whether padding counts, as frames of zeros with the stop target set (NVIDIA).
        padding: bool,
        /// Guided attention. Absent: none, as published for Tacotron 2.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guide: Option<AttentionGuide>,
    },
}

/// Guided attention (Tachibana et al. 2018, section 4.1): attention far from the diagonal is
/// penalised. For frame t of T, attention a(n) on symbol n of N costs the sum of
/// a(n) (1 - exp(-(n/N - t/T)^2 / (2 width^2))). The mean of this cost over frames is another term
/// of the loss. The paper also takes the mean over symbols, which is 1/N of this.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttentionGuide {
    /// Width of the diagonal, as a share of the text: 0.2 in the paper, 0.4 in ESPnet.
    pub width: f64,
    /// Factor of this term in the loss.
    pub weight: f64,
}

impl SpectrogramLossSpec {
    /// Checks the numbers of the guided attention.
    pub(super) fn check(&self, findings: &mut Findings<'_, '_>) {
        let Self::Spectrogram { padding: _, guide } = self;
        if let Some(AttentionGuide { width, weight }) = guide {
            findings.above_zero(*width, "loss.guide.width");
            findings.above_zero(*weight, "loss.guide.weight");
        }
    }
}
