//! `zoo align`: compares a model with tensors of another framework.

use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;
use zoo_training::align::AlignError;

use crate::cli::AlignArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell};
use crate::tasks;

pub fn run(context: &Context, args: &AlignArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let recipe = document.resolve(&Selection::default())?.recipe;
    let compute = args.compute.compute();
    let device = context.open_device_for(compute)?;
    let alignment = tasks::of(&recipe).align_dump(&args.file, &device, compute)?;
    let mut table = output::columns(["rung", "#tensors", "#error", "#limit", "holds", "worst at"]);
    for rung in &alignment.rungs {
        table.push(vec![
            Cell::words(rung.name.clone()),
            Cell::count(rung.tensors as u64),
            Cell::of(format!("{:.2e}", rung.error), rung.error),
            Cell::of(format!("{:.0e}", rung.limit), rung.limit),
            Cell::flag(rung.holds(), ["yes", "NO"]),
            Cell::words(rung.at.clone()),
        ]);
    }
    output::write_table("align", "rungs", &table, context.format)?;
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
