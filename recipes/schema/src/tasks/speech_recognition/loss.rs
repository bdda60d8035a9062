//! The `[loss]` block of a speech recognition recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The training loss of a model that classifies the frames of recordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CtcLossSpec {
    /// Connectionist temporal classification, computed in FP32.
    /// An utterance with too few frames for its transcript contributes nothing.
    Ctc {
        /// Divisor of the summed loss.
        denominator: CtcDenominator,
    },
}

/// Divisor of the summed CTC loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CtcDenominator {
    /// Number of utterances of the update (OpenSeq2Seq).
    Utterances,
    /// Number of batches of the update: the loss of a batch is a sum (icefall).
    Batches,
}
