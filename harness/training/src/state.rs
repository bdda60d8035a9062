//! What a run is, beside its weights and its optimizers' moments: everything that decides how it goes on.

use serde::{Deserialize, Serialize};
use zoo_recipes::Moment;

use crate::scaling::ScalerState;
use crate::update::{TermSum, loss_of};

/// What a run must share with the checkpoint that it goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Digest of the resolved recipe, its arm and its data, made by the caller.
    pub fingerprint: String,
    /// Seed.
    pub seed: u64,
    /// Batches of one update, over all workers.
    pub batches_per_update: u32,
    /// Compute type, e.g. `bf16`.
    pub compute: String,
    /// Workers. A run may go on with another number of them: the same batches make the same updates within rounding.
    pub world: u32,
}

/// Where a run is. All counts are over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Batches gone through, with those of skipped updates.
    pub batch: u64,
    /// Forward and backward passes, with those of skipped updates: the key of dropout.
    pub micro_step: u64,
    /// Updates in which at least one phase moved its parameters.
    pub update: u64,
    /// Updates that no phase made.
    pub skipped: u64,
    /// Epochs done; also the number, from 0, of the epoch in progress.
    pub epoch: u64,
    /// Batches gone through in the epoch in progress.
    pub batch_in_epoch: u64,
}

/// A phase of the update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseState {
    /// Name.
    pub name: String,
    /// Good updates.
    pub updates: u64,
    /// See [`crate::update::Phase::hopeless`].
    pub hopeless: u32,
    /// Steps of the optimizer.
    pub optimizer_steps: u64,
    /// Loss scaler.
    pub scaler: ScalerState,
    /// How often the learning rate has fallen by what validation said.
    #[serde(default, skip_serializing_if = "never")]
    pub falls: u32,
}

fn never(falls: &u32) -> bool {
    *falls == 0
}

/// A validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validated {
    /// Updates done then.
    pub update: u64,
    /// Epochs done then.
    pub epoch: u64,
    /// Loss; absent if it was not finite.
    pub loss: Option<f64>,
    /// Score, where one decides which weights are the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// Weights kept in a file of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptWeights {
    /// File name in the checkpoint folder.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Epochs done then.
    pub epoch: u64,
    /// Updates done then.
    pub update: u64,
}

/// Sums over updates, for the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sums {
    /// Updates made.
    pub updates: u64,
    /// Updates skipped.
    pub skipped: u64,
    /// Tokens (or what else the speed is counted in).
    pub tokens: u64,
    /// Time, s.
    pub seconds: f64,
    /// Terms of the loss over the updates made.
    pub terms: Vec<Term>,
}

/// A term of the loss in [`Sums`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Name.
    pub name: String,
    /// Sum.
    pub sum: f64,
    /// Count.
    pub count: f64,
    /// Weight in the loss.
    pub weight: f64,
}

impl Sums {
    /// Adds the terms of a good update.
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

    /// The terms.
    pub fn term_sums(&self) -> Vec<TermSum> {
        let sums = self.terms.iter();
        sums.map(|t| TermSum { name: t.name.clone(), sum: t.sum, count: t.count, weight: t.weight }).collect()
    }

    /// The loss over these updates, each token (or whatever is counted) weighing the same.
    pub fn loss(&self) -> f64 {
        loss_of(&self.term_sums())
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ending {
    /// The number of updates was reached.
    MaxUpdates,
    /// The number of epochs was reached.
    MaxEpochs,
    /// Validation did not improve for as many epochs as the recipe allows.
    Patience,
    /// The learning rate has fallen below the recipe's least.
    Rate,
    /// Its scores on the way were so far from the published ones that whoever watches the run gave it up.
    OffCourse {
        /// When.
        at: Moment,
    },
    /// The loss or the gradients were not finite for many updates in a row, and no smaller loss scale could help.
    Diverged {
        /// The phase that did.
        phase: String,
    },
}

impl Ending {
    /// Is there a model at its end that is evaluated?
    pub fn is_scored(&self) -> bool {
        !matches!(self, Self::Diverged { .. } | Self::OffCourse { .. })
    }
}

/// The state of a run beside its arrays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// What the run is.
    pub identity: Identity,
    /// Where it is.
    pub counters: Counters,
    /// Phases, in order.
    pub phases: Vec<PhaseState>,
    /// The best validation so far.
    pub best: Option<Validated>,
    /// Weights of the best validation, where they are what is evaluated.
    pub best_weights: Option<KeptWeights>,
    /// The last validation.
    pub last_validation: Option<Validated>,
    /// Validations since the best one.
    pub since_best: u32,
    /// Weights at the ends of the last epochs, or at a fixed distance, oldest first, where their mean is what is evaluated.
    // The name that checkpoints have had from the first version on.
    #[serde(rename = "epoch_weights")]
    pub kept_weights: Vec<KeptWeights>,
    /// Since the last line of the log.
    pub since_log: Sums,
    /// Since the epoch began.
    pub this_epoch: Sums,
    /// Time of training with validation and checkpoints, s, over all sessions.
    pub seconds: f64,
    /// Set when the run has ended.
    pub ending: Option<Ending>,
}

impl RunState {
    /// The start of a run.
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
