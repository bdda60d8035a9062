//! Significance level of a claim that earlier plans in the home's ledger spent.

use zoo_recipes::{ClaimKind, ClaimSpec};
use zoo_results::ledger::{Record, System, spent};
use zoo_results::verdict::{Evidence, RunScore, Spent};

use super::Request;
use super::judge::cases;
use crate::context::Context;
use crate::error::Result;
use crate::records::ledger;

/// The ledger's records, and the system that a request judges.
pub struct Earlier {
    records: Vec<Record>,
    recipe: String,
    recipe_hash: String,
    without_claims: String,
    with_words: String,
}

impl Earlier {
    /// Reads the ledger.
    ///
    /// # Errors
    /// The ledger is damaged, or the recipe cannot be resolved.
    pub fn of(ctx: &Context, request: &Request) -> Result<Self> {
        let records = ledger(ctx, None).entries()?.into_iter().map(|entry| entry.record).collect();
        Ok(Self {
            records,
            recipe: request.document.name().to_owned(),
            recipe_hash: request.document.hash(request.tier.as_deref(), &request.overrides)?,
            without_claims: without_claims(request)?,
            with_words: with_words(request)?,
        })
    }

    /// Level that other plans spent on the claim that the evidence is for.
    pub fn spent(&self, claim: &ClaimSpec, evidence: &Evidence) -> Option<Spent> {
        let system = System {
            recipe: &self.recipe,
            recipe_hash: &self.recipe_hash,
            without_claims: &self.without_claims,
            with_words: Some(&self.with_words),
        };
        spent(&self.records, &system, claim, evidence)
    }
}

/// SHA-256 of the computed system, as records name it: the resolved recipe without its claims, its
/// descriptions and changes of its free keys. Changing any of these does not give a claim a new 5
/// %.
///
/// # Errors
/// The recipe cannot be resolved.
pub fn without_claims(request: &Request) -> Result<String> {
    let binding = request.document.binding_overrides(&request.overrides)?;
    let mut arms = request.document.resolve_arms(request.tier.as_deref(), &binding)?;
    for recipe in arms.values_mut() {
        recipe.claim.clear();
        let about = &mut recipe.recipe;
        [&mut about.summary, &mut about.origin].into_iter().for_each(String::clear);
        [&mut about.tags, &mut about.free].into_iter().for_each(Vec::clear);
    }
    Ok(zoo_recipes::hash_of_arms(&arms))
}

/// The hash of [`without_claims`] including descriptions and all changes, as earlier versions
/// recorded it.
///
/// # Errors
/// The recipe cannot be resolved.
pub fn with_words(request: &Request) -> Result<String> {
    let mut arms = request.document.resolve_arms(request.tier.as_deref(), &request.overrides)?;
    arms.values_mut().for_each(|recipe| recipe.claim.clear());
    Ok(zoo_recipes::hash_of_arms(&arms))
}

/// One line for each claim of which other plans spent some level, to print before anything runs.
///
/// # Errors
/// The ledger is damaged, or the recipe cannot be resolved.
pub fn planned(ctx: &Context, request: &Request, claims: &[ClaimSpec]) -> Result<Vec<String>> {
    let earlier = Earlier::of(ctx, request)?;
    let runs: Vec<RunScore> =
        request.seeds.iter().map(|seed| RunScore { seed: Some(*seed), ..RunScore::default() }).collect();
    let mut lines = Vec::new();
    for case in cases(claims, &request.arms) {
        // Timings have no seeds, and divergence claims have no level.
        if matches!(case.claim.kind, ClaimKind::Ratio | ClaimKind::Diverges) {
            continue;
        }
        let evidence = Evidence {
            arm: Some(case.arm.clone()),
            plan: request.looks.clone(),
            runs: runs.clone(),
            spread: zoo_results::verdict::StatedSpread::named(case.claim, request.document.name()),
            ..Evidence::default()
        };
        let number = claims.iter().position(|claim| std::ptr::eq(claim, case.claim)).map_or(0, |at| at + 1);
        if let Some(spent) = earlier.spent(case.claim, &evidence) {
            lines.push(format!("claim {number}, {}: {}", case.arm, spent.sentence()));
        }
    }
    Ok(lines)
}
