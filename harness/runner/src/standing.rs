//! The claims of a recipe with the verdicts that ledgers have on them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zoo_recipes::Document;
use zoo_results::ledger::Entry;
use zoo_results::report::{Account, Listed, RecipeStanding};
use zoo_results::verdict::Outcome;

use crate::error::Result;
use crate::evidence::Versions;
use crate::records::Kept;

/// The facts on a recipe that its account needs. `evidence` is the name of the highest level that
/// holds, or `none`.
///
/// # Errors
/// The recipe does not resolve.
pub fn standing(
    document: &Document,
    versions: &mut Versions<'_>,
    entries: &[Entry],
    evidence: &str,
) -> Result<RecipeStanding> {
    let recipe = versions.body()?;
    Ok(RecipeStanding {
        recipe: document.name().to_owned(),
        hashes: hashes(document, versions, entries),
        claims: recipe.claim.clone(),
        generated: recipe.data().is_generated(),
        free: recipe.recipe.free.clone(),
        evidence: evidence.to_owned(),
    })
}

/// Recipe hashes under which the ledger has runs of a recipe's current version, and the current
/// hash.
fn hashes(document: &Document, versions: &mut Versions<'_>, entries: &[Entry]) -> BTreeSet<String> {
    let of = entries.iter().map(|entry| &entry.record).filter(|record| record.recipe == document.name());
    let ran =
        of.filter(|record| versions.has(None, &record.changes(), &record.recipe_hash, || record.claims()));
    let mut all: BTreeSet<String> = ran.map(|record| record.recipe_hash.clone()).collect();
    all.extend(versions.hash(None).map(str::to_owned));
    all
}

/// A claim with its last verdict in each arm.
pub struct ClaimStanding {
    /// The last verdict in each arm; the verdict NOT RUN or NOT JUDGEABLE if there is none.
    pub verdicts: Vec<OfArm>,
    /// The outcome that counts: the worst of the arms. `None` if no verdict counts.
    pub outcome: Option<Outcome>,
}

/// The last verdict in an arm.
pub struct OfArm {
    pub listed: Listed,
    /// Ledger of the record, `project` or `here`, and the record's number in it.
    pub record: Option<(&'static str, u64)>,
}

impl ClaimStanding {
    /// The verdict with the outcome that counts; without one, the last that does not count.
    pub fn shown(&self) -> Option<&OfArm> {
        let counts = |OfArm { listed, .. }: &&OfArm| {
            listed.uncounted.is_none() && Some(listed.verdict.outcome) == self.outcome
        };
        self.verdicts.iter().find(counts).or_else(|| self.verdicts.last())
    }

    /// The verdicts for programs.
    pub fn json(&self) -> Value {
        let one = |OfArm { listed, record }: &OfArm| {
            json!({
                "arm": listed.arm, "verdict": listed.verdict.outcome.word(), "measured": listed.verdict.measured,
                "seeds": listed.verdict.seeds, "explanation": listed.verdict.explanation,
                "ledger": record.map(|(whose, _)| whose), "record": record.map(|(_, number)| number),
                "uncounted": listed.uncounted,
            })
        };
        self.verdicts.iter().map(one).collect()
    }
}

/// The claims of a recipe, in its order, with the verdicts of its records.
///
/// # Errors
/// The recipe does not resolve.
pub fn claims(
    document: &Document,
    versions: &mut Versions<'_>,
    kept: Vec<Kept>,
) -> Result<Vec<ClaimStanding>> {
    let origins: Vec<(&'static str, u64)> =
        kept.iter().map(|kept| (kept.whose, kept.entry.sequence)).collect();
    // Numbers of two ledgers can be equal, so the records are numbered anew.
    let entries: Vec<Entry> =
        (0..).zip(kept).map(|(sequence, kept)| Entry { sequence, ..kept.entry }).collect();
    let standings = [standing(document, versions, &entries, "none")?];
    let account = Account::of(&standings, &entries);
    let of_arm = |listed: &Listed| OfArm {
        record: listed.record.and_then(|at| origins.get(usize::try_from(at).ok()?).copied()),
        listed: listed.clone(),
    };
    let claims = account
        .claims
        .iter()
        .map(|one| ClaimStanding { verdicts: one.listed.iter().map(of_arm).collect(), outcome: one.outcome });
    Ok(claims.collect())
}
