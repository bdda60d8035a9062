//! The `[loss]` block of a translation recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Smoothing;
use crate::validate::Findings;

/// The training loss of a model that writes tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TokenLossSpec {
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

impl TokenLossSpec {
    /// Checks the mass of label smoothing.
    pub(super) fn check(&self, findings: &mut Findings<'_, '_>) {
        let Self::CrossEntropy { label_smoothing, smoothing: _, denominator: _ } = self;
        findings.share(*label_smoothing, "loss.label_smoothing");
    }
}
