//! Inference with a trained run on a user's own input.

use std::path::PathBuf;

use zoo_recipes::{ComputeType, SearchBlock, SearchFile};

use super::opened::opened;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::own_files::OwnFiles;
use crate::task::inference::Inference;
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
    /// Type of the products; `None` is that of the run.
    pub compute: Option<ComputeType>,
}

/// Opens a run for a user's own input.
///
/// # Errors
/// The run does not exist, its recipe does not have the search, or a file that it keeps was changed.
pub fn inference(ctx: &Context, request: &InferRequest) -> Result<Inference> {
    let (run, mut recipe) = opened(&request.run)?;
    let saved = recipe.clone();
    let own_files = OwnFiles::of(&run.folder);
    if let Ok(own_files) = &own_files {
        own_files.name_in(&mut recipe)?;
    }
    let recipe = recipe.searching(&request.overrides)?.computing(request.compute);
    let ctx = ctx.for_run(&run.card.compute)?;
    let usable = |name: &&str| recipe.search(name).is_some_and(|search| !search.lacks_language_model());
    let claimed = recipe.claim.iter().filter_map(|claim| claim.decode.as_deref()).find(usable);
    let own = || tasks::of(&recipe).own_search().map(str::to_owned);
    let first = || recipe.searches().into_iter().find(usable).map(str::to_owned);
    let search = request.decode.clone().or_else(own).or(claimed.map(str::to_owned)).or_else(first);
    let search = search.ok_or_else(|| Failure::usage("the recipe has no search"))?;
    let Some(found) = recipe.search(&search) else {
        return Err(Failure::usage(format!("the recipe has no search `{search}`"))
            .hint(format!("it has {}", recipe.searches().join(", "))));
    };
    match own_files {
        Ok(own_files) => own_files.check(found)?,
        Err(failure) if needs_copies(saved.search(&search), found) => return Err(failure),
        Err(_) => {}
    }
    Ok(Inference { ctx, run, recipe, search })
}

/// Whether a search lacks the copies that the run keeps: it reads a file that the saved recipe names, or
/// has no language model. A search of no files, or of files that the user names, can be used without.
fn needs_copies(saved: Option<&dyn SearchBlock>, found: &dyn SearchBlock) -> bool {
    let as_saved =
        |of: SearchFile| of.of(found).is_some() && of.of(found) == saved.and_then(|saved| of.of(saved));
    found.lacks_language_model() || SearchFile::ALL.into_iter().any(as_saved)
}
