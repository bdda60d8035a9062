//! `zoo completions`: prints the completion script of a shell.

use clap::CommandFactory;
use zoo_results::exit::Exit;

use crate::cli::{Cli, CompletionsArgs};
use crate::error::{Failure, Result};
use crate::output;

pub fn run(args: &CompletionsArgs) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "zoo", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| Failure::new(Exit::Internal, format!("the completions are not text: {error}")))?;
    output::write(&script)?;
    Ok(Exit::Ok)
}
