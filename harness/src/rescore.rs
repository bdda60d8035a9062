//! Scores of a ledger again: references from the recipes' data, metrics from their signatures.

use std::path::{Path, PathBuf};

use zoo_recipes::{Direction, Document, Selection};
use zoo_results::ledger::{Record, Rescored, Rescorer, ScoreRecord};
use zoo_results::metrics::{Resampling, ScoreError, ScoreOptions, Scorer, Signature, paired_gain, score};
use zoo_results::verdict::Interval;

use crate::context::Context;
use crate::{lines, records, references};

/// Key of a record's data under which the digest of kept references stands.
pub fn references_key(eval: &str) -> String {
    format!("references.{eval}")
}

/// Brings references and metrics to a recheck.
pub struct FromRecipes<'c> {
    context: &'c Context,
    /// Kept files, beside the ledger.
    folder: PathBuf,
}

impl<'c> FromRecipes<'c> {
    /// For the ledger whose kept files are in `folder`.
    pub fn new(context: &'c Context, folder: &Path) -> Self {
        Self { context, folder: folder.to_owned() }
    }

    /// References that were given by hand and kept.
    fn kept(&self, digest: &str) -> Option<Result<Vec<String>, String>> {
        let file = self.folder.join(records::kept_path(digest));
        if !file.is_file() {
            return None;
        }
        Some(match lines::read(&file) {
            Ok(lines) if records::digest_of(&lines) == digest => Ok(lines),
            Ok(_) => Err(format!("{} was changed", file.display())),
            Err(failure) => Err(failure.to_string()),
        })
    }
}

impl Rescorer for FromRecipes<'_> {
    fn references(&mut self, record: &Record, eval: &str) -> Result<Vec<String>, String> {
        let digest = record.data.get(&references_key(eval));
        if let Some(kept) = digest.and_then(|digest| self.kept(digest)) {
            return kept;
        }
        let document = Document::load(&record.recipe).map_err(|error| error.to_string())?;
        let overrides: Vec<String> =
            record.overrides.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selection = Selection { arm: record.arm.clone(), tier: record.tier.clone(), overrides };
        let resolved = document.resolve(&selection).map_err(|found| found.to_string())?;
        let found = references::of(self.context, &resolved, eval).map_err(|failure| failure.to_string())?;
        match digest {
            Some(digest) if records::digest_of(&found) != *digest => {
                Err(format!("the references of {eval} are not those of the record"))
            }
            _ => Ok(found),
        }
    }

    fn score(
        &mut self,
        recorded: &ScoreRecord,
        hypotheses: &[String],
        references: &[String],
    ) -> Result<Rescored, String> {
        let signature = Signature::parse(&recorded.signature).map_err(|error| error.to_string())?;
        let scorer = Scorer::from_signature(&recorded.signature).map_err(|error| error.to_string())?;
        let options = ScoreOptions { scorer, resampling: signature.resampling };
        let value = score(hypotheses, &[references.to_vec()], &options).map_err(|error| error.to_string())?;
        let interval = value.interval.map(|interval| Interval {
            low: interval.lower,
            high: interval.upper,
            level: interval.confidence,
        });
        Ok(Rescored { value: value.value, interval, counts: None })
    }

    fn difference(
        &mut self,
        recorded: &ScoreRecord,
        ours: &[String],
        baseline: &[String],
        references: &[String],
        level: f64,
    ) -> Result<Interval, String> {
        let scorer = Scorer::from_signature(&recorded.signature).map_err(|error| error.to_string())?;
        let resampling = scorer_resampling(&recorded.signature);
        difference(&scorer, ours, baseline, &[references.to_vec()], resampling, level)
            .map_err(|error| error.to_string())
    }
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
    let less_is_better = scorer.convention().metric().direction() == Direction::Lower;
    let (low, high) = if less_is_better { (-best, -worst) } else { (worst, best) };
    Ok(Interval { low, high, level })
}

/// The resamples that the recorded interval was drawn from.
fn scorer_resampling(signature: &str) -> Resampling {
    Signature::parse(signature).ok().and_then(|signature| signature.resampling).unwrap_or_default()
}
