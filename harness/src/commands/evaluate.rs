//! `zoo evaluate`.

use zoo_results::exit::Exit;

use crate::cli::EvaluateArgs;
use crate::context::Context;
use crate::error::Result;
use crate::output::{self, Format};
use crate::stages::{EvaluateRequest, evaluate};

pub fn run(context: &Context, args: &EvaluateArgs) -> Result<Exit> {
    let request =
        EvaluateRequest { run: args.run.clone(), eval: args.eval.clone(), decode: args.decode.clone() };
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
