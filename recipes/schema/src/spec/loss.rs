//! The `[loss]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CtcDenominator;

/// The `[loss]` block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSpec {
    /// Cross-entropy of the target tokens. Padding does not count in the sum.
    CrossEntropy {
        /// Mass taken from the true class: the amount of label smoothing, 0 for none.
        label_smoothing: f64,
        /// Which classes get the smoothed mass.
        #[serde(default)]
        smoothing: Smoothing,
        /// Divisor of the summed loss.
        denominator: Denominator,
    },
    /// Connectionist temporal classification, computed in FP32.
    /// An utterance with too few frames for its transcript contributes nothing.
    Ctc {
        /// Divisor of the summed loss.
        denominator: CtcDenominator,
    },
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

/// The two published definitions of label smoothing, with smoothing eps and V classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Smoothing {
    /// eps/V on every class, including the true one (fairseq, NVIDIA).
    #[default]
    AllClasses,
    /// eps/(V-1) on the other classes.
    /// The target's entropy is subtracted, so that the lowest loss is 0 (tensor2tensor,
    /// OpenSeq2Seq).
    OtherClasses,
}

/// Divisor of the summed cross-entropy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// Number of target tokens, without padding.
    Tokens,
    /// Number of sentences.
    Sentences,
    /// Number of target positions, including padding.
    Positions,
}
