//! What is known of an evaluation set besides its data: metric conventions, and its source text.

use zoo_recipes::{ClaimSpec, Common, Recipe};
use zoo_results::verdict::trained_term;

/// What the task of a run says of its evaluation sets.
#[derive(Clone, Copy)]
pub struct Conventions<'a> {
    /// Metric conventions to score a set with, given its name and that of the search.
    pub signatures: &'a dyn Fn(&str, &str) -> Vec<String>,
    /// The text of a set that the model is given, line by line, given the set's name. `None` if the
    /// model is given no text, or if it is not at hand.
    pub sources: &'a dyn Fn(&str) -> Option<Vec<String>>,
}

/// Metric conventions to score an evaluation set with: those of its claims, else of any claim, else
/// `usual`.
pub fn claimed_signatures(recipe: &Common, eval: &str, usual: impl FnOnce() -> String) -> Vec<String> {
    let of = |on_this_set: bool| {
        let mut found: Vec<String> = Vec::new();
        let of_outputs = |claim: &&ClaimSpec| trained_term(claim).is_none();
        let here = |claim: &&ClaimSpec| !on_this_set || claim.eval.as_deref() == Some(eval);
        for claim in recipe.claim.iter().filter(of_outputs).filter(here) {
            if let Some(signature) = claim.signature.clone().filter(|s| !found.contains(s)) {
                found.push(signature);
            }
        }
        found
    };
    let found = [of(true), of(false)].into_iter().find(|found| !found.is_empty());
    found.unwrap_or_else(|| vec![usual()])
}

/// Name of an evaluation set in signatures: its corpus (or the recipe, if the data is its own), its
/// split, and its language if there are several.
pub fn name_of(recipe: &Recipe, eval: &str) -> String {
    let data = recipe.data();
    let corpus = data.corpus().filter(|name| !name.is_empty()).unwrap_or(&recipe.recipe.name);
    let Some(set) = data.eval_set(eval) else { return format!("{corpus}/{eval}") };
    match (set.target, data.languages().len()) {
        (Some(target), 2..) => format!("{corpus}/{}@{target}", set.split),
        _ => format!("{corpus}/{}", set.split),
    }
}
