//! `zoo evaluate`: decodes and scores the weights of a run.

use std::collections::BTreeMap;

use zoo_results::exit::Exit;

use crate::cli::{ComputeChoice, EvaluateArgs};
use crate::context::Context;
use crate::error::Result;
use crate::output::{self, Cell, Format};
use crate::run::sweep::Swept;
use crate::runs::folder_of;
use crate::stages::{EvaluateRequest, evaluate, sweep};

pub fn run(context: &Context, args: &EvaluateArgs) -> Result<Exit> {
    let request = EvaluateRequest {
        run: folder_of(context, &args.run)?,
        eval: args.eval.clone(),
        decode: args.decode.clone(),
        overrides: args.overrides.clone(),
        compute: args.compute.map(ComputeChoice::spec),
    };
    if let Some(weights) = &args.sweep {
        return print_sweep(context, &sweep(context, &request, weights)?);
    }
    let evaluations = evaluate(context, &request)?;
    if context.format == Format::Json {
        output::write_document("evaluate", &BTreeMap::from([("evaluations", &evaluations)]))?;
        return Ok(Exit::Ok);
    }
    let mut table =
        output::columns(["eval", "decode", "metric", "#value", "#low", "#high", "signature", "hypotheses"]);
    for evaluation in &evaluations {
        for value in &evaluation.scores {
            let digits = |number: f64| Cell::of(format!("{number:.2}"), number);
            let end = |end: Option<f64>| end.map_or_else(|| Cell::words(""), digits);
            let interval = value.interval.as_ref();
            table.push(vec![
                Cell::words(&evaluation.eval),
                Cell::words(&evaluation.decode),
                Cell::words(value.metric.to_string()),
                digits(value.value),
                end(interval.map(|interval| interval.lower)),
                end(interval.map(|interval| interval.upper)),
                Cell::words(value.signature.to_string()),
                Cell::words(evaluation.hypotheses.display().to_string()),
            ]);
        }
    }
    output::write(&table.render(context.format))?;
    Ok(Exit::Ok)
}

fn print_sweep(context: &Context, swept: &Swept) -> Result<Exit> {
    let mut table =
        output::columns(["eval", "decode", "#alpha", "#beta", "metric", "#value", "best", "signature"]);
    for (at, point) in swept.points.iter().enumerate() {
        table.push(vec![
            Cell::words(&swept.eval),
            Cell::words(&swept.decode),
            Cell::of(point.alpha.to_string(), point.alpha),
            Cell::of(point.beta.to_string(), point.beta),
            Cell::words(swept.metric.to_string()),
            Cell::of(format!("{:.2}", point.value), point.value),
            Cell::flag(at == swept.best, ["best", ""]),
            Cell::words(swept.signature.to_string()),
        ]);
    }
    output::write_table("evaluate", "sweep", &table, context.format)?;
    let [alpha, beta] = swept.settings();
    context.progress.note(&format!("the best: --set {alpha} --set {beta}"));
    Ok(Exit::Ok)
}
