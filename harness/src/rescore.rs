//! Scores of a ledger again: references from the recipes' data, metrics from their signatures.

use std::path::{Path, PathBuf};

use zoo_recipes::{Document, Resolved, Selection};
use zoo_results::ledger::{
    NoReferences, Record, Rescored, Rescorer, ScoreRecord, difference_again, needs_no_references,
    references_key, score_again,
};
use zoo_results::verdict::Interval;

use crate::context::Context;
use crate::{lines, records, references};

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
}

/// The references that a record was scored against: kept ones, else those of the recipe's data.
///
/// # Errors
/// Words on why they are not to be had, or are others.
pub fn references_of(
    context: &Context,
    folder: &Path,
    record: &Record,
    resolved: &Resolved,
    eval: &str,
) -> Result<Vec<String>, NoReferences> {
    let digest = record.data.get(&references_key(eval));
    if let Some(kept) = digest.and_then(|digest| kept(folder, digest)) {
        return kept;
    }
    let found = references::of(context, resolved, eval)
        .map_err(|failure| NoReferences::Absent(failure.to_string()))?;
    match digest {
        Some(digest) if records::digest_of(&found) != *digest => {
            Err(NoReferences::Changed(format!("the references of {eval} are not those of the record")))
        }
        _ => Ok(found),
    }
}

/// References that were given by hand and kept.
fn kept(folder: &Path, digest: &str) -> Option<Result<Vec<String>, NoReferences>> {
    let file = folder.join(records::kept_path(digest));
    if !file.is_file() {
        return None;
    }
    Some(match lines::read(&file) {
        Ok(lines) if records::digest_of(&lines) == digest => Ok(lines),
        Ok(_) => Err(NoReferences::Changed(format!("{} was changed", file.display()))),
        Err(failure) => Err(NoReferences::Changed(failure.to_string())),
    })
}

impl Rescorer for FromRecipes<'_> {
    fn references(&mut self, record: &Record, eval: &str) -> Result<Vec<String>, NoReferences> {
        let digest = record.data.get(&references_key(eval));
        if let Some(kept) = digest.and_then(|digest| kept(&self.folder, digest)) {
            return kept;
        }
        let absent = |why: &dyn std::fmt::Display| NoReferences::Absent(why.to_string());
        let document = Document::load(&record.recipe).map_err(|error| absent(&error))?;
        let selection =
            Selection { arm: record.arm.clone(), tier: record.tier.clone(), overrides: record.changes() };
        let resolved = document.resolve(&selection).map_err(|found| absent(&found))?;
        references_of(self.context, &self.folder, record, &resolved, eval)
    }

    fn needs_no_references(&self, score: &ScoreRecord) -> bool {
        needs_no_references(score)
    }

    fn score(
        &mut self,
        recorded: &ScoreRecord,
        hypotheses: &[String],
        references: &[String],
    ) -> Result<Rescored, String> {
        score_again(recorded, hypotheses, references)
    }

    fn difference(
        &mut self,
        recorded: &ScoreRecord,
        ours: &[String],
        baseline: &[String],
        references: &[String],
        level: f64,
    ) -> Result<Interval, String> {
        difference_again(recorded, ours, baseline, references, level)
    }
}
