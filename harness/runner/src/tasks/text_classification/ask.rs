//! `zoo infer` for text classification: classifies lines.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use zoo_datasets::tasks::text_classification::PreparedTexts;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::text_classification::{TextModel, scores};

use super::data::TextData;
use super::material::of_models;
use super::{Recipe, prepare};
use crate::cli::InferArgs;
use crate::error::{Failure, Result};
use crate::run::data::TaskData;
use crate::run::evaluate::{evaluated_weights, load_model};
use crate::task::inference::Inference;
use crate::tasks::classes::Inferred;
use crate::{lines, output};

/// Loads the words, the classes and the model of a run.
///
/// # Errors
/// They are missing or damaged, or do not fit each other.
pub fn open(inference: &Inference, recipe: &Recipe) -> Result<(Arc<PreparedTexts>, TextModel)> {
    let Inference { ctx, run, .. } = inference;
    let prepared = prepare::of_run(&recipe.data, run)?;
    let weights = evaluated_weights(run, recipe)?.values;
    let material = TextData { prepared: prepared.clone() }.material(recipe)?;
    let model = load_model(recipe, &material, weights, &ctx.open_device()?)?;
    Ok((prepared, model))
}

/// Classifies the lines of a file or of stdin, each by itself. Prints one line per text.
///
/// # Errors
/// The lines, the words of the run or the weights cannot be read.
pub fn classify(inference: &Inference, recipe: &Recipe, args: &InferArgs) -> Result<()> {
    let ctx = &inference.ctx;
    let file = match args.files.as_slice() {
        [] => args.input.as_deref().unwrap_or(Path::new("-")),
        [file] => file.as_path(),
        _ => return Err(Failure::usage("several files are named").hint("zoo infer RUN lines.txt")),
    };
    let texts = lines::read(file)?;
    let (prepared, model) = open(inference, recipe)?;
    let compute = Compute::of(&recipe.precision);
    for text in texts {
        ctx.check_stop()?;
        let batch = of_models(prepared.text(&recipe.data, text.as_bytes()));
        let start = Instant::now();
        let found = scores(&model, &batch, &mut Pass::evaluation(compute)).remove(0);
        let one = Inferred::new(&found, &prepared.classes, args, start.elapsed().as_secs_f64());
        output::write(&one.lines(("text", &text), ctx, args, true)?)?;
    }
    Ok(())
}
