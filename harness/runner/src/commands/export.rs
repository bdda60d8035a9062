//! `zoo export`: writes the weights of a run as safetensors.

use std::collections::HashMap;

use zoo_results::exit::Exit;
use zoo_training::weights;

use crate::cli::ExportArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::evaluate::evaluated_weights;
use crate::runs::folder_of;
use crate::stages::opened;

pub fn run(context: &Context, args: &ExportArgs) -> Result<Exit> {
    if args.file.exists() {
        return Err(Failure::usage(format!("{} is there already", args.file.display()))
            .hint("give a name that is free; nothing is overwritten"));
    }
    let (run, recipe) = opened(&folder_of(context, &args.run)?)?;
    let (weights, card) = (evaluated_weights(&run, &recipe)?.values, run.card);
    let text = recipe
        .to_toml()
        .map_err(|e| Failure::new(Exit::Internal, format!("cannot write the recipe: {e}")))?;
    let about = HashMap::from([
        ("format".to_string(), "pt".to_string()),
        ("recipe".to_string(), text),
        ("arm".to_string(), card.arm),
        ("seed".to_string(), card.seed.to_string()),
        ("key".to_string(), card.key),
    ]);
    weights::write(&args.file, &weights, about).map_err(|e| Failure::new(Exit::Internal, e.to_string()))?;
    let values: usize = weights.iter().map(|p| p.values.len()).sum();
    context.progress.note(&format!("{} arrays, {values} values, FP32", weights.len()));
    Ok(Exit::Ok)
}
