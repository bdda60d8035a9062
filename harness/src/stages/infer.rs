//! A trained run that is given a user's own input.

use std::path::PathBuf;

use zoo_recipes::{DecodeSpec, Recipe};

use super::run::Run;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::tasks;

/// What `zoo infer` or `zoo synthesize` was asked for.
#[derive(Debug, Clone)]
pub struct InferRequest {
    /// Folder of a run.
    pub run: PathBuf,
    /// Search; absent: the task's own for such input, that of the first claim, or the recipe's first.
    pub decode: Option<String>,
    /// `decode.NAME.KEY=VALUE`, laid over the run's recipe.
    pub overrides: Vec<String>,
}

/// An opened run and one of its searches.
pub struct Inference {
    /// The context of the call, with the run's type of products.
    pub ctx: Context,
    /// The run.
    pub run: Run,
    /// Its recipe, with the overrides.
    pub recipe: Recipe,
    /// The search.
    pub search: DecodeSpec,
}

impl Inference {
    /// Opens the run.
    ///
    /// # Errors
    /// There is none, or it has no such search.
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
