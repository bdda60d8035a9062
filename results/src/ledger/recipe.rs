//! Compares a record with the recipe that it names.

use std::collections::BTreeMap;

use zoo_recipes::{Document, Recipe, Selection};

use super::record::{Record, RunEnd};
use super::sound::{Contradiction, name_of, verdict_name};

/// Result of comparing a record with a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgainstRecipe {
    /// The record is about this recipe; the contradictions, if any.
    Compared(Vec<Contradiction>),
    /// The record is about another version of the recipe, so nothing could be compared.
    OtherVersion,
}

/// Compares a record with the recipe `document`, whose version is identified by its hash. If only
/// claims changed since, the record's claims are used.
pub fn against_recipe(record: &Record, document: &Document) -> AgainstRecipe {
    let (tier, changes) = (record.tier.as_deref(), record.changes());
    let Ok(mut arms) = document.resolve_arms(tier, &changes) else { return AgainstRecipe::OtherVersion };
    if zoo_recipes::hash_of_arms(&arms) != record.recipe_hash {
        // The run is of this recipe if only claims changed since.
        let claims = record.claims();
        arms.values_mut().for_each(|recipe| recipe.claim.clone_from(&claims));
        if zoo_recipes::hash_of_arms(&arms) != record.recipe_hash {
            return AgainstRecipe::OtherVersion;
        }
    }
    let mut found = against_arms(record, &arms);
    let selection = Selection { arm: record.arm.clone(), tier: record.tier.clone(), overrides: changes };
    if let Ok(resolved) = document.resolve(&selection) {
        found.extend(undisclosed(record, &resolved.binding_overrides));
    }
    AgainstRecipe::Compared(found)
}

/// Compares a record with a resolved recipe: its body, under the empty name, and its arms.
pub fn against_arms(record: &Record, arms: &BTreeMap<String, Recipe>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let Some(body) = arms.values().next() else {
        return vec![Contradiction::new("recipe", "it has neither a body nor arms")];
    };
    let hash = zoo_recipes::hash_of_arms(arms);
    if hash != record.recipe_hash {
        let how = format!("the recipe has hash {hash}, the record is about {}", record.recipe_hash);
        found.push(Contradiction::new("recipe", how));
    }
    if body.recipe.name != record.recipe {
        let how = format!("the recipe is {}, the record names {}", body.recipe.name, record.recipe);
        found.push(Contradiction::new("recipe", how));
    }
    if record.end != RunEnd::External {
        // A recipe without arms runs as `body`.
        let bodies = arms.len() == 1;
        let is_arm = |name: &str| arms.contains_key(name) || (bodies && name == "body");
        for score in record.all_scores() {
            let recipe = arms.get(&score.arm).unwrap_or(body);
            let missing = if !is_arm(&score.arm) {
                Some(format!("arm {}", score.arm))
            } else if !recipe.data().has_eval_set(&score.eval) {
                Some(format!("evaluation set {}", score.eval))
            } else if !recipe.has_search(&score.decode) {
                Some(format!("search {}", score.decode))
            } else {
                None
            };
            if let Some(missing) = missing {
                found.push(Contradiction::new(name_of(score), format!("the recipe has no {missing}")));
            }
        }
    }
    for judgement in &record.judgements {
        if !arms.values().any(|recipe| recipe.claim.contains(&judgement.claim)) {
            let how = format!(
                "the recipe does not have the claim that was judged, from {}",
                judgement.claim.source
            );
            found.push(Contradiction::new(verdict_name(judgement), how));
        }
    }
    found
}

/// Changes that make it a different recipe and that a verdict does not disclose.
fn undisclosed(record: &Record, binding: &[String]) -> Vec<Contradiction> {
    let mut found = Vec::new();
    if record.end == RunEnd::External {
        return found;
    }
    let plain = |change: &str| change.split('=').map(str::trim).collect::<Vec<_>>().join("=");
    for judgement in &record.judgements {
        let given: Vec<String> = judgement.evidence.overrides.iter().map(|change| plain(change)).collect();
        if let Some(change) = binding.iter().find(|change| !given.contains(&plain(change))) {
            let how = format!("judged as if --set {change} had not been given");
            found.push(Contradiction::new(verdict_name(judgement), how));
        }
    }
    found
}
