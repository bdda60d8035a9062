//! `zoo infer`.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;

use zoo_results::exit::Exit;

use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::stages::{InferRequest, infer};

pub fn run(context: &Context, args: &InferArgs) -> Result<Exit> {
    let input: Box<dyn BufRead> = match args.input.as_deref() {
        Some(path) if path != Path::new("-") => {
            let file = File::open(path).map_err(|error| Failure::io("open", path, &error))?;
            Box::new(BufReader::new(file))
        }
        _ => Box::new(std::io::stdin().lock()),
    };
    let request =
        InferRequest { run: args.run.clone(), target: args.target.clone(), decode: args.decode.clone() };
    let mut out = std::io::stdout().lock();
    let write = |line: &str| match writeln!(out, "{line}").and_then(|()| out.flush()) {
        // The reader went away: nothing is left to be done, and nothing went wrong.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => other,
    };
    let name = args.input.as_deref().filter(|path| *path != Path::new("-"));
    let name = name.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    infer(context, &request, &name, input.lines(), write)?;
    Ok(Exit::Ok)
}
