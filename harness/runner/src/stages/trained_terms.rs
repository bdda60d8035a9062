//! Means of training terms over an epoch, read from a run's log: evidence for claims on what
//! training itself logs.

use zoo_recipes::{ClaimSpec, LossMean, Moment};
use zoo_results::metrics::{OfTerm, Over, Signature, TermMean, TrainedTerm, TrainingOptions};
use zoo_results::verdict::trained_term as wanted;

use super::opened::opened;
use crate::error::Result;
use crate::run::folder::Run;
use crate::run::log::{LoggedEpoch, LoggedTerm, epochs};
use crate::tasks;

/// Where in a run a term is read.
#[derive(Debug, Clone, Copy)]
pub enum At {
    /// At the end, which the pass must end with: a run may end within an epoch.
    End {
        /// Updates of the whole run.
        updates: u64,
    },
    /// At a point of a trajectory.
    Point(Moment),
}

/// The term of a claim at the end of a run, or at a point on the way; `None` for a claim on
/// outputs, and if the log does not have what the claim's signature says.
///
/// # Errors
/// The run's recipe cannot be read.
pub fn term(run: &Run, claim: &ClaimSpec, at: At) -> Result<Option<TrainedTerm>> {
    let Some(options) = wanted(claim) else { return Ok(None) };
    let (_, recipe) = opened(&run.folder)?;
    let train = &recipe.train;
    // The sums of such an update are scaled: their mean is one of the batches' means.
    let of_batches = train.loss_mean == LossMean::OfBatches && train.batches_per_update > 1;
    let unit = tasks::of(&recipe).training_unit(options.of);
    if of_batches && options.of == OfTerm::Objective {
        return Ok(None);
    }
    if unit != Some(options.unit) || options.over != Over::Epoch || options.mean != TermMean::Unit {
        return Ok(None);
    }
    let logged = epochs(&run.folder.join("log.jsonl"));
    let is_at = |epoch: &&LoggedEpoch| match at {
        At::End { updates } => epoch.update == updates,
        At::Point(moment) => epoch.is_at(moment),
    };
    let found = logged.iter().find(is_at).and_then(|epoch| of_epoch(epoch, options));
    Ok(found.filter(|term| term.value().is_ok()))
}

fn of_epoch(epoch: &LoggedEpoch, options: TrainingOptions) -> Option<TrainedTerm> {
    let named = |name: &str| epoch.terms.get(name).map(|term| (term.sum, term.count));
    let (sum, count) = match options.of {
        OfTerm::Objective => {
            // Terms with different denominators have no common mean.
            let mut weighted = epoch.terms.values().filter(|term| term.weight != 0.0);
            let first = weighted.next()?;
            let same = |sum: f64, term: &LoggedTerm| {
                (term.count == first.count).then_some(sum + term.weight * term.sum)
            };
            (weighted.try_fold(first.weight * first.sum, same)?, first.count)
        }
        OfTerm::Likelihood | OfTerm::Perplexity => named("nll")?,
        OfTerm::Accuracy { top } => named(&format!("top{top}"))?,
    };
    let signature = Signature::own(options.into(), None);
    Some(TrainedTerm { signature, sum, count, update: epoch.update })
}

#[cfg(test)]
mod tests {
    use zoo_results::metrics::Unit;

    use super::*;

    fn epoch(terms: &[(&str, f64, f64, f64)]) -> LoggedEpoch {
        let term = |&(name, sum, count, weight): &(&str, f64, f64, f64)| {
            (name.to_owned(), LoggedTerm { sum, count, weight })
        };
        LoggedEpoch { epoch: 2, update: 40, terms: terms.iter().map(term).collect() }
    }

    fn found(of: OfTerm, terms: &[(&str, f64, f64, f64)]) -> Option<f64> {
        let options = TrainingOptions { of, unit: Unit::Token, over: Over::Epoch, mean: TermMean::Unit };
        let term = of_epoch(&epoch(terms), options)?;
        assert_eq!(term.update, 40);
        Some(term.value().unwrap().value)
    }

    #[test]
    fn an_objective_is_the_weighted_sum_of_terms_with_one_denominator() {
        let terms = [("loss", 6.0, 4.0, 1.0), ("nll", 5.0, 4.0, 0.0)];
        assert_eq!(found(OfTerm::Objective, &terms), Some(1.5));
        assert_eq!(found(OfTerm::Objective, &[("a", 6.0, 4.0, 1.0), ("b", 2.0, 4.0, 0.5)]), Some(1.75));
        assert_eq!(found(OfTerm::Objective, &[("a", 6.0, 4.0, 1.0), ("b", 2.0, 8.0, 1.0)]), None);
        assert_eq!(found(OfTerm::Objective, &[]), None);
    }

    #[test]
    fn likelihoods_and_right_answers_are_terms_of_their_own() {
        let terms = [("loss", 6.0, 4.0, 1.0), ("nll", 8.0, 4.0, 0.0), ("top1", 3.0, 4.0, 0.0)];
        assert_eq!(found(OfTerm::Likelihood, &terms), Some(2.0));
        assert_eq!(found(OfTerm::Perplexity, &terms), Some(2.0_f64.exp()));
        assert_eq!(found(OfTerm::Accuracy { top: 1 }, &terms), Some(75.0));
        assert_eq!(found(OfTerm::Accuracy { top: 5 }, &terms), None);
    }
}
