//! State of a run, besides its weights and optimizer moments: everything that determines how it
//! continues.

use serde::{Deserialize, Serialize};
use zoo_recipes::Moment;

use crate::scaling::ScalerState;
use crate::term::{TermSum, loss_of};

/// Properties that a run must share with the checkpoint from which it resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Digest of the resolved recipe, its arm and its data, computed by the caller.
    pub fingerprint: String,
    pub seed: u64,
    /// Number of batches of one update, over all workers.
    pub batches_per_update: u32,
    /// Compute type, e.g. `bf16`.
    pub compute: String,
    /// Number of workers. A run may resume with another number: the same batches give the same
    /// updates up to rounding.
    pub world: u32,
}

/// Position of a run. All counts are over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Batches processed, including those of skipped updates.
    pub batch: u64,
    /// Forward and backward passes, including those of skipped updates. This is the key of dropout.
    pub micro_step: u64,
    /// Updates in which at least one phase moved its parameters.
    pub update: u64,
    /// Updates that every phase skipped.
    pub skipped: u64,
    /// Completed epochs; also the index, from 0, of the current epoch.
    pub epoch: u64,
    /// Batches processed in the current epoch.
    pub batch_in_epoch: u64,
}

/// State of a phase of the update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseState {
    pub name: String,
    /// Number of successful updates.
    pub updates: u64,
    /// See [`crate::update::Phase::hopeless`].
    pub hopeless: u32,
    /// Number of steps of the optimizer.
    pub optimizer_steps: u64,
    /// State of the loss scaler.
    pub scaler: ScalerState,
    /// How often the plateau schedule has reduced the learning rate.
    #[serde(default, skip_serializing_if = "never")]
    pub falls: u32,
}

fn never(falls: &u32) -> bool {
    *falls == 0
}

/// Result of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validated {
    /// Updates completed at the time.
    pub update: u64,
    /// Epochs completed at the time.
    pub epoch: u64,
    /// Validation loss; `None` if it was not finite.
    pub loss: Option<f64>,
    /// Validation score, where a score selects the best weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// Weights that are kept in a separate file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptWeights {
    /// File name in the checkpoint folder.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Epochs completed at the time.
    pub epoch: u64,
    /// Updates completed at the time.
    pub update: u64,
}

/// Sums over updates, for the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sums {
    /// Number of successful updates.
    pub updates: u64,
    /// Number of skipped updates.
    pub skipped: u64,
    /// Tokens, or another unit of the speed.
    pub tokens: u64,
    /// Time in seconds.
    pub seconds: f64,
    /// Terms of the loss, summed over the successful updates.
    pub terms: Vec<Term>,
}

/// A term of the loss in [`Sums`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub name: String,
    /// Sum of the term.
    pub sum: f64,
    /// Denominator of the term.
    pub count: f64,
    /// Weight in the loss.
    pub weight: f64,
}

impl Sums {
    /// Adds the terms of a successful update.
    pub fn add(&mut self, terms: &[TermSum]) {
        for term in terms {
            match self.terms.iter_mut().find(|known| known.name == term.name) {
                Some(known) => {
                    known.sum += term.sum;
                    known.count += term.count;
                }
                None => self.terms.push(Term {
                    name: term.name.clone(),
                    sum: term.sum,
                    count: term.count,
                    weight: term.weight,
                }),
            }
        }
    }

    /// The terms as [`TermSum`]s.
    pub fn term_sums(&self) -> Vec<TermSum> {
        let sums = self.terms.iter();
        sums.map(|t| TermSum { name: t.name.clone(), sum: t.sum, count: t.count, weight: t.weight }).collect()
    }

    /// Loss over these updates. Each token (or other unit) has the same weight.
    pub fn loss(&self) -> f64 {
        loss_of(&self.term_sums())
    }
}

/// Reason why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ending {
    /// The number of updates was reached.
    MaxUpdates,
    /// The number of epochs was reached.
    MaxEpochs,
    /// Validation did not improve for the number of epochs that the recipe allows.
    Patience,
    /// The learning rate fell below the recipe's minimum.
    Rate,
    /// The run was stopped because its intermediate scores were too far from the published ones.
    OffCourse {
        /// Time of the stop.
        at: Moment,
    },
    /// The loss or the gradients were not finite for many updates in a row, and a smaller loss
    /// scale could not help.
    Diverged {
        /// The phase that diverged.
        phase: String,
    },
}

impl Ending {
    /// Whether the run ended with a model to evaluate.
    pub fn is_scored(&self) -> bool {
        !matches!(self, Self::Diverged { .. } | Self::OffCourse { .. })
    }
}

/// State of a run, without its arrays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    pub identity: Identity,
    /// Position of the run.
    pub counters: Counters,
    /// State of each phase, in order.
    pub phases: Vec<PhaseState>,
    /// The best validation so far.
    pub best: Option<Validated>,
    /// Weights of the best validation, where the recipe evaluates them.
    pub best_weights: Option<KeptWeights>,
    /// The last validation.
    pub last_validation: Option<Validated>,
    /// Validations since the best one.
    pub since_best: u32,
    /// Weights after the last epochs, or at a fixed interval, oldest first, where the recipe
    /// evaluates their mean.
    // Checkpoints have used this name from the first version on.
    #[serde(rename = "epoch_weights")]
    pub kept_weights: Vec<KeptWeights>,
    /// Sums since the last line of the log.
    pub since_log: Sums,
    /// Sums since the start of the epoch.
    pub this_epoch: Sums,
    /// Training time in seconds, including validation and checkpoints, over all sessions.
    pub seconds: f64,
    /// Set when the run has ended.
    pub ending: Option<Ending>,
}

impl RunState {
    /// State at the start of a run.
    pub fn new(identity: Identity, phases: Vec<PhaseState>) -> Self {
        Self {
            identity,
            counters: Counters::default(),
            phases,
            best: None,
            best_weights: None,
            last_validation: None,
            since_best: 0,
            kept_weights: Vec::new(),
            since_log: Sums::default(),
            this_epoch: Sums::default(),
            seconds: 0.0,
            ending: None,
        }
    }

    /// Names of the weight files that this state refers to.
    pub fn weight_files(&self) -> impl Iterator<Item = &str> {
        self.kept_weights.iter().chain(&self.best_weights).map(|kept| kept.file.as_str())
    }
}
