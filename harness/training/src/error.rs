//! What can stop a training run.

use std::path::PathBuf;

use crate::checkpoint::CheckpointError;
use crate::optimizer::OptimizerError;
use crate::reduce::ReduceError;
use crate::scaling::ScalingError;
use crate::schedule::ScheduleError;

/// An error of another room: a batch that could not be read, a validation that failed.
pub type OtherError = Box<dyn std::error::Error + Send + Sync>;

/// What can stop a training run. A loss that is not finite is no error but an outcome: `Outcome::Diverged`.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// See [`ScheduleError`].
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// See [`ScalingError`].
    #[error(transparent)]
    Scaling(#[from] ScalingError),
    /// See [`OptimizerError`].
    #[error(transparent)]
    Optimizer(#[from] OptimizerError),
    /// See [`ReduceError`].
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// See [`CheckpointError`].
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// An objective whose terms do not match its counts.
    #[error(
        "phase `{phase}`: the objective announced the terms {announced:?} and computed {computed:?}\nhint: `Objective::counts` and `Objective::terms` must name the same terms in the same order"
    )]
    Terms {
        /// Phase.
        phase: String,
        /// By `counts`.
        announced: Vec<String>,
        /// By `terms`.
        computed: Vec<String>,
    },
    /// A loss that no parameter enters.
    #[error(
        "phase `{0}`: the loss depends on no parameter\nhint: build the model on `device.autodiff()`, and give at least one term a weight"
    )]
    Untracked(String),
    /// Settings that cannot be trained with.
    #[error("{0}\nhint: see the `[train]` block of the recipe")]
    Settings(String),
    /// A checkpoint of another run.
    #[error(
        "the checkpoint {path} was made with {what} {found}, this run has {expected}\nhint: resume with the recipe, arm and seed that the run was started with, or start anew in another folder"
    )]
    OtherRun {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// The checkpoint's.
        found: String,
        /// This run's.
        expected: String,
    },
    /// A batch could not be had.
    #[error("batch {batch} of epoch {epoch} (both counted from 0) could not be had: {source}")]
    Batch {
        /// Epoch, from 0.
        epoch: u64,
        /// Batch within the epoch, from 0.
        batch: u64,
        /// Why.
        #[source]
        source: OtherError,
    },
    /// Validation failed.
    #[error("validation after update {update} failed: {source}")]
    Validation {
        /// Updates done.
        update: u64,
        /// Why.
        #[source]
        source: OtherError,
    },
    /// The device failed while it was waited for.
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
