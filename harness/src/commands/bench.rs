//! `zoo bench`.

use zoo_recipes::Document;
use zoo_results::exit::Exit;

use crate::cli::BenchArgs;
use crate::context::Context;
use crate::error::Result;
use crate::output::{self, Cell, Format};
use crate::size::grouped;
use crate::stages::{Bench, BenchOptions, Request, Spread, bench, chosen_arms};

pub fn run(context: &Context, args: &BenchArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let request = Request {
        arms: chosen_arms(&document, &args.arms)?,
        overrides: args.overlay.overrides.clone(),
        ..Request::of(&document, args.overlay.tier.as_deref(), 1)?
    };
    let measured = bench(context, &request, BenchOptions { steps: args.steps, shape: args.shape })?;
    match context.format {
        Format::Json => output::write_json(&measured)?,
        format => output::write(&text(&measured, format))?,
    }
    Ok(Exit::Ok)
}

fn text(measured: &Bench, format: Format) -> String {
    let mut table = output::columns([
        "arm",
        "products",
        "batches",
        "#parameters",
        "#tokens an update",
        "#seconds an update",
        "#tokens/s",
        "#least",
        "#most",
        "#GFLOP/s",
        "#speed-up",
        "#90 % from",
        "#to",
    ]);
    let number = |value: f64, digits: usize| Cell { text: format!("{value:.digits$}"), value: value.into() };
    let whole = |value: f64| Cell { text: grouped(value.round() as u64), value: value.into() };
    for arm in &measured.arms {
        let Spread { median, low, high } = arm.tokens_per_second;
        let speed_up = measured.speed_ups.iter().find(|one| one.arm == arm.arm).and_then(|one| one.speed_up);
        let ratio = |part: fn(&zoo_results::statistics::SpeedUp) -> f64| {
            speed_up.as_ref().map_or_else(|| Cell::words("-"), |found| number(part(found), 2))
        };
        table.push(vec![
            Cell::words(arm.arm.clone()),
            Cell::words(arm.compute.clone()),
            Cell::words(measured.data.clone()),
            Cell::count(arm.parameters),
            whole(arm.tokens_per_update),
            number(arm.seconds_per_update.median, 3),
            whole(median),
            whole(low),
            whole(high),
            number(arm.flops.median / 1e9, 1),
            ratio(|found| found.ratio),
            ratio(|found| found.low),
            ratio(|found| found.high),
        ]);
    }
    let rows = table.render(format);
    if format != Format::Human {
        return rows;
    }
    let memory = measured.peak_memory.map_or_else(String::new, |bytes| {
        format!("; at most {:.1} GB of memory, all arms together", bytes as f64 / 1e9)
    });
    format!("{rows}{} on {}{memory}\n", measured.recipe, measured.hardware)
}
