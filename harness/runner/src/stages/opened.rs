//! Opening of a run that exists, with its recipe.

use std::path::Path;

use zoo_recipes::Recipe;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};
use crate::run::folder::Run;
use crate::tasks;

/// [`opened`], for a command that chooses the state of a run itself.
///
/// # Errors
/// `path` is a checkpoint, or as for [`opened`].
pub fn opened_run(path: &Path, command: &str) -> Result<(Run, Recipe)> {
    let (run, recipe) = opened(path)?;
    if path.is_file() && path.parent() == Some(run.checkpoints().path()) {
        let message =
            format!("{} is a checkpoint: {command} chooses the state of a run itself", path.display());
        return Err(Failure::usage(message).hint(format!("{command} {}", run.folder.display())));
    }
    Ok((run, recipe))
}

/// Opens a run, and checks that the parts of its recipe fit together. `path` is its folder, or a
/// checkpoint or file in it.
///
/// # Errors
/// `path` is not in a run, or the files of the run were changed.
pub fn opened(path: &Path) -> Result<(Run, Recipe)> {
    let (run, recipe) = Run::open(path)?;
    if !tasks::of(&recipe).fits() {
        let file = run.folder.join("recipe.toml");
        let message = format!("{}: its model, data, loss and searches do not fit together", file.display());
        return Err(Failure::new(Exit::Damaged, message).hint("the file was changed since the run began"));
    }
    Ok((run, recipe))
}
