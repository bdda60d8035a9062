//! References of an evaluation set, in the form that hypotheses are scored against.

use zoo_recipes::{Recipe, Resolved};

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::tasks;

/// Reads or fetches the references of the evaluation set `name`.
///
/// # Errors
/// There is no such set, its data cannot be obtained, or the data is another version of the set.
pub fn of(context: &Context, resolved: &Resolved, name: &str) -> Result<Vec<String>> {
    let data = resolved.recipe.data();
    if !data.has_eval_set(name) {
        return Err(Failure::usage(format!("the recipe has no evaluation set {name}"))
            .hint(format!("its sets are {}", data.eval_sets().join(", "))));
    }
    tasks::of(&resolved.recipe).references(context, &resolved.folder, name)
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
