//! `zoo completions`: prints the completion script of a shell.

use zoo_results::exit::Exit;

use crate::cli::CompletionsArgs;
use crate::completing::script;
use crate::error::{Failure, Result};
use crate::output;

pub fn run(args: &CompletionsArgs) -> Result<Exit> {
    let script = script(args.shell)
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot write the completions: {error}")))?;
    output::write(&script)?;
    Ok(Exit::Ok)
}
