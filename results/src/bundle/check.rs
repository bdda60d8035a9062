//! A bundle, derived again.

use std::collections::BTreeMap;

use super::file::{Bundle, BundleError, BundledReferences};
use crate::ledger::{
    Entry, NoReferences, Recheck, Record, Rescored, Rescorer, ScoreRecord, difference_again,
    needs_no_references, recheck, references_key, score_again,
};
use crate::verdict::Interval;

/// What a check came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The record.
    pub entry: Entry,
    /// Scores and verdicts derived again. Scores on sets without references are taken as recorded.
    pub recheck: Recheck,
    /// Evaluation sets whose references were not given.
    pub without_references: Vec<String>,
    /// Everything else that does not fit: recipe, claims, references.
    pub faults: Vec<String>,
}

impl Checked {
    /// Does everything fit that could be looked at?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults.is_empty() && self.recheck.disagreements.is_empty()
    }
}

/// References by evaluation set.
struct Given<'a>(&'a BTreeMap<String, Vec<String>>);

impl Rescorer for Given<'_> {
    fn references(&mut self, _: &Record, eval: &str) -> Result<Vec<String>, NoReferences> {
        let absent = || NoReferences::Absent(format!("those of {eval} were not given"));
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

/// Derives recipe hash, claims, scores and verdicts again. `references` are the lines of the sets that could be had.
///
/// # Errors
/// The record's line is not whole, or the recipe does not parse.
pub fn check(bundle: &Bundle, references: &BTreeMap<String, Vec<String>>) -> Result<Checked, BundleError> {
    let mut entry = bundle.entry()?;
    let recipes = bundle.recipes()?;
    let mut faults = Vec::new();
    let hash = bundle.recipe_hash()?;
    if hash != entry.record.recipe_hash {
        faults.push(format!("the recipe has hash {hash}, the record is about {}", entry.record.recipe_hash));
    }
    let claims: Vec<_> = recipes.values().flat_map(|recipe| &recipe.claim).collect();
    for judgement in &entry.record.judgements {
        if !claims.contains(&&judgement.claim) {
            faults
                .push(format!("the recipe has no claim like the one judged from {}", judgement.claim.source));
        }
    }
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
    // The record of a judgement from outside names the references itself.
    for known in &bundle.references {
        let recorded = entry.record.data.get(&references_key(&known.eval));
        if recorded.is_some_and(|recorded| *recorded != known.sha256) {
            faults.push(format!("record and bundle name other references of {}", known.eval));
        }
    }
    let mut without_references = Vec::new();
    for score in &mut entry.record.scores {
        if score.hypotheses.is_some() && !references.contains_key(&score.eval) {
            score.hypotheses = None;
            if !without_references.contains(&score.eval) {
                without_references.push(score.eval.clone());
            }
        }
    }
    let mut found = recheck(std::slice::from_ref(&entry), bundle, &mut Given(&usable));
    // What cannot be scored again must at least be the file that was scored.
    let whole = bundle.entry()?;
    for (score, recorded) in entry.record.scores.iter().zip(&whole.record.scores) {
        if let (None, Some(file)) = (&score.hypotheses, &recorded.hypotheses) {
            let text = bundle.hypotheses.iter().find(|one| one.file.path == file.path).map(|one| &one.text);
            match text.map(|text| super::file::sha256(text.as_bytes())) {
                Some(digest) if digest == file.sha256 => {}
                Some(digest) => {
                    faults.push(format!("{} has SHA-256 {digest}, recorded {}", file.path, file.sha256));
                }
                None => faults.push(format!("the bundle has no {}", file.path)),
            }
        }
    }
    found.disagreements.dedup();
    Ok(Checked { entry: whole, recheck: found, without_references, faults })
}
