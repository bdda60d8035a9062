//! `zoo evaluate`: decodes and scores the weights of a run.

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
        output::write_json(&evaluations)?;
        return Ok(Exit::Ok);
    }
    let mut table =
        output::columns(["eval", "decode", "metric", "value", "low", "high", "signature", "hypotheses"]);
    for evaluation in &evaluations {
        for value in &evaluation.scores {
            let digits = |number: f64| match context.format {
                Format::Human | Format::Md => format!("{number:.2}"),
                _ => number.to_string(),
            };
            let interval = value.interval.as_ref();
            table.push(output::words([
                evaluation.eval.clone(),
                evaluation.decode.clone(),
                value.metric.to_string(),
                digits(value.value),
                interval.map_or_else(String::new, |interval| digits(interval.lower)),
                interval.map_or_else(String::new, |interval| digits(interval.upper)),
                value.signature.to_string(),
                evaluation.hypotheses.display().to_string(),
            ]));
        }
    }
    output::write(&table.render(context.format))?;
    Ok(Exit::Ok)
}

fn print_sweep(context: &Context, swept: &Swept) -> Result<Exit> {
    let mut table =
        output::columns(["eval", "decode", "#alpha", "#beta", "metric", "#value", "best", "signature"]);
    for (at, point) in swept.points.iter().enumerate() {
        let best = if at == swept.best { "best" } else { "" };
        table.push(vec![
            Cell::words(&swept.eval),
            Cell::words(&swept.decode),
            Cell { text: point.alpha.to_string(), value: point.alpha.into() },
            Cell { text: point.beta.to_string(), value: point.beta.into() },
            Cell::words(swept.metric.to_string()),
            Cell { text: format!("{:.2}", point.value), value: point.value.into() },
            Cell::words(best),
            Cell::words(swept.signature.to_string()),
        ]);
    }
    output::write(&table.render(context.format))?;
    let [alpha, beta] = swept.settings();
    context.progress.note(&format!("the best: --set {alpha} --set {beta}"));
    Ok(Exit::Ok)
}
