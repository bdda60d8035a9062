//! Errors that stop a training run.

use std::path::PathBuf;

use crate::checkpoint::CheckpointError;
use crate::optimizer::OptimizerError;
use crate::reduce::ReduceError;
use crate::scaling::ScalingError;
use crate::schedule::ScheduleError;

/// An error from outside this crate: a batch that could not be read, a validation that failed.
pub type OtherError = Box<dyn std::error::Error + Send + Sync>;

/// An error that stops a training run. A loss that is not finite is not an error but an outcome:
/// `Outcome::Diverged`.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Error of a schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Error of a loss scaler.
    #[error(transparent)]
    Scaling(#[from] ScalingError),
    /// Error of an optimizer's state.
    #[error(transparent)]
    Optimizer(#[from] OptimizerError),
    /// Error of a sum over the workers.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// Error of a checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The terms of an objective do not match its counts.
    #[error(
        "phase `{phase}`: the objective announced the terms {announced:?} and computed {computed:?}\nhint: `Objective::counts` and `Objective::terms` must name the same terms in the same order"
    )]
    Terms {
        phase: String,
        /// Names returned by `counts`.
        announced: Vec<String>,
        /// Names returned by `terms`.
        computed: Vec<String>,
    },
    /// The loss does not depend on any parameter.
    #[error(
        "phase `{0}`: the loss depends on no parameter\nhint: build the model on `device.autodiff()`, and give at least one term a weight"
    )]
    Untracked(String),
    /// The settings are invalid.
    #[error("{0}\nhint: see the `[train]` block of the recipe")]
    Settings(String),
    /// The device cannot compute softmax, norms or the loss in a half type.
    #[error(
        "training without FP32 islands (`precision.islands`) needs a CPU with AVX2\nhint: --device cpu, or another arm"
    )]
    Islands,
    /// The checkpoint belongs to another run.
    #[error(
        "the checkpoint {path} was made with {what} {found}, this run has {expected}\nhint: resume with the recipe, arm and seed that the run was started with, or start anew in another folder"
    )]
    OtherRun {
        path: PathBuf,
        /// The property that differs.
        what: &'static str,
        /// Value of the checkpoint.
        found: String,
        /// Value of this run.
        expected: String,
    },
    /// A batch could not be read.
    #[error("batch {batch} of epoch {epoch} (both counted from 0) could not be had: {source}")]
    Batch {
        /// Epoch, from 0.
        epoch: u64,
        /// Batch within the epoch, from 0.
        batch: u64,
        #[source]
        source: OtherError,
    },
    /// Validation failed.
    #[error("validation after update {update} failed: {source}")]
    Validation {
        /// Number of completed updates.
        update: u64,
        #[source]
        source: OtherError,
    },
    /// The device reported an error when the host synchronised with it.
    #[error(
        "the device failed: {0}\nhint: `zoo doctor` shows what the device needs; a smaller batch needs less of its memory"
    )]
    Device(String),
    /// The log could not be written.
    #[error(
        "the training log could not be written: {log}\nhint: {hint}",
        log = .0,
        hint = zoo_recipes::untrusted::hint_or(.0, "is the folder there, and may it be written?")
    )]
    Log(#[source] std::io::Error),
}
