//! The `[train]` block, without its optimizer and schedule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OptimizerSpec, ScheduleSpec};

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
    /// Groups of parameters whose gradients are scaled or clipped separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GradientGroupSpec>,
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
    /// Weights that training starts from, taken from a run of another recipe. Absent: all weights
    /// are fresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferSpec>,
}

/// Whether the first names of a parameter's path are `name`: `layers.0` begins with `layers`, and
/// `layers_norm` does not.
pub fn begins_with(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Weights that training takes from a run of another recipe. The other parameters start as the
/// model says. The run must be complete: `zoo reproduce` finds it in its home, or `--init-from`
/// names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// Name of the other recipe, or the path of its file, relative to this one.
    pub recipe: String,
    /// Arm of its run.
    pub arm: String,
    /// Tier of its run, which is trained first if there is none. Absent: the published size, which
    /// is never trained by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Parameters to take, by the beginning of their paths. Empty: none, so that all weights are
    /// fresh.
    pub parameters: Vec<TakenSpec>,
}

/// Parameters of one path, or all below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakenSpec {
    /// Path in the other recipe's model, e.g. `layers.0`.
    pub from: String,
    /// Path in this model that stands for it. Every parameter must be there, in the same shape.
    pub to: String,
}

/// Parameters whose gradients are scaled or clipped separately. The gradients of other
/// parameters stay unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradientGroupSpec {
    /// Beginning of the paths of the group's parameters, whole names: `layers` for
    /// `layers.0.weight_ih`.
    pub parameters: String,
    /// Factor of the gradients, after clipping. Absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The group's gradients are scaled down to this norm over all of its parameters. Absent: no
    /// clipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
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
    /// Beginnings of the paths of the parameters that `ema` averages, whole names; the others are
    /// evaluated as they are. Empty: all are averaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ema_of: Vec<String>,
}

impl Default for CheckpointSpec {
    fn default() -> Self {
        Self {
            every_updates: every_updates(),
            evaluate: EvaluatedWeights::default(),
            ema: None,
            ema_of: vec![],
        }
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
        /// Whether it also applies to embeddings.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        embeddings: bool,
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
fn is_none(count: &u64) -> bool {
    *count == 0
}
fn tiny() -> f64 {
    1e-7
}
fn log_every() -> u64 {
    50
}
fn every_updates() -> u64 {
    100
}
