//! `zoo synthesize`: synthesizes speech with a trained run.

use zoo_results::exit::Exit;

use crate::cli::{ComputeChoice, SynthesizeArgs};
use crate::context::Context;
use crate::error::Result;
use crate::runs::folder_of;
use crate::stages::{self, InferRequest};
use crate::tasks;

pub fn run(context: &Context, args: &SynthesizeArgs) -> Result<Exit> {
    let run = folder_of(context, &args.run)?;
    let (decode, overrides) = (args.decode.clone(), args.overrides.clone());
    let compute = args.compute.map(ComputeChoice::spec);
    let inference = stages::inference(context, &InferRequest { run, decode, overrides, compute })?;
    tasks::of(&inference.recipe).synthesize(&inference, args)?;
    Ok(Exit::Ok)
}
