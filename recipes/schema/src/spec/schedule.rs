//! The `[train.schedule]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Learning rate as a function of the update number s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleSpec {
    /// A constant learning rate.
    Fixed {
        /// Learning rate.
        lr: f64,
    },
    /// coefficient * lr * width^-0.5 * min((s+1) w^-1.5, (s+1)^-0.5), at most `max_lr` (OpenSeq2Seq
    /// `transformer_policy`).
    TransformerPolicy {
        /// Factor of the learning rate.
        lr: f64,
        /// w: number of warm-up updates.
        warmup_updates: u64,
        /// Width of the model.
        width: u32,
        /// Largest learning rate. Absent: no limit.
        #[serde(default)]
        max_lr: Option<f64>,
        /// Second factor of the learning rate.
        #[serde(default = "unit")]
        coefficient: f64,
    },
    /// fairseq `inverse_sqrt`: linear from `warmup_init_lr` to `lr`, then lr * sqrt(w / s).
    InverseSqrt {
        /// Largest learning rate, at the end of the warm-up.
        lr: f64,
        /// w: number of warm-up updates.
        warmup_updates: u64,
        /// First learning rate of the warm-up.
        warmup_init_lr: f64,
    },
    /// OpenSeq2Seq `exp_decay`: exponential decay.
    /// With a warm-up, it is NVIDIA's `lr_policy` of Jasper.
    ExpDecay {
        /// Initial learning rate.
        lr: f64,
        /// Number of updates per factor `decay_rate`. Absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Factor of the decay.
        decay_rate: f64,
        /// Whether the exponent is rounded down, so that the rate falls in steps.
        #[serde(default)]
        staircase: bool,
        /// Update at which the decay begins. The rate is constant before it.
        #[serde(default)]
        begin_decay_at: u64,
        /// Smallest learning rate.
        #[serde(default)]
        min_lr: f64,
        /// w: number of warm-up updates, with rate lr (s + 2) / (w + 1) until that reaches lr.
        /// The formula is the source's, which counts steps from 1. 0: no warm-up.
        #[serde(default, skip_serializing_if = "is_none")]
        warmup_updates: u64,
    },
    /// OpenSeq2Seq `poly_decay`: polynomial decay.
    PolyDecay {
        /// Initial learning rate.
        lr: f64,
        /// Length of the decay, in updates. Absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Exponent of the polynomial.
        #[serde(default = "unit")]
        power: f64,
        /// Update at which the decay begins. The rate is constant before it.
        #[serde(default)]
        begin_decay_at: u64,
        /// Smallest learning rate.
        #[serde(default)]
        min_lr: f64,
        /// Number of updates of a linear warm-up.
        #[serde(default)]
        warmup_updates: u64,
    },
    /// OpenSeq2Seq `cosine_decay`: cosine decay to a share of `lr`.
    CosineDecay {
        /// Initial learning rate.
        lr: f64,
        /// Length of the decay, in updates. Absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Update at which the decay begins. The rate is constant before it.
        #[serde(default)]
        begin_decay_at: u64,
        /// Smallest learning rate, as a share of `lr`.
        #[serde(default)]
        min_lr_ratio: f64,
        /// w: number of updates of a linear warm-up.
        #[serde(default)]
        warmup_updates: u64,
        /// First learning rate of the warm-up.
        #[serde(default, skip_serializing_if = "WarmupStart::is_zero")]
        warmup_start: WarmupStart,
    },
    /// OpenSeq2Seq `inv_poly_decay`: inverse polynomial decay.
    InvPolyDecay {
        /// Initial learning rate.
        lr: f64,
        /// Length of the decay, in updates. Absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Learning rate at the end of the decay.
        min_lr: f64,
        /// Exponent of the polynomial.
        #[serde(default = "unit")]
        power: f64,
    },
    /// NVIDIA's GNMT, `WarmupMultiStepLR`: exponential warm-up from lr / 100 to lr, then constant,
    /// then steps down. With T the last update of the run, the first step is at update `hold` T,
    /// rounded down; further ones follow every (T - hold T) / `steps` updates, rounded down.
    WarmupSteps {
        /// Largest learning rate, at the end of the warm-up.
        lr: f64,
        /// Number of warm-up updates.
        warmup_updates: u64,
        /// Share of the run before the first step.
        hold: f64,
        /// Number of steps.
        steps: u64,
        /// Factor of the learning rate at each step.
        decay_rate: f64,
    },
    /// Constant until validation no longer improves, then multiplied by a factor.
    /// Training ends when the rate is below `min_lr`.
    Plateau {
        /// Initial learning rate.
        lr: f64,
        /// Factor of the learning rate.
        factor: f64,
        /// Consecutive validations without a new best that do not yet change the rate.
        patience: u32,
        /// Whether, after its first fall, the rate falls at every validation (Gehring et al. 2017).
        #[serde(default)]
        keeps_falling: bool,
        /// Smallest learning rate. Training ends below it.
        min_lr: f64,
    },
    /// Caffe's `inv`: lr (1 + gamma s)^-power.
    Inv {
        /// Initial learning rate.
        lr: f64,
        /// gamma: growth of the divisor per update.
        gamma: f64,
        /// Exponent of the divisor.
        power: f64,
    },
    /// lr times a factor that changes at each boundary.
    PiecewiseConstant {
        /// Initial learning rate.
        lr: f64,
        /// Updates at which the factor changes.
        boundaries: Vec<u64>,
        /// Factors after each boundary, relative to the initial learning rate.
        factors: Vec<f64>,
    },
}

/// First learning rate of a linear warm-up of w updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarmupStart {
    /// 0: the rate is lr s / w (OpenSeq2Seq).
    #[default]
    Zero,
    /// One step above 0: the rate is lr (s + 1) / (w + 1) (nanoGPT).
    Step,
}

impl WarmupStart {
    fn is_zero(&self) -> bool {
        *self == Self::Zero
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

fn unit() -> f64 {
    1.0
}
