//! Inference with a trained run on a user's own input.

use std::path::PathBuf;

use zoo_recipes::{DecodeSpec, Recipe};

use super::run::Run;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::tasks;

/// Arguments of `zoo infer` and `zoo synthesize`.
#[derive(Debug, Clone)]
pub struct InferRequest {
    /// Folder of the run.
    pub run: PathBuf,
    /// Search; `None` selects the task's search for own input, else that of the first claim, else
    /// the recipe's first.
    pub decode: Option<String>,
    /// Overrides `decode.NAME.KEY=VALUE` for the run's recipe.
    pub overrides: Vec<String>,
}

/// An opened run with one of its searches.
pub struct Inference {
    /// Context of the call, with the precision of the run.
    pub ctx: Context,
    pub run: Run,
    /// Recipe of the run, with the overrides.
    pub recipe: Recipe,
    /// Settings of the search.
    pub search: DecodeSpec,
}

impl Inference {
    /// Opens the run.
    ///
    /// # Errors
    /// The run does not exist, or its recipe has no such search.
    pub fn open(ctx: &Context, request: &InferRequest) -> Result<Self> {
        let (run, recipe) = Run::open(&request.run)?;
        let recipe = recipe.searching(&request.overrides)?;
        let ctx = ctx.for_run(&run.card.compute)?;
        let usable =
            |name: &String| recipe.decode.get(name).is_some_and(|search| !search.lacks_language_model());
        let of_claims =
            recipe.claim.iter().filter_map(|claim| claim.decode.as_ref()).find(|name| usable(name));
        let own = || tasks::of(&recipe).own_search(&recipe);
        let first = || recipe.decode.keys().find(|name| usable(name));
        let name = request.decode.as_ref().or_else(own).or(of_claims).or_else(first).cloned();
        let name = name.ok_or_else(|| Failure::usage("the recipe has no search"))?;
        let search = recipe.decode.get(&name).cloned().ok_or_else(|| {
            let known: Vec<&str> = recipe.decode.keys().map(String::as_str).collect();
            Failure::usage(format!("the recipe has no search `{name}`"))
                .hint(format!("it has {}", known.join(", ")))
        })?;
        Ok(Self { ctx, run, recipe, search })
    }
}
