//! `zoo export`: writes the weights of a run as safetensors.

use zoo_results::exit::Exit;
use zoo_training::weights;

use crate::cli::ExportArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::packing;
use crate::run::evaluate::evaluated_weights;
use crate::runs::folder_of;
use crate::stages::opened;

pub fn run(context: &Context, args: &ExportArgs) -> Result<Exit> {
    if args.file.exists() {
        return Err(Failure::usage(format!("{} is there already", args.file.display()))
            .hint("give a name that is free; nothing is overwritten"));
    }
    let (run, recipe) = opened(&folder_of(context, &args.run)?)?;
    let (weights, about) = (evaluated_weights(&run, &recipe)?.values, packing::about(&run, &recipe)?);
    weights::write(&args.file, &weights, about).map_err(|e| Failure::new(Exit::Internal, e.to_string()))?;
    let values: usize = weights.iter().map(|p| p.values.len()).sum();
    context.progress.note(&format!("{} arrays, {values} values, FP32", weights.len()));
    Ok(Exit::Ok)
}
