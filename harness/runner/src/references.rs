//! References of an evaluation set, in the form that hypotheses are scored against.

use zoo_recipes::Resolved;

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
