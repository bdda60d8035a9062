//! `zoo schema`: prints or checks the JSON Schema of recipes.

use std::fs;

use zoo_results::exit::Exit;

use crate::cli::SchemaArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output;

pub fn run(context: &Context, args: &SchemaArgs) -> Result<Exit> {
    let schema = zoo_recipes::schema_text();
    let Some(path) = &args.check else {
        output::write(&schema)?;
        return Ok(Exit::Ok);
    };
    let kept = fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
    if kept != schema {
        return Err(Failure::new(
            Exit::Mismatch,
            format!("{} is not the schema of this program", path.display()),
        )
        .hint(format!("refresh it: zoo schema > {}", path.display())));
    }
    context.progress.note(&format!("{} is fresh", path.display()));
    Ok(Exit::Ok)
}
