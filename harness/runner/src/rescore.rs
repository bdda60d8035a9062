//! Recomputation of a ledger's scores, with references from the recipes' data and metrics from
//! their signatures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zoo_recipes::{Document, Resolved, Selection};
use zoo_results::ledger::{
    AgainstRecipe, Contradiction, Disagreement, Entry, NoReferences, Record, Rescored, Rescorer, RunEnd,
    ScoreRecord, against_recipe, difference_again, needs_no_references, references_key, score_again,
};
use zoo_results::verdict::Interval;

use crate::context::Context;
use crate::{lines, records, references};

/// Source of references and metrics for a recheck.
pub struct FromRecipes<'c> {
    context: &'c Context,
    /// Folder of stored files next to the ledger.
    folder: PathBuf,
}

impl<'c> FromRecipes<'c> {
    /// For a ledger whose stored files are in `folder`.
    pub fn new(context: &'c Context, folder: &Path) -> Self {
        Self { context, folder: folder.to_owned() }
    }
}

/// The references that a record was scored against: stored ones, else those of the recipe's data.
///
/// # Errors
/// The references cannot be obtained, or they have changed; the error is a description.
pub fn references_of(
    context: &Context,
    folder: &Path,
    record: &Record,
    resolved: &Resolved,
    eval: &str,
) -> Result<Vec<String>, NoReferences> {
    let digest = record.data.get(&references_key(eval));
    if let Some(kept) = kept_for(folder, record, eval) {
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

/// References that were stored with the record, for external results and for recipes that are not
/// built in. For a built-in recipe, only the references of its data are used: with references from
/// the record, any hypotheses could score well.
fn kept_for(folder: &Path, record: &Record, eval: &str) -> Option<Result<Vec<String>, NoReferences>> {
    if record.end != RunEnd::External && zoo_recipes::find(&record.recipe).is_ok() {
        return None;
    }
    kept(folder, record.data.get(&references_key(eval))?)
}

/// References that the user gave and that were stored.
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
        if let Some(kept) = kept_for(&self.folder, record, eval) {
            return kept;
        }
        let absent = |why: &dyn std::fmt::Display| NoReferences::Absent(why.to_string());
        // A ledger may come from someone else, so files that it names are not read.
        if zoo_recipes::is_path(&record.recipe) {
            return Err(absent(&"the record names its recipe by a path"));
        }
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

/// Result of comparing records with the recipes that they name.
pub struct Held {
    /// Contradictions between records and recipes.
    pub disagreements: Vec<Disagreement>,
    /// Number of records of other versions of their recipes, which could not be compared.
    pub other_versions: usize,
}

/// Compares every record with the built-in recipe that it names.
pub fn held_against_recipes(entries: &[Entry]) -> Held {
    let mut held = Held { disagreements: Vec::new(), other_versions: 0 };
    let mut names: Option<BTreeMap<String, String>> = None;
    for entry in entries {
        let record = &entry.record;
        if zoo_recipes::find(&record.recipe).is_err() {
            continue;
        }
        let Ok(document) = Document::load(&record.recipe) else { continue };
        let found = match against_recipe(record, &document) {
            AgainstRecipe::Compared(found) => found,
            AgainstRecipe::OtherVersion => {
                held.other_versions += 1;
                let names = names.get_or_insert_with(names_by_hash);
                let other = names.get(&record.recipe_hash).map(|name| Contradiction {
                    what: "recipe".to_owned(),
                    how: format!("its hash is that of {name}, the record names {}", record.recipe),
                });
                other.into_iter().collect()
            }
        };
        held.disagreements.extend(found.into_iter().map(|one| Disagreement::of(entry, one)));
    }
    held
}

/// Names of the built-in recipes by their hashes in all tiers.
fn names_by_hash() -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for name in zoo_recipes::names() {
        let Ok(document) = Document::load(name) else { continue };
        for tier in std::iter::once(None).chain(document.tiers().into_iter().map(Some)) {
            if let Ok(hash) = document.hash(tier, &[]) {
                names.insert(hash, name.to_owned());
            }
        }
    }
    names
}
