//! The `[precision]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In which type products are computed. Masters, optimizer state, gradients of the leaves, softmax, norms and losses are FP32
/// whatever this says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrecisionSpec {
    /// Type of matrix products and convolutions, on every device. A CPU computes fp16 exactly, but not fast.
    #[serde(default)]
    pub compute: ComputeType,
    /// How small gradients are kept from vanishing.
    #[serde(default)]
    pub loss_scaling: LossScalingSpec,
}

/// A float type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeType {
    /// IEEE single.
    #[default]
    Fp32,
    /// IEEE half.
    Fp16,
    /// Brain float.
    Bf16,
}

/// Loss scalers and their parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossScalingSpec {
    /// Scale 1, still checked for finiteness.
    #[default]
    None,
    /// A constant.
    Static {
        /// The scale.
        scale: f64,
    },
    /// Halve on overflow, double after a clean window (OpenSeq2Seq `Backoff`; NVIDIA and fairseq are settings of it).
    Backoff {
        /// First scale; absent: `scale_max`, as OpenSeq2Seq.
        #[serde(default)]
        scale_init: Option<f64>,
        /// Least.
        scale_min: f64,
        /// Largest.
        scale_max: f64,
        /// Factor of a step.
        step_factor: f64,
        /// Clean updates before a growth.
        step_window: u64,
    },
    /// Keep the largest gradient's exponent below `log_max` with a margin taken from its spread (OpenSeq2Seq `LogMax`).
    Logmax {
        /// Least.
        scale_min: f64,
        /// Largest.
        scale_max: f64,
        /// Target exponent.
        log_max: f64,
        /// Decay of the fast mean.
        beta1: f64,
        /// Decay of the slow moments.
        beta2: f64,
        /// Margin in standard deviations.
        overflow_std_dev: f64,
        /// Copy the published defect: an overflow enters the statistics as 2^log_max rather than log_max.
        #[serde(default)]
        published_overflow_defect: bool,
    },
}
