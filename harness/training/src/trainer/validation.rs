//! Validation during training, and selection of the best weights.

use burn::module::Module;
use zoo_recipes::{Direction, EvaluatedWeights};

use super::Trainer;
use crate::error::{OtherError, TrainError};
use crate::progress::{EpochReport, LogFile, Progress, epoch_line};
use crate::state::{Sums, Validated};
use crate::update::{TermSum, loss_of};

/// Evaluates a model on the validation set. The model is outside autodiff.
pub type Validation<'a, M> = dyn FnMut(&M, Asked) -> Result<Seen, OtherError> + 'a;

/// What a validation must compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Only the loss.
    Loss,
    /// The loss, and the score that selects the best weights.
    LossAndScore,
}

/// Result of a validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Terms of the loss with sums and counts.
    pub terms: Vec<TermSum>,
    /// The score, if it was requested.
    pub score: Option<Score>,
}

impl From<Vec<TermSum>> for Seen {
    fn from(terms: Vec<TermSum>) -> Self {
        Self { terms, score: None }
    }
}

/// Score of the model's output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Value of the metric.
    pub value: f64,
    /// Whether higher or lower values are better.
    pub direction: Direction,
}

impl<M: Module, B> Trainer<M, B> {
    pub(super) fn validate(
        &mut self,
        validation: &mut Option<&mut Validation<'_, M>>,
        epoch: Option<Sums>,
        progress: &mut dyn Progress,
        log: Option<&mut LogFile>,
    ) -> Result<(), TrainError> {
        let counters = self.state.counters;
        let (mut seen, mut loss, mut best) = (Seen::from(Vec::new()), None, false);
        if let Some(validation) = validation {
            let (eligible, asked) = self.asked();
            let failed = |source| TrainError::Validation { update: counters.update, source };
            let model = self.model().valid();
            let model = match &self.average {
                Some(average) => average.model(model),
                None => model,
            };
            seen = validation(&model, asked).map_err(failed)?;
            if asked == Asked::LossAndScore && seen.score.is_none() {
                return Err(failed("it gave no score, which selects the best checkpoint".into()));
            }
            loss = Some(loss_of(&seen.terms));
            let validated = Validated {
                update: counters.update,
                epoch: counters.epoch,
                loss: loss.filter(|loss| loss.is_finite()),
                score: seen.score.map(|score| score.value).filter(|score| score.is_finite()),
            };
            best = eligible && self.is_better(&validated, seen.score.map(|score| score.direction));
            self.state.last_validation = Some(validated.clone());
            if best {
                self.state.best = Some(validated);
                self.state.since_best = 0;
                if matches!(self.settings.evaluate, EvaluatedWeights::Best { .. }) {
                    let weights = self.weights_now();
                    let kept = self.folder.save_weights(weights, counters.epoch, counters.update)?;
                    self.state.best_weights = Some(kept);
                }
            } else {
                self.state.since_best += 1;
            }
            let since_best = self.state.since_best;
            self.phases.iter_mut().for_each(|phase| phase.schedule.validated(since_best));
        }
        let report = EpochReport {
            counters,
            train_loss: epoch.as_ref().map(Sums::loss),
            train_terms: epoch.as_ref().map(Sums::term_sums).unwrap_or_default(),
            valid_loss: loss,
            valid_score: seen.score.map(|score| score.value),
            terms: seen.terms,
            best,
            since_best: self.state.since_best,
        };
        progress.on_epoch(&report);
        match log {
            Some(log) => log.write(&epoch_line(&report)).map_err(TrainError::Log),
            None => Ok(()),
        }
    }

    /// Whether the current weights may become the best, and what the validation must compute. A run
    /// that ends before the first eligible epoch uses its last weights.
    fn asked(&self) -> (bool, Asked) {
        let EvaluatedWeights::Best { decode, from_epoch } = &self.settings.evaluate else {
            return (true, Asked::Loss);
        };
        let in_time = self.state.counters.epoch >= *from_epoch;
        let eligible = in_time || (self.state.best.is_none() && self.ending().is_some());
        let scored = eligible && decode.is_some();
        (eligible, if scored { Asked::LossAndScore } else { Asked::Loss })
    }

    /// Whether a validation is better than the best one: by its score where there is one, otherwise
    /// by its loss.
    fn is_better(&self, now: &Validated, direction: Option<Direction>) -> bool {
        let measure = |validated: &Validated| match direction {
            Some(_) => validated.score,
            None => validated.loss,
        };
        let before = self.state.best.as_ref().and_then(measure);
        measure(now).is_some_and(|now| {
            before.is_none_or(|before| match direction {
                Some(Direction::Higher) => now > before,
                Some(Direction::Lower) | None => now < before,
            })
        })
    }
}
