//! Scratch folder in which a copy of a run is trained.

use std::fs;
use std::path::Path;

use zoo_datasets::temporary::{SCRATCH, TemporaryFolder};

use crate::context::Context;
use crate::error::{Failure, Result};

/// A new folder in the home. It is removed when it is dropped.
pub fn scratch(ctx: &Context) -> Result<TemporaryFolder> {
    let failed = |error| Failure::io("make a folder in", &ctx.home, &error);
    fs::create_dir_all(&ctx.home).map_err(failed)?;
    TemporaryFolder::new_in(&ctx.home, SCRATCH).map_err(failed)
}

/// Copies a state into a folder, with its name.
pub fn copy_state(state: &Path, folder: &Path) -> Result<()> {
    let name = state.file_name().unwrap_or_default();
    fs::copy(state, folder.join(name)).map_err(|error| Failure::io("copy", state, &error))?;
    Ok(())
}
