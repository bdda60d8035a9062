//! Settings of a run, from a recipe and from the caller.

use std::path::PathBuf;

use zoo_models::precision::Compute;
use zoo_recipes::{EvaluatedWeights, TrainSpec};

use crate::error::TrainError;

/// Length of a run, intervals, and folder.
#[derive(Debug, Clone)]
pub struct TrainSettings {
    /// Digest of the resolved recipe, its arm and its data. A checkpoint with another fingerprint
    /// is refused.
    pub fingerprint: String,
    pub seed: u64,
    /// Type of products.
    pub compute: Compute,
    /// Number of batches of an update, over all workers.
    pub batches_per_update: u32,
    /// Maximum number of updates.
    pub max_updates: Option<u64>,
    /// Maximum number of epochs.
    pub max_epochs: Option<u64>,
    /// Maximum number of validations without a new best.
    pub patience: Option<u32>,
    /// Interval in updates between states to resume from, besides the one at the end of each epoch.
    pub checkpoint_every: u64,
    /// The weights that will be evaluated, and must therefore be kept.
    pub evaluate: EvaluatedWeights,
    /// Share of itself that an exponential mean of the weights keeps at each update; `None` without
    /// a mean.
    pub ema: Option<f64>,
    /// First names of the paths of the parameters that the mean is of; empty for all.
    pub ema_of: Vec<String>,
    /// Interval in updates between lines of the log.
    pub log_every: u64,
    /// Folder of the checkpoints.
    pub folder: PathBuf,
    /// Number of consecutive non-finite updates, which a smaller loss scale could not fix, after
    /// which a run has diverged.
    pub diverged_after: u32,
}

impl TrainSettings {
    /// Combines a recipe's settings with those of the caller.
    pub fn new(spec: &TrainSpec, compute: Compute, seed: u64, fingerprint: String, folder: PathBuf) -> Self {
        Self {
            fingerprint,
            seed,
            compute,
            batches_per_update: spec.batches_per_update,
            max_updates: spec.max_updates,
            max_epochs: spec.max_epochs,
            patience: spec.patience.as_ref().map(|patience| patience.epochs),
            checkpoint_every: spec.checkpoint.every_updates,
            evaluate: spec.checkpoint.evaluate.clone(),
            ema: spec.checkpoint.ema,
            ema_of: spec.checkpoint.ema_of.clone(),
            log_every: spec.log_every,
            folder,
            diverged_after: 20,
        }
    }

    /// Checks that the settings are valid for `world` workers.
    pub(crate) fn check(&self, world: u32) -> Result<(), TrainError> {
        let invalid = |what: &str| Err(TrainError::Settings(what.to_string()));
        if self.max_updates.is_none() && self.max_epochs.is_none() {
            return invalid("neither `max_updates` nor `max_epochs` is given: the run would not end");
        }
        if self.batches_per_update == 0
            || self.checkpoint_every == 0
            || self.log_every == 0
            || self.diverged_after == 0
        {
            return invalid(
                "`batches_per_update`, `checkpoint.every_updates` and `log_every` must be above 0",
            );
        }
        if world > self.batches_per_update {
            return invalid("there are more workers than `batches_per_update`");
        }
        Ok(())
    }
}
