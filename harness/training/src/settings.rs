//! What a recipe and the caller say of a run.

use std::path::PathBuf;

use zoo_models::precision::Compute;
use zoo_recipes::{EvaluatedWeights, TrainSpec};

use crate::error::TrainError;

/// How long, how often, and where.
#[derive(Debug, Clone)]
pub struct TrainSettings {
    /// Digest of the resolved recipe, its arm and its data. A checkpoint with another one is refused.
    pub fingerprint: String,
    /// Seed of this run.
    pub seed: u64,
    /// Type of products.
    pub compute: Compute,
    /// Batches of an update, over all workers.
    pub batches_per_update: u32,
    /// End after so many updates.
    pub max_updates: Option<u64>,
    /// End after so many epochs.
    pub max_epochs: Option<u64>,
    /// End after so many validations without a new best.
    pub patience: Option<u32>,
    /// A state to resume from every so many updates, beside the one at each epoch's end.
    pub checkpoint_every: u64,
    /// Which weights will be evaluated, and so must be kept.
    pub evaluate: EvaluatedWeights,
    /// Share that a mean of the weights keeps of itself at each update; absent: none is kept.
    pub ema: Option<f64>,
    /// A line in the log every so many updates.
    pub log_every: u64,
    /// Folder of the checkpoints.
    pub folder: PathBuf,
    /// Updates in a row that are not finite, and that a smaller loss scale could not mend, after which a run has diverged.
    pub diverged_after: u32,
}

impl TrainSettings {
    /// What a recipe says, and what only the caller knows.
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
            log_every: spec.log_every,
            folder,
            diverged_after: 20,
        }
    }

    /// Whether a run of so many workers can be made of it.
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
