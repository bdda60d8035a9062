//! Checks a bundle by deriving its results again.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::contradictions;
use super::file::{Bundle, BundleError, BundledReferences};
use crate::ledger::{
    Entry, NoReferences, Recheck, Record, Rescored, Rescorer, ScoreRecord, difference_again,
    needs_no_references, recheck, score_again,
};
use crate::verdict::Interval;

/// Result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The record.
    pub entry: Entry,
    /// Scores and verdicts derived again. Scores on sets without references are taken as recorded.
    pub recheck: Recheck,
    /// Evaluation sets whose references were not given.
    pub without_references: Vec<String>,
    /// All other faults: recipe, claims, references.
    pub faults: Vec<String>,
}

impl Checked {
    /// Whether everything that could be checked agrees.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults.is_empty() && self.recheck.disagreements.is_empty()
    }
}

/// References by evaluation set.
struct Given<'a>(&'a BTreeMap<String, Vec<String>>);

impl Rescorer for Given<'_> {
    fn references(&mut self, _: &Record, eval: &str) -> Result<Vec<String>, NoReferences> {
        let absent = || NoReferences::Absent(format!("the references of {eval} were not given"));
        self.0.get(eval).cloned().ok_or_else(absent)
    }

    fn needs_no_references(&self, score: &ScoreRecord) -> bool {
        needs_no_references(score)
    }

    fn score(
        &mut self,
        score: &ScoreRecord,
        ours: &[String],
        references: &[String],
    ) -> Result<Rescored, String> {
        score_again(score, ours, references)
    }

    fn difference(
        &mut self,
        score: &ScoreRecord,
        ours: &[String],
        baseline: &[String],
        references: &[String],
        level: f64,
    ) -> Result<Interval, String> {
        difference_again(score, ours, baseline, references, level)
    }
}

/// Checks the parts against each other, and derives scores and verdicts again. `references` are the
/// lines of the available sets. Scores on other sets are taken as recorded, and their hypotheses
/// must still be the scored ones.
///
/// # Errors
/// The record's line is incomplete or changed, or the recipe does not parse.
pub fn check(bundle: &Bundle, references: &BTreeMap<String, Vec<String>>) -> Result<Checked, BundleError> {
    let entry = bundle.entry()?;
    let mut faults = contradictions(bundle)?;
    let mut usable = BTreeMap::new();
    for (eval, lines) in references {
        let found = BundledReferences::of(eval, lines);
        match bundle.references.iter().find(|known| known.eval == *eval) {
            Some(known) if *known == found => {
                usable.insert(eval.clone(), lines.clone());
            }
            Some(known) => faults.push(format!(
                "the references given for {eval} are not those of the bundle: {} lines with SHA-256 {}, not {} with {}",
                found.lines, found.sha256, known.lines, known.sha256
            )),
            None => faults.push(format!("nothing in the bundle was scored on {eval}")),
        }
    }
    let scored = entry.record.all_scores().filter(|score| score.hypotheses.is_some());
    let without: BTreeSet<String> =
        scored.map(|score| score.eval.clone()).filter(|eval| !references.contains_key(eval)).collect();
    let mut recheck = recheck(std::slice::from_ref(&entry), bundle, &mut Given(&usable));
    // Absent references are reported once per set, not for each score.
    recheck.disagreements.retain(|one| !one.unseen);
    recheck.disagreements.dedup();
    Ok(Checked { entry, recheck, without_references: without.into_iter().collect(), faults })
}
