//! Scores and paired differences of a record again, from text and the recorded signatures.

use zoo_recipes::Direction;

use super::recheck::Rescored;
use super::record::ScoreRecord;
use crate::metrics::{Resampling, ScoreError, ScoreOptions, Scorer, Signature, Source, paired_gain, score};
use crate::verdict::{ErrorCount, Interval};

/// Key of a record's data under which the digest of an evaluation set's references stands.
#[must_use]
pub fn references_key(eval: &str) -> String {
    format!("references.{eval}")
}

/// Is the recorded score made of lines that have all its measures in them?
#[must_use]
pub fn needs_no_references(recorded: &ScoreRecord) -> bool {
    let source = |signature: Signature| signature.convention.metric().source();
    Signature::parse(&recorded.signature).is_ok_and(|signature| source(signature) == Source::Record)
}

/// The score of `hypotheses` under the recorded signature, with an interval where one was drawn.
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

/// [`difference`] with the resamples that the recorded interval was drawn from.
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

/// Interval of our score minus the baseline's, the test set resampled in pairs; `level` is two-sided.
///
/// # Errors
/// The two cannot be scored, or not be paired.
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
    // A gain is positive where ours is better; a difference is ours minus the baseline's.
    let less_is_better = scorer.convention().entry().direction == Direction::Lower;
    let (low, high) = if less_is_better { (-best, -worst) } else { (worst, best) };
    Ok(Interval { low, high, level })
}
