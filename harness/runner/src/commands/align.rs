//! `zoo align`: compares a model with tensors of another framework.

use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;
use zoo_training::align::AlignError;

use crate::cli::AlignArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Format};
use crate::tasks;

pub fn run(context: &Context, args: &AlignArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let recipe = document.resolve(&Selection::default())?.recipe;
    let compute = args.compute.compute();
    let device = context.open_device_for(compute)?;
    let alignment = tasks::of(&recipe).align_dump(&args.file, &device, compute)?;
    let mut table = output::columns(["rung", "tensors", "error", "limit", "holds", "worst at"]);
    for rung in &alignment.rungs {
        table.push(output::words([
            rung.name.clone(),
            rung.tensors.to_string(),
            format!("{:.2e}", rung.error),
            format!("{:.0e}", rung.limit),
            if rung.holds() { "yes" } else { "NO" }.to_owned(),
            rung.at.clone(),
        ]));
    }
    match context.format {
        Format::Json => output::write_json(&alignment)?,
        format => output::write(&table.render(format))?,
    }
    match alignment.rungs.iter().find(|rung| !rung.holds()) {
        None => Ok(Exit::Ok),
        Some(rung) => Err(Failure::new(
            Exit::Mismatch,
            format!(
                "{} on {} differs from {} at {}",
                document.name(),
                context.device.settled(),
                args.file.display(),
                rung.name
            ),
        )
        .hint(format!("look at {} first; later tensors were not compared", rung.at))),
    }
}

impl From<AlignError> for Failure {
    fn from(error: AlignError) -> Self {
        Self::new(Exit::Data, error.to_string())
    }
}
