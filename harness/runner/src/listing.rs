//! What a list says of each recipe: evidence, verdicts, size, training time.

mod remembered;

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zoo_recipes::{DataStatus, Document, Statement};
use zoo_results::ledger::{Entry, Record};
use zoo_results::report::{Account, ByStatement, Tally, uncounted};
use zoo_results::verdict::Outcome;

pub use self::remembered::FILE as REMEMBERED;
use self::remembered::Part;
use crate::context::Context;
use crate::error::Result;
use crate::evidence::rung::Rung;
use crate::evidence::{Versions, ladder_of, reached};
use crate::standing::standing;
use crate::wording::ClaimCounts;
use crate::{records, tasks};

/// A recipe with what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub name: String,
    pub task: String,
    pub tags: Vec<String>,
    pub arms: Vec<String>,
    pub data: DataStatus,
    pub summary: String,
    pub evidence: Option<Rung>,
    pub counts: ClaimCounts,
    /// Outcomes of the claims, by kind of statement. A claim whose verdicts do not count is not in
    /// it.
    pub outcomes: ByStatement<Tally>,
    /// Number of parameters, and whether it is exact; `None` until the data are prepared.
    pub parameters: Option<(u64, bool)>,
    pub trained: Option<Trained>,
}

/// The training of a recorded run of the published size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    pub arm: String,
    pub seconds: f64,
    pub hardware: Option<String>,
}

/// Order in which an outcome stands for a kind of statement. REPRODUCED stands only for a recipe whose
/// claims are all reproduced.
const WORST_FIRST: [Outcome; 6] = [
    Outcome::NotReproduced,
    Outcome::Inconclusive,
    Outcome::NotComparable,
    Outcome::NotRun,
    Outcome::NotJudgeable,
    Outcome::Reproduced,
];

/// The outcome that stands for a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headline {
    /// The first kind of statement that the recipe has claims of. Kinds are not counted together.
    pub statement: Statement,
    /// The worst outcome of its claims.
    pub outcome: Outcome,
    /// Number of claims with this outcome.
    pub count: u64,
    /// Number of claims of this kind.
    pub claims: u64,
}

impl Listed {
    /// The outcome that stands for the recipe; `None` if no claim has one.
    pub fn headline(&self) -> Option<Headline> {
        let counts = Statement::ALL.into_iter().zip(self.counts.statements);
        let (statement, claims) = counts.into_iter().find(|(_, claims)| *claims > 0)?;
        headline(self.outcomes.of(statement), statement, claims)
    }
}

/// The outcome that stands for `claims` claims of a kind. Claims whose verdicts do not count are not in
/// the tally, and stand as not run.
fn headline(tally: &Tally, statement: Statement, claims: u64) -> Option<Headline> {
    let of = |outcome: Outcome| match outcome {
        Outcome::NotRun => tally.of(outcome) + claims.saturating_sub(tally.count()),
        outcome => tally.of(outcome),
    };
    let outcome = WORST_FIRST.into_iter().find(|outcome| of(*outcome) > 0)?;
    Some(Headline { statement, outcome, count: of(outcome), claims })
}

/// The recipes of the catalog with what the ledgers of project and home have on them.
///
/// # Errors
/// A recipe does not resolve.
pub fn listed(context: &Context) -> Result<Vec<Listed>> {
    let ledger = records::ledger(context, None);
    let digests = ledger.digests();
    let known = digests.as_ref().map(|_| remembered::recall(context)).unwrap_or_default();
    let digest = |name: &str| digests.as_ref().and_then(|digests| digests.get(name)).cloned();
    let is_known = |name: &&str| known.get(*name).is_some_and(|part| part.records == digest(name));
    let names: Vec<&'static str> = zoo_recipes::names();
    let unknown: Vec<&str> = names.iter().copied().filter(|name| !is_known(name)).collect();
    if unknown.is_empty() {
        return Ok(names.iter().filter_map(|name| Some(known.get(*name)?.listed.clone())).collect());
    }
    // A call after one training reads the records of one recipe.
    let only = match unknown[..] {
        [name] => Some(name),
        _ => None,
    };
    let mut of_recipe: HashMap<String, Vec<Entry>> = HashMap::new();
    for kept in records::kept(context, only) {
        of_recipe.entry(kept.entry.record.recipe.clone()).or_default().push(kept.entry);
    }
    let part = |name: &&str| -> Result<Part> {
        if let Some(part) = known.get(*name).filter(|_| is_known(name)) {
            return Ok(part.clone());
        }
        let entries = of_recipe.get(*name).map_or(&[][..], Vec::as_slice);
        Ok(Part { records: digest(name), listed: one(&Document::load(name)?, entries)? })
    };
    let parts = names.par_iter().map(part).collect::<Result<Vec<Part>>>()?;
    // A damaged ledger is reported whenever the list is made, so that such a list is not remembered.
    let records = only.map_or_else(|| ledger.entries(), |name| ledger.entries_of(name));
    if digests.is_some() && records.is_ok() {
        remembered::remember(context, &parts);
    }
    Ok(parts.into_iter().map(|part| part.listed).collect())
}

fn one(document: &Document, entries: &[Entry]) -> Result<Listed> {
    let runs = records::runs_of(entries.iter().map(|entry| &entry.record));
    let mut versions = Versions::new(document);
    let evidence = reached(&ladder_of(document, &mut versions, &runs));
    let standings = [standing(document, &mut versions, entries, "none")?];
    let account = Account::of(&standings, entries);
    let mut outcomes = ByStatement::<Tally>::default();
    for claim in &account.claims {
        if let Some(outcome) = claim.outcome {
            outcomes.of_mut(claim.claim.statement()).add(outcome);
        }
    }
    let recipe = versions.body()?;
    let size = tasks::of(&recipe).size();
    let of_version = |record: &&Record| standings[0].hashes.contains(&record.recipe_hash);
    let about = document.about();
    Ok(Listed {
        name: about.name.clone(),
        task: about.task.to_string(),
        tags: about.tags.clone(),
        arms: document.arms().into_iter().map(str::to_owned).collect(),
        data: about.status,
        summary: about.summary.clone(),
        evidence,
        counts: ClaimCounts::of(&recipe),
        outcomes,
        parameters: size.map(|size| (size.cost.parameters, size.exact)),
        trained: entries.iter().rev().map(|entry| &entry.record).filter(of_version).find_map(trained),
    })
}

/// The training time in a record of the published size: of the first arm and seed.
fn trained(record: &Record) -> Option<Trained> {
    if !record.is_own_evidence() || record.tier.is_some() || uncounted(record).is_some() {
        return None;
    }
    let run = record.runs.first()?;
    let seconds = *record.durations.get(&format!("train {} seed {}", run.arm, run.seed))?;
    Some(Trained { arm: run.arm.clone(), seconds, hardware: record.hardware.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_is_the_worst_outcome_and_reproduced_only_if_all_are() {
        let of = |outcomes: &[Outcome], claims: u64| {
            let mut tally = Tally::default();
            outcomes.iter().for_each(|outcome| tally.add(*outcome));
            headline(&tally, Statement::Published, claims).map(|found| (found.outcome, found.count))
        };
        use Outcome::{Inconclusive, NotComparable, NotReproduced, NotRun, Reproduced};
        assert_eq!(of(&[Reproduced, Reproduced], 2), Some((Reproduced, 2)));
        assert_eq!(of(&[Reproduced, NotRun, NotRun], 3), Some((NotRun, 2)));
        assert_eq!(of(&[Reproduced, NotComparable, NotRun], 3), Some((NotComparable, 1)));
        assert_eq!(of(&[Reproduced, Inconclusive, NotReproduced], 3), Some((NotReproduced, 1)));
        // The verdict on one claim is of a working tree with changes, and does not count.
        assert_eq!(of(&[Reproduced], 2), Some((NotRun, 1)));
        assert_eq!(of(&[], 0), None);
    }
}
