//! Computes the scores and paired differences of a record again, from text and the recorded
//! signatures.

use zoo_recipes::Direction;

use super::recheck::Rescored;
use super::record::ScoreRecord;
use crate::metrics::{Resampling, ScoreError, ScoreOptions, Scorer, Signature, Source, paired_gain, score};
use crate::verdict::{ErrorCount, Interval};

/// Key in a record's data for the digest of an evaluation set's references.
#[must_use]
pub fn references_key(eval: &str) -> String {
    format!("references.{eval}")
}

/// Whether the lines of the recorded score contain all measurements, so that no references are
/// needed.
#[must_use]
pub fn needs_no_references(recorded: &ScoreRecord) -> bool {
    let source = |signature: Signature| signature.convention.metric().source();
    Signature::parse(&recorded.signature).is_ok_and(|signature| source(signature) == Source::Record)
}

/// The score of `hypotheses` under the recorded signature, with an interval if one was recorded.
///
/// # Errors
/// Words on why they cannot be scored.
pub fn score_again(
    recorded: &ScoreRecord,
    hypotheses: &[String],
    references: &[String],
) -> Result<Rescored, String> {
    let signature = Signature::parse(&recorded.signature).map_err(|error| error.to_string())?;
    let scorer = Scorer::from_signature(&recorded.signature).map_err(|error| error.to_string())?;
    let options = ScoreOptions { scorer, resampling: signature.resampling };
    let value = score(hypotheses, &[references.to_vec()], &options).map_err(|error| error.to_string())?;
    let counts = ErrorCount::of(&value);
    let interval = value.interval.map(|interval| Interval {
        low: interval.lower,
        high: interval.upper,
        level: interval.confidence,
    });
    Ok(Rescored { value: value.value, interval, counts })
}

/// [`difference`] with the resamples of the recorded interval.
///
/// # Errors
/// Words on why they cannot be compared.
pub fn difference_again(
    recorded: &ScoreRecord,
    ours: &[String],
    baseline: &[String],
    references: &[String],
    level: f64,
) -> Result<Interval, String> {
    let scorer = Scorer::from_signature(&recorded.signature).map_err(|error| error.to_string())?;
    let signature = Signature::parse(&recorded.signature).ok();
    let resampling = signature.and_then(|signature| signature.resampling).unwrap_or_default();
    difference(&scorer, ours, baseline, &[references.to_vec()], resampling, level)
        .map_err(|error| error.to_string())
}

/// Interval of the judged score minus the baseline's, by paired resampling of the test set. `level`
/// is two-sided.
///
/// # Errors
/// The two cannot be scored, or cannot be paired.
pub fn difference(
    scorer: &Scorer,
    ours: &[String],
    baseline: &[String],
    references: &[Vec<String>],
    resampling: Resampling,
    level: f64,
) -> Result<Interval, ScoreError> {
    let (of_baseline, of_ours) =
        (scorer.statistics(baseline, references)?, scorer.statistics(ours, references)?);
    let gain = paired_gain(&[(&of_baseline, &of_ours)], resampling)?;
    let tail = 0.5 + level / 2.0;
    let (worst, best) = (gain.lower_bound(tail)?, gain.upper_bound(tail)?);
    // A gain is positive if the judged system is better. A difference is its score minus the
    // baseline's.
    let less_is_better = scorer.convention().entry().direction == Direction::Lower;
    let (low, high) = if less_is_better { (-best, -worst) } else { (worst, best) };
    Ok(Interval { low, high, level })
}
