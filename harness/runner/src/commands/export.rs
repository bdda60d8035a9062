//! `zoo export`: writes the weights of a run as safetensors.

use serde_json::json;
use zoo_results::exit::Exit;
use zoo_training::weights;

use crate::cli::ExportArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Format, is_stdout};
use crate::packing;
use crate::run::evaluate::evaluated_weights;
use crate::runs::folder_of;
use crate::stages::opened;

pub fn run(context: &Context, args: &ExportArgs) -> Result<Exit> {
    let to_stdout = is_stdout(&args.file);
    if !to_stdout && args.file.exists() {
        return Err(Failure::usage(format!("{} is there already", args.file.display()))
            .hint("give a name that is free; nothing is overwritten"));
    }
    let (run, recipe) = opened(&folder_of(context, &args.run)?)?;
    let (weights, about) = (evaluated_weights(&run, &recipe)?.values, packing::about(&run, &recipe)?);
    let bytes = weights::encode(&weights, about).map_err(|what| {
        Failure::new(Exit::Internal, format!("cannot write the weights as safetensors: {what}"))
    })?;
    let values: usize = weights.iter().map(|p| p.values.len()).sum();
    if to_stdout {
        output::write_bytes(&bytes)?;
    } else {
        write_whole(&args.file, &bytes)?;
        if context.format == Format::Json {
            output::write_document(
                "export",
                &json!({
                    "file": args.file, "arrays": weights.len(), "values": values, "bytes": bytes.len(),
                }),
            )?;
        }
    }
    context.progress.note(&format!("{} arrays, {values} values, FP32", weights.len()));
    Ok(Exit::Ok)
}
