//! Command lines of this program, for stages that start it in processes of their own.

use std::path::PathBuf;
use std::process::Command;

use zoo_results::exit::Exit;

use super::Request;
use crate::context::Context;
use crate::error::{Failure, Result};

/// A command line of this program with these words, and with the home, device, arithmetic, tier and
/// changes of a call.
///
/// # Errors
/// The program's file is unknown.
pub fn command<'a>(
    ctx: &Context,
    request: &Request,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Command> {
    let mut command = Command::new(program()?);
    #[cfg(unix)]
    if let Some(name) = std::env::args_os().next() {
        std::os::unix::process::CommandExt::arg0(&mut command, name);
    }
    command.args(words);
    command.arg("--home").arg(&ctx.home).args(["--device", &ctx.device.settled().to_string()]);
    command.args(ctx.fp32.iter().flat_map(|fp32| ["--fp32", fp32.name()]));
    command.args(request.tier.iter().flat_map(|tier| ["--tier", tier]));
    command.args(request.overrides.iter().flat_map(|change| ["--set", change]));
    Ok(command)
}

/// This program's file. On Linux the name stays valid if the file is replaced.
fn program() -> Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Internal, format!("cannot find this program's own file: {error}"))
    })
}
