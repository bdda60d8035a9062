//! The `[train]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[train]` block: length, seed and update rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainSpec {
    /// Training stops after this many updates of the weights.
    #[serde(default)]
    pub max_updates: Option<u64>,
    /// Training stops after this many passes over the data.
    /// At least one of `max_updates` and `max_epochs` is given.
    #[serde(default)]
    pub max_epochs: Option<u64>,
    /// Number of batches whose gradients make one update (published GPUs x accumulation).
    /// The number of workers x accumulation must equal it.
    #[serde(default = "one")]
    pub batches_per_update: u32,
    /// How the loss averages over the batches of an update.
    #[serde(default, skip_serializing_if = "LossMean::is_whole")]
    pub loss_mean: LossMean,
    /// First seed. `--seed` and `--seeds` count from it.
    pub seed: u64,
    /// Gradients are scaled down to this global norm. Absent: no clipping.
    #[serde(default)]
    pub clip_norm: Option<f64>,
    /// Limits each parameter's gradient by the parameter's norm (LARC). Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub larc: Option<LarcSpec>,
    /// Early stopping, once validation no longer improves. Absent: none.
    #[serde(default)]
    pub patience: Option<PatienceSpec>,
    /// When checkpoints are saved, and which weights are evaluated.
    #[serde(default)]
    pub checkpoint: CheckpointSpec,
    /// Number of updates between two lines of the log.
    #[serde(default = "log_every")]
    pub log_every: u64,
    /// Learning rate of biases, as a factor of that of the other parameters (Caffe's `lr_mult`).
    /// Absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_lr: Option<f64>,
    /// Optimizer: the update rule of the weights.
    pub optimizer: OptimizerSpec,
    /// Learning rate as a function of the update.
    pub schedule: ScheduleSpec,
    /// Penalty on the weights. Absent: none.
    #[serde(default)]
    pub regularizer: Option<RegularizerSpec>,
}

/// How the loss averages over the batches of an update. Both ways give the same result if all
/// batches count equally much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossMean {
    /// The sum over all batches, divided by the count of all batches, e.g. of tokens (fairseq).
    #[default]
    WholeUpdate,
    /// The mean of the batches' means, whatever each batch counts.
    /// A batch stands for one GPU: Horovod and multi-tower training average the means of the GPUs.
    OfBatches,
}

impl LossMean {
    fn is_whole(&self) -> bool {
        *self == Self::WholeUpdate
    }
}

/// Early stopping on the loss of the `valid` set, measured after every epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatienceSpec {
    /// Epochs without a new best loss after which training stops.
    pub epochs: u32,
}

/// Which checkpoints are kept and which weights are evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSpec {
    /// Number of updates between two saved states to resume from.
    /// A state is also saved at each epoch's end.
    #[serde(default = "every_updates")]
    pub every_updates: u64,
    /// Weights that are evaluated.
    #[serde(default)]
    pub evaluate: EvaluatedWeights,
    /// Decay e of an exponential moving average of the weights and running statistics.
    /// The average starts as the first weights; after each update it becomes
    /// e x average + (1 - e) x weights. Validation and evaluation use it instead of the weights
    /// (NVIDIA's `--ema`). Absent: no average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ema: Option<f64>,
}

impl Default for CheckpointSpec {
    fn default() -> Self {
        Self { every_updates: every_updates(), evaluate: EvaluatedWeights::default(), ema: None }
    }
}

/// Weights that are evaluated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EvaluatedWeights {
    /// The weights at the end of training.
    #[default]
    Last,
    /// The weights with the best validation, among those at the ends of epochs and of the run.
    Best {
        /// Search whose score on the set `valid` selects the best, by the convention of the claims.
        /// Absent: the lowest loss selects the best.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decode: Option<String>,
        /// First epoch that counts, from 1 (NVIDIA's `--save_best_from`).
        /// A run that ends before it uses its last weights.
        #[serde(default, skip_serializing_if = "is_none")]
        from_epoch: u64,
    },
    /// The mean of the weights at the ends of the last epochs (fairseq
    /// `average_checkpoints --num-epoch-checkpoints`).
    MeanOfEpochs {
        /// Number of epochs to average.
        epochs: u32,
    },
    /// The mean of the last checkpoints written at a fixed interval, independent of epochs (Vaswani
    /// et al. 2017).
    MeanOfLast {
        /// Number of checkpoints to average.
        checkpoints: u32,
        /// Number of updates between two checkpoints.
        every_updates: u64,
    },
}

/// Optimizers. Epsilon is always explicit, because defaults differ between frameworks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerSpec {
    /// Adam (Kingma and Ba 2015), bias-corrected, with epsilon outside the root.
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
        /// Position of the bias correction relative to epsilon.
        #[serde(default)]
        epsilon_place: EpsilonPlace,
        /// d of the gradient g + d w, for every parameter, biases and norms included.
        /// This is PyTorch's L2 penalty, not decoupled weight decay.
        #[serde(default, skip_serializing_if = "is_zero")]
        weight_decay: f64,
    },
    /// TensorFlow's LazyAdam: embedding rows without a gradient keep their moments and weights.
    /// On a matrix that is also the output projection every row has a gradient, so this is Adam.
    LazyAdam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
        /// Position of the bias correction relative to epsilon.
        #[serde(default)]
        epsilon_place: EpsilonPlace,
    },
    /// NovoGrad (Ginsburg et al. 2019): momentum of gradients divided by their norm, with one norm
    /// per parameter tensor. Weight decay is added after the division, for every tensor, biases and
    /// norms included.
    Novograd {
        /// beta1: decay of the momentum.
        beta1: f64,
        /// beta2: decay of the squared norm.
        beta2: f64,
        /// Epsilon, added to the norm or to its square: see `variant`.
        epsilon: f64,
        /// d in m = beta1 m + (g / norm + d w).
        #[serde(default)]
        weight_decay: f64,
        /// Whether the term added to the momentum is multiplied by 1 - beta1.
        #[serde(default)]
        grad_averaging: bool,
        /// Formula: that of the paper, or that of the code behind the published scores.
        #[serde(default)]
        variant: NovogradVariant,
    },
    /// Gradient descent with momentum: v = m v + (g + d w), without dampening, and w = w - lr v.
    Sgd {
        /// m: the momentum.
        momentum: f64,
        /// d: the weight decay, for every parameter, biases and norms included (PyTorch).
        #[serde(default, skip_serializing_if = "is_zero")]
        weight_decay: f64,
        /// Nesterov's momentum as in PyTorch: w = w - lr (g + d w + m v).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nesterov: bool,
        /// Quantity that the momentum accumulates: gradients or steps.
        #[serde(default, skip_serializing_if = "Velocity::is_of_gradients")]
        velocity: Velocity,
    },
    /// RMSProp, which divides gradients by the root of their mean square:
    /// a = rho a + (1 - rho) g^2, w = w - lr g / (sqrt(a) + epsilon), starting from a = 0 (Keras 2;
    /// PyTorch, where rho is `alpha`).
    Rmsprop {
        /// Decay of the mean square.
        rho: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
    },
    /// Adadelta (Zeiler 2012): a = rho a + (1 - rho) g^2,
    /// u = g sqrt(d + epsilon) / sqrt(a + epsilon), d = rho d + (1 - rho) u^2, w = w - lr u,
    /// starting from a = d = 0 (Keras 2, PyTorch).
    Adadelta {
        /// Decay of both mean squares.
        rho: f64,
        /// Epsilon, added under both roots.
        epsilon: f64,
    },
}

/// Quantity that the momentum accumulates. Both give the same result at a constant learning rate.
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

/// Layer-wise adaptive rate control (OpenSeq2Seq `larc_params`, mode `clip`). The gradient of each
/// parameter is multiplied by min(1, max(eta |w| / (lr (|g| + epsilon)), min_update)) before the
/// update rule, biases and norms included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LarcSpec {
    /// eta: factor of the parameter's norm.
    pub eta: f64,
    /// Smallest factor of a gradient.
    #[serde(default = "tiny")]
    pub min_update: f64,
    /// Epsilon, added to the gradient's norm.
    #[serde(default = "tiny")]
    pub epsilon: f64,
    /// Whether LSTM and GRU layers get a factor per parameter or one in common.
    #[serde(default, skip_serializing_if = "RecurrentGroup::is_each")]
    pub recurrent: RecurrentGroup,
}

/// Factors of the parameters of recurrent layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentGroup {
    /// Each matrix and bias has its own factor.
    #[default]
    Each,
    /// All recurrent layers count as one parameter.
    /// Its factor uses the norms over all their matrices and biases (the opaque buffer of
    /// TensorFlow's cuDNN layers).
    OneBuffer,
}

impl RecurrentGroup {
    fn is_each(&self) -> bool {
        *self == Self::Each
    }
}

/// Position of the bias correction of Adam relative to epsilon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpsilonPlace {
    /// m̂ / (sqrt(v̂) + eps): the paper's algorithm 1, and PyTorch.
    #[default]
    CorrectedRoot,
    /// sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + eps): TensorFlow and fairseq.
    RawRoot,
}

/// Formula of NovoGrad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NovogradVariant {
    /// The paper's formula: v = beta2 v + (1 - beta2) |g|^2, starting from v = |g|^2.
    /// The gradient is divided by sqrt(v) + eps.
    #[default]
    Published,
    /// OpenSeq2Seq's code, which never stores v.
    /// So v is the |g|^2 of the current update, and beta2 has no effect. The gradient is divided by
    /// sqrt(v + eps).
    AsCoded,
}

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
        /// Number of updates of a linear warm-up.
        #[serde(default)]
        warmup_updates: u64,
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

/// A penalty on the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RegularizerSpec {
    /// L2: scale * sum(w^2) / 2, added to the gradient in FP32.
    /// It applies to matrices, not to biases, and to norms only with `norm_scales`.
    L2 {
        /// Scale of the penalty: the gradient gets scale * w.
        scale: f64,
        /// Whether it also applies to the matrices of LSTM and GRU layers.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        recurrent: bool,
        /// Whether it also applies to the scales of norms (OpenSeq2Seq's `gamma_regularizer`).
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
