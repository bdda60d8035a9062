//! The `[decode.NAME]` blocks: named searches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A search over a decoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DecodeSpec {
    /// The likeliest token at each step.
    Greedy {
        /// Longest output.
        max_length: MaxLength,
    },
    /// Beam search.
    Beam {
        /// Hypotheses kept alive.
        beam: u32,
        /// How finished hypotheses are ranked.
        length_penalty: LengthPenalty,
        /// When a sentence is done.
        stop: StopRule,
        /// Longest output.
        max_length: MaxLength,
    },
}

/// Tokens at most, the end token included: `factor` x source tokens (special tokens included), rounded down, + `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxLength {
    /// Times the source's length.
    pub factor: f64,
    /// Plus this.
    pub extra: u32,
}

/// Score of a finished hypothesis of n tokens (end token included).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LengthPenalty {
    /// log p.
    None,
    /// log p / ((5 + n) / 6)^alpha (Wu et al. 2016; tensor2tensor).
    Gnmt {
        /// Exponent.
        alpha: f64,
    },
    /// log p / n^alpha (fairseq `lenpen`).
    LengthPower {
        /// Exponent.
        alpha: f64,
    },
}

/// When the search of a sentence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopRule {
    /// No alive hypothesis can beat the worst finished one any more (tensor2tensor, OpenSeq2Seq).
    CannotImprove,
    /// As soon as `beam` hypotheses have ended (fairseq).
    BeamFinished,
}
