//! `zoo infer` for language models: scores lines, or continues a text.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use zoo_datasets::tasks::language_modelling::PreparedLanguage;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::language_modelling::{LanguageModel, WindowBatch, losses};
use zoo_recipes::tasks::language_modelling::LanguageModelSpec;

use super::generate::{Sampling, continued};
use super::material::Text;
use super::prepare::failure;
use super::{Recipe, prepare};
use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::lines;
use crate::output::{self, Format};
use crate::run::evaluate::{evaluated_weights, load_model};
use crate::task::inference::Inference;

/// Units that are written unless `--length` says otherwise.
const LENGTH: u32 = 200;

/// Loss of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Scored {
    /// The line.
    text: String,
    /// Summed loss of its units, with the end of the line, in nats.
    nats: f64,
    /// Number of units.
    units: usize,
    /// e to the power of nats per unit.
    perplexity: f64,
}

/// Continues `--prompt`, or scores the lines of a file or of stdin, each by itself.
///
/// # Errors
/// The text, the units of the run or the weights cannot be read, or the text has units that the
/// model lacks.
pub fn answer(inference: &Inference, recipe: &Recipe, args: &InferArgs) -> Result<()> {
    let (prepared, model) = open(inference, recipe)?;
    match &args.prompt {
        Some(prompt) => {
            let text = continued_text(recipe, &prepared, &model, prompt, args)?;
            match inference.ctx.format {
                Format::Json => output::write_json_line(&json!({ "prompt": prompt, "text": text })),
                _ => output::write(&format!("{text}\n")),
            }
        }
        None => score_lines(&inference.ctx, recipe, &prepared, &model, args),
    }
}

/// Loads the units and the model of a run.
///
/// # Errors
/// They are missing or damaged, or do not fit each other.
pub fn open(inference: &Inference, recipe: &Recipe) -> Result<(Arc<PreparedLanguage>, LanguageModel)> {
    let Inference { ctx, run, .. } = inference;
    let prepared = prepare::of_run(&recipe.data, run)?;
    let weights = evaluated_weights(run, recipe)?.values;
    let model = load_model(recipe, &Text { prepared: Some(prepared.clone()) }, weights, &ctx.open_device()?)?;
    Ok((prepared, model))
}

/// The prompt with what the model writes after it.
fn continued_text(
    recipe: &Recipe,
    prepared: &PreparedLanguage,
    model: &LanguageModel,
    prompt: &str,
    args: &InferArgs,
) -> Result<String> {
    let mut read: Vec<u32> = prepared.units.end_of_line().into_iter().collect();
    let mut written = prepared.units.numbers("--prompt", prompt).map_err(failure)?;
    // A prompt is the beginning of a line, not a whole one.
    if prepared.units.are_words() && prepared.units.end_of_line().is_some() {
        written.pop();
    }
    read.extend(&written);
    let sampling = Sampling {
        temperature: args.temperature.unwrap_or(1.0),
        top_k: args.top_k,
        seed: args.seed.unwrap_or(1),
    };
    let length = args.length.unwrap_or(LENGTH) as usize;
    let mut left = length;
    continued(recipe, model, &read, sampling, |unit| {
        written.push(unit);
        left = left.saturating_sub(1);
        left > 0
    });
    let text = prepared.units.text(&written);
    Ok(text.trim_end_matches('\n').to_owned())
}

fn score_lines(
    ctx: &Context,
    recipe: &Recipe,
    prepared: &PreparedLanguage,
    model: &LanguageModel,
    args: &InferArgs,
) -> Result<()> {
    let file = match args.files.as_slice() {
        [] => args.input.as_deref().unwrap_or(Path::new("-")),
        [file] => file.as_path(),
        _ => return Err(Failure::usage("several files are named").hint("zoo infer RUN lines.txt")),
    };
    for (at, text) in (1..).zip(lines::read(file)?) {
        ctx.check_stop()?;
        let scored = scored(recipe, prepared, model, at, text)?;
        match ctx.format {
            Format::Json => output::write_json_line(&scored)?,
            _ => output::write(&format!("{:.4}\t{:.2}\t{}\n", scored.nats, scored.perplexity, scored.text))?,
        }
    }
    Ok(())
}

/// Scores a line: from the end of the line before it to its own.
fn scored(
    recipe: &Recipe,
    prepared: &PreparedLanguage,
    model: &LanguageModel,
    at: usize,
    text: String,
) -> Result<Scored> {
    let compute = Compute::of(&recipe.precision);
    let units =
        prepared.units.numbers(&format!("input, line {at}"), &format!("{text}\n")).map_err(failure)?;
    let before = prepared.units.end_of_line().into_iter();
    let all: Vec<u32> = before.chain(units).collect();
    let window = match recipe.model {
        LanguageModelSpec::Lstm(_) | LanguageModelSpec::LayerNormLstm(_) => all.len(),
        LanguageModelSpec::Gpt(gpt) => gpt.context as usize,
    };
    let (mut nats, mut predicted) = (0.0, 0);
    let inputs = all.len().saturating_sub(1);
    for from in (0..inputs).step_by(window.max(1)) {
        let to = inputs.min(from + window);
        let batch = WindowBatch {
            inputs: all[from..to].to_vec(),
            targets: all[from + 1..to + 1].to_vec(),
            rows: 1,
            begins: true,
        };
        nats += losses(model, &batch, None, &mut Pass::evaluation(compute)).0;
        predicted += to - from;
    }
    let perplexity = (nats / predicted.max(1) as f64).exp();
    Ok(Scored { text, nats, units: predicted, perplexity })
}
