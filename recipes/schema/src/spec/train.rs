//! The `[train]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Length, seed and update rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainSpec {
    /// Stop after this many updates.
    #[serde(default)]
    pub max_updates: Option<u64>,
    /// Stop after this many passes over the data. At least one of the two limits is given.
    #[serde(default)]
    pub max_epochs: Option<u64>,
    /// Batches whose gradients make one update (published GPUs x accumulation). World x accumulation keeps it.
    #[serde(default = "one")]
    pub batches_per_update: u32,
    /// What the batches of an update are to its loss.
    #[serde(default, skip_serializing_if = "LossMean::is_whole")]
    pub loss_mean: LossMean,
    /// First seed. `--seed` and `--seeds` count from it.
    pub seed: u64,
    /// Scale gradients down to this global norm.
    #[serde(default)]
    pub clip_norm: Option<f64>,
    /// Scale each parameter's gradient down to a share of the parameter's own norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub larc: Option<LarcSpec>,
    /// Stop when validation no longer improves.
    #[serde(default)]
    pub patience: Option<PatienceSpec>,
    /// Checkpoints.
    #[serde(default)]
    pub checkpoint: CheckpointSpec,
    /// A line in the log every so many updates.
    #[serde(default = "log_every")]
    pub log_every: u64,
    /// Learning rate of biases, as a factor of that of the other parameters (Caffe's `lr_mult`). Absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_lr: Option<f64>,
    /// Update rule.
    pub optimizer: OptimizerSpec,
    /// Learning rate by update.
    pub schedule: ScheduleSpec,
    /// Penalty on the weights.
    #[serde(default)]
    pub regularizer: Option<RegularizerSpec>,
}

/// See [`TrainSpec::loss_mean`]. Both are the same where all batches have equally much to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossMean {
    /// One sum over all batches, divided by what all of them count, e.g. their tokens (fairseq).
    #[default]
    WholeUpdate,
    /// The mean of each batch's own mean, whatever the batches count (a batch stands for a GPU's: Horovod and towers average what each
    /// GPU's mean gives).
    OfBatches,
}

impl LossMean {
    fn is_whole(&self) -> bool {
        *self == Self::WholeUpdate
    }
}

/// Early stopping on the loss of the `valid` set, looked at after every epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatienceSpec {
    /// Epochs without a new best before training stops.
    pub epochs: u32,
}

/// What is kept and which weights are evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSpec {
    /// Save a state to resume from every so many updates (beside the one at each epoch's end).
    #[serde(default = "every_updates")]
    pub every_updates: u64,
    /// Which weights are evaluated.
    #[serde(default)]
    pub evaluate: EvaluatedWeights,
    /// Keep a mean of the weights, running statistics too, that begins with the first ones and after each update is e times itself
    /// and 1 - e times the new ones. Validation and evaluation then see it in place of the weights (NVIDIA's `--ema`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ema: Option<f64>,
}

impl Default for CheckpointSpec {
    fn default() -> Self {
        Self { every_updates: every_updates(), evaluate: EvaluatedWeights::default(), ema: None }
    }
}

/// See [`CheckpointSpec::evaluate`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EvaluatedWeights {
    /// The last ones.
    #[default]
    Last,
    /// Those of the best validation, of those at the ends of epochs and of the run.
    Best {
        /// The best is the one with the best score of the set `valid` with this search, by the convention of the claims; absent: the one
        /// with the lowest loss.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decode: Option<String>,
        /// Epochs (from 1) before this one do not count; of a run that ends before it the last weights are taken (NVIDIA's
        /// `--save_best_from`).
        #[serde(default, skip_serializing_if = "is_none")]
        from_epoch: u64,
    },
    /// The mean over the last epochs' ends (fairseq `average_checkpoints --num-epoch-checkpoints`).
    MeanOfEpochs {
        /// How many.
        epochs: u32,
    },
    /// The mean of the last checkpoints that were written at a fixed distance, whatever an epoch is (Vaswani et al. 2017).
    MeanOfLast {
        /// How many.
        checkpoints: u32,
        /// Updates between two of them.
        every_updates: u64,
    },
}

/// Update rules. Epsilon is always stated: defaults differ between frameworks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerSpec {
    /// Adam, Kingma and Ba 2015, bias-corrected, epsilon outside the root.
    Adam {
        /// First moment.
        beta1: f64,
        /// Second moment.
        beta2: f64,
        /// Added to the root.
        epsilon: f64,
        /// Where the bias correction stands relative to epsilon.
        #[serde(default)]
        epsilon_place: EpsilonPlace,
        /// d: the gradient is g + d w, of every parameter, biases and norms too (PyTorch; no decoupled decay).
        #[serde(default, skip_serializing_if = "is_zero")]
        weight_decay: f64,
    },
    /// As TensorFlow's LazyAdam: rows of an embedding that got no gradient keep moments and weights. On a matrix that is also
    /// the output projection every row has a gradient, and it is Adam.
    LazyAdam {
        /// First moment.
        beta1: f64,
        /// Second moment.
        beta2: f64,
        /// Added to the root.
        epsilon: f64,
        /// Where the bias correction stands relative to epsilon.
        #[serde(default)]
        epsilon_place: EpsilonPlace,
    },
    /// Momentum of gradients that are divided by their norm, one norm for each parameter tensor (Ginsburg et al. 2019). Weight
    /// decay is added after the division, to every tensor, biases and norms too.
    Novograd {
        /// Decay of the momentum.
        beta1: f64,
        /// Decay of the squared norm.
        beta2: f64,
        /// Added to the norm, or to its square: see `variant`.
        epsilon: f64,
        /// d in m = beta1 m + (g / norm + d w).
        #[serde(default)]
        weight_decay: f64,
        /// What is added to the momentum is multiplied by 1 - beta1.
        #[serde(default)]
        grad_averaging: bool,
        /// The paper's formula, or what the code that the published scores come from computes.
        #[serde(default)]
        variant: NovogradVariant,
    },
    /// Gradient descent with momentum: v = m v + (g + d w), no dampening, and w = w - lr v.
    Sgd {
        /// m.
        momentum: f64,
        /// d, of every parameter, biases and norms too (PyTorch).
        #[serde(default, skip_serializing_if = "is_zero")]
        weight_decay: f64,
        /// Nesterov's momentum as PyTorch has it: w = w - lr (g + d w + m v).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nesterov: bool,
        /// What the momentum sums.
        #[serde(default, skip_serializing_if = "Velocity::is_of_gradients")]
        velocity: Velocity,
    },
    /// Gradients divided by the root of their mean square: a = rho a + (1 - rho) g^2, w = w - lr g / (sqrt(a) + epsilon), from a = 0
    /// (Keras 2; PyTorch with rho as `alpha`).
    Rmsprop {
        /// Decay of the mean square.
        rho: f64,
        /// Added to the root.
        epsilon: f64,
    },
    /// Zeiler 2012: a = rho a + (1 - rho) g^2, u = g sqrt(d + epsilon) / sqrt(a + epsilon), d = rho d + (1 - rho) u^2, w = w - lr u, from
    /// a = d = 0 (Keras 2, PyTorch).
    Adadelta {
        /// Decay of both mean squares.
        rho: f64,
        /// Added under both roots.
        epsilon: f64,
    },
}

/// See [`OptimizerSpec::Sgd`]. Both are the same at a constant learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Velocity {
    /// Gradients: v = m v + g, w = w - lr v (PyTorch).
    #[default]
    Gradients,
    /// Steps: v = m v + lr g, w = w - v (Caffe).
    Steps,
}

impl Velocity {
    fn is_of_gradients(&self) -> bool {
        *self == Self::Gradients
    }
}

/// Layer-wise adaptive rate control (OpenSeq2Seq `larc_params`, mode `clip`): the gradient of each parameter is multiplied by
/// min(1, max(eta |w| / (lr (|g| + epsilon)), min_update)), biases and norms too, before the update rule sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LarcSpec {
    /// eta.
    pub eta: f64,
    /// Least factor.
    #[serde(default = "tiny")]
    pub min_update: f64,
    /// Added to the gradient's norm.
    #[serde(default = "tiny")]
    pub epsilon: f64,
    /// What the parameters of LSTM and GRU layers are to it.
    #[serde(default, skip_serializing_if = "RecurrentGroup::is_each")]
    pub recurrent: RecurrentGroup,
}

/// See [`LarcSpec::recurrent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentGroup {
    /// Each matrix and bias has a factor of its own.
    #[default]
    Each,
    /// All recurrent layers are one parameter with one factor, of the norms over all their matrices and biases (the opaque buffer of
    /// TensorFlow's cuDNN layers).
    OneBuffer,
}

impl RecurrentGroup {
    fn is_each(&self) -> bool {
        *self == Self::Each
    }
}

/// See [`OptimizerSpec::Adam`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpsilonPlace {
    /// m̂ / (sqrt(v̂) + eps): the paper's algorithm 1, PyTorch.
    #[default]
    CorrectedRoot,
    /// sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + eps): TensorFlow, fairseq.
    RawRoot,
}

/// See [`OptimizerSpec::Novograd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NovogradVariant {
    /// v = beta2 v + (1 - beta2) |g|^2, from v = |g|^2 on; the gradient is divided by sqrt(v) + eps.
    #[default]
    Published,
    /// OpenSeq2Seq's code: v is never written back, so that it is the |g|^2 of the update at hand and beta2 does nothing; the
    /// gradient is divided by sqrt(v + eps).
    AsCoded,
}

/// Learning rate as a function of the update number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleSpec {
    /// Constant.
    Fixed {
        /// Learning rate.
        lr: f64,
    },
    /// coefficient * lr * width^-0.5 * min((s+1) w^-1.5, (s+1)^-0.5), capped (OpenSeq2Seq `transformer_policy`).
    TransformerPolicy {
        /// Multiplier.
        lr: f64,
        /// w.
        warmup_updates: u64,
        /// Width of the model.
        width: u32,
        /// Cap.
        #[serde(default)]
        max_lr: Option<f64>,
        /// A second multiplier.
        #[serde(default = "unit")]
        coefficient: f64,
    },
    /// fairseq `inverse_sqrt`: linear from `warmup_init_lr` to `lr`, then lr * sqrt(w / s).
    InverseSqrt {
        /// Peak.
        lr: f64,
        /// w.
        warmup_updates: u64,
        /// First value.
        warmup_init_lr: f64,
    },
    /// OpenSeq2Seq `exp_decay`; with a warm-up, NVIDIA's `lr_policy` of Jasper.
    ExpDecay {
        /// First value.
        lr: f64,
        /// Updates between two factors; absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Factor.
        decay_rate: f64,
        /// Floor the exponent.
        #[serde(default)]
        staircase: bool,
        /// Constant until then.
        #[serde(default)]
        begin_decay_at: u64,
        /// Least value.
        #[serde(default)]
        min_lr: f64,
        /// lr (s + 2) / (w + 1) until that is lr: as the source has it, whose steps are counted from 1. 0: none.
        #[serde(default, skip_serializing_if = "is_none")]
        warmup_updates: u64,
    },
    /// OpenSeq2Seq `poly_decay`.
    PolyDecay {
        /// First value.
        lr: f64,
        /// Length of the decay; absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Exponent.
        #[serde(default = "unit")]
        power: f64,
        /// Constant until then.
        #[serde(default)]
        begin_decay_at: u64,
        /// Least value.
        #[serde(default)]
        min_lr: f64,
        /// Linear warm-up.
        #[serde(default)]
        warmup_updates: u64,
    },
    /// OpenSeq2Seq `cosine_decay`; the floor is a share of `lr`.
    CosineDecay {
        /// First value.
        lr: f64,
        /// Length of the decay; absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Constant until then.
        #[serde(default)]
        begin_decay_at: u64,
        /// Least value as a share of `lr`.
        #[serde(default)]
        min_lr_ratio: f64,
        /// Linear warm-up.
        #[serde(default)]
        warmup_updates: u64,
    },
    /// OpenSeq2Seq `inv_poly_decay`.
    InvPolyDecay {
        /// First value.
        lr: f64,
        /// Length of the decay; absent: up to the last update.
        #[serde(default)]
        decay_updates: Option<u64>,
        /// Value at the end.
        min_lr: f64,
        /// Exponent.
        #[serde(default = "unit")]
        power: f64,
    },
    /// lr / 100 to lr exponentially, lr, then steps down (NVIDIA's GNMT, `WarmupMultiStepLR`): from update `hold` T on, rounded
    /// down, every (T - hold T) / `steps` updates, rounded down, T being the last update of the run.
    WarmupSteps {
        /// Peak.
        lr: f64,
        /// Updates of the warm-up.
        warmup_updates: u64,
        /// Share of the run that ends before the first step.
        hold: f64,
        /// Steps.
        steps: u64,
        /// Factor of a step.
        decay_rate: f64,
    },
    /// lr until validation no longer improves; then times a factor. Training ends when the rate is below the least.
    Plateau {
        /// First value.
        lr: f64,
        /// Factor.
        factor: f64,
        /// Validations in a row without a new best that change nothing yet.
        patience: u32,
        /// Once it has fallen it falls at every validation (Gehring et al. 2017).
        #[serde(default)]
        keeps_falling: bool,
        /// Least value.
        min_lr: f64,
    },
    /// lr (1 + gamma s)^-power (Caffe's `inv`).
    Inv {
        /// First value.
        lr: f64,
        /// Growth of the divisor in an update.
        gamma: f64,
        /// Exponent.
        power: f64,
    },
    /// lr times a factor that changes at each boundary.
    PiecewiseConstant {
        /// First value.
        lr: f64,
        /// Updates at which the factor changes.
        boundaries: Vec<u64>,
        /// Factors after each boundary, of the first value.
        factors: Vec<f64>,
    },
}

/// Penalty on the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RegularizerSpec {
    /// scale * sum(w^2) / 2 on matrices (not biases; norms only as said), added to the gradient in FP32.
    L2 {
        /// Gradient is scale * w.
        scale: f64,
        /// On the matrices of LSTM and GRU layers too.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        recurrent: bool,
        /// On the scales of norms too (OpenSeq2Seq's `gamma_regularizer`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        norm_scales: bool,
    },
}

fn yes() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_yes(yes: &bool) -> bool {
    *yes
}
fn one() -> u32 {
    1
}
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
fn is_none(count: &u64) -> bool {
    *count == 0
}
fn tiny() -> f64 {
    1e-7
}
fn unit() -> f64 {
    1.0
}
fn log_every() -> u64 {
    50
}
fn every_updates() -> u64 {
    100
}
