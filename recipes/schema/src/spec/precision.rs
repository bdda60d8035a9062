//! The `[precision]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[precision]` block: the type of products. Optimizer state is always FP32. So are master
/// weights, softmax, norms and losses, unless a recipe trains without them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrecisionSpec {
    /// Type of matrix products and convolutions, on every device.
    /// CPUs compute fp16 exactly, but not fast.
    #[serde(default)]
    pub compute: ComputeType,
    /// Loss scaling, which keeps small gradients from becoming zero.
    #[serde(default)]
    pub loss_scaling: LossScalingSpec,
    /// Whether the optimizer updates FP32 master weights.
    /// `false`: each update is computed in FP32, and the new weights are rounded to `compute`.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub masters: bool,
    /// Operations of training that are FP32 whatever `compute` is: FP32 islands.
    #[serde(default, skip_serializing_if = "IslandsSpec::are_all")]
    pub islands: IslandsSpec,
}

/// FP32 islands. `false`: computed in `compute`, sums included. On the CPU only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IslandsSpec {
    /// Softmax of attention. Only Transformers for translation and language modelling can switch it
    /// off.
    #[serde(default = "yes")]
    pub softmax: bool,
    /// Layer norms of these Transformers, and batch norms of models for speech: recognisers with
    /// convolutions, and synthesisers.
    #[serde(default = "yes")]
    pub norms: bool,
    /// Cross-entropy, with its softmax and the sum over the batch. Models for translation, language
    /// modelling without a sampled softmax, and classification can switch it off.
    #[serde(default = "yes")]
    pub loss: bool,
}

impl Default for IslandsSpec {
    fn default() -> Self {
        Self { softmax: true, norms: true, loss: true }
    }
}

impl IslandsSpec {
    /// Every island off.
    pub(crate) const NONE: Self = Self { softmax: false, norms: false, loss: false };
    /// Every island but the loss.
    pub(crate) const ALL_BUT_LOSS: Self = Self { softmax: true, norms: true, loss: false };

    /// Whether all operations are FP32.
    pub fn are_all(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for PrecisionSpec {
    fn default() -> Self {
        Self {
            compute: ComputeType::default(),
            loss_scaling: LossScalingSpec::default(),
            masters: yes(),
            islands: IslandsSpec::default(),
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_yes(yes: &bool) -> bool {
    *yes
}

/// A floating-point type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeType {
    /// IEEE 754 single precision.
    #[default]
    Fp32,
    /// IEEE 754 half precision.
    Fp16,
    /// Brain floating point: bfloat16.
    Bf16,
}

impl ComputeType {
    /// Name, as in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
        }
    }
}

/// Loss scalers and their parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossScalingSpec {
    /// Scale 1. Gradients are still checked for finite values.
    #[default]
    None,
    /// A constant scale.
    Static {
        /// The scale of the loss.
        scale: f64,
    },
    /// Halves the scale on overflow, and doubles it after a window without overflow (OpenSeq2Seq
    /// `Backoff`; NVIDIA's and fairseq's scalers are settings of it).
    Backoff {
        /// Initial scale. Absent: `scale_max`, as in OpenSeq2Seq.
        #[serde(default)]
        scale_init: Option<f64>,
        /// Smallest scale.
        scale_min: f64,
        /// Largest scale.
        scale_max: f64,
        /// Factor by which the scale falls or grows.
        step_factor: f64,
        /// Number of updates without overflow before the scale grows.
        step_window: u64,
    },
    /// Keeps the exponent of the largest gradient below `log_max`, with a margin that follows from
    /// its spread (OpenSeq2Seq `LogMax`).
    Logmax {
        /// Smallest scale.
        scale_min: f64,
        /// Largest scale.
        scale_max: f64,
        /// Target exponent of the largest gradient.
        log_max: f64,
        /// Decay of the fast mean.
        beta1: f64,
        /// Decay of the slow moments.
        beta2: f64,
        /// Margin, in standard deviations.
        overflow_std_dev: f64,
        /// Whether to reproduce a defect of the published code.
        /// An overflow then enters the statistics as 2^log_max instead of log_max.
        #[serde(default)]
        published_overflow_defect: bool,
    },
}
