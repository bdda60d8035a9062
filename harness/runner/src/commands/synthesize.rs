//! `zoo synthesize`: synthesizes speech with a trained run.

use zoo_results::exit::Exit;

use crate::cli::SynthesizeArgs;
use crate::context::Context;
use crate::error::Result;
use crate::stages::{self, InferRequest};
use crate::tasks;

pub fn run(context: &Context, args: &SynthesizeArgs) -> Result<Exit> {
    let (run, decode, overrides) = (args.run.clone(), args.decode.clone(), args.overrides.clone());
    let inference = stages::inference(context, &InferRequest { run, decode, overrides })?;
    tasks::of(&inference.recipe).synthesize(&inference, args)?;
    Ok(Exit::Ok)
}
