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
    let data = &resolved.recipe.data;
    if !data.eval.contains_key(name) {
        let known: Vec<&str> = data.eval.keys().map(String::as_str).collect();
        return Err(Failure::usage(format!("the recipe has no evaluation set {name}"))
            .hint(format!("its sets are {}", known.join(", "))));
    }
    tasks::of(&resolved.recipe).references(context, resolved, name)
}

/// Name of an evaluation set in signatures: its corpus (or the recipe, if the data is its own), its
/// split, and its language if there are several.
pub fn name_of(recipe: &Recipe, eval: &str) -> String {
    let (data, set) = (&recipe.data, &recipe.data.eval[eval]);
    let corpus = data.corpus.as_deref().filter(|name| !name.is_empty()).unwrap_or(&recipe.recipe.name);
    match (&set.target, data.reader.targets().len()) {
        (Some(target), 2..) => format!("{corpus}/{}@{target}", set.split),
        _ => format!("{corpus}/{}", set.split),
    }
}
