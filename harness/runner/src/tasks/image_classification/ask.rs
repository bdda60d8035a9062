//! `zoo infer` for image classification: classifies picture files.

use std::path::PathBuf;
use std::time::Instant;

use zoo_datasets::tasks::image_classification::{kept_classes, read_picture};
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::image_classification::{Classifier, PictureBatch, scores};
use zoo_recipes::DataBlock;
use zoo_results::exit::Exit;

use super::material::Pictures;
use super::{Recipe, prepare, size};
use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output;
use crate::run::data::Sets;
use crate::run::evaluate::{evaluated_weights, load_model};
use crate::run::folder::{Run, VOCABULARY};
use crate::task::inference::Inference;
use crate::tasks::classes::Inferred;

/// Classifies pictures, each by itself. Prints one line per picture.
///
/// # Errors
/// A picture or the weights cannot be read.
pub fn classify(inference: &Inference, recipe: &Recipe, args: &InferArgs) -> Result<()> {
    let ctx = &inference.ctx;
    let files = pictures(args)?;
    let (names, model) = open(inference, recipe)?;
    let compute = Compute::of(&recipe.precision);
    let alone = files.len() == 1;
    for file in files {
        ctx.check_stop()?;
        let pixels =
            read_picture(&file, &recipe.data).map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
        let batch = PictureBatch { pixels, size: size(recipe), labels: vec![0] };
        let start = Instant::now();
        let found = scores(&model, &batch, &mut Pass::evaluation(compute)).remove(0);
        let one = Inferred::new(&found, &names, args, start.elapsed().as_secs_f64());
        output::write(&one.lines(("file", &file.display().to_string()), ctx, args, alone)?)?;
    }
    Ok(())
}

/// Loads the names of the classes and the model of a run.
///
/// # Errors
/// They are missing or damaged, or do not fit each other.
pub fn open(inference: &Inference, recipe: &Recipe) -> Result<(Vec<String>, Classifier)> {
    let Inference { ctx, run, .. } = inference;
    let names = class_names(ctx, recipe, run)?;
    let weights = evaluated_weights(run, recipe)?.values;
    let model = load_model(recipe, &Pictures { prepared: None }, weights, &ctx.open_device()?)?;
    Ok((names, model))
}

/// The named files. The first argument after the run may be `--input FILE`.
fn pictures(args: &InferArgs) -> Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = args.input.iter().chain(&args.files).cloned().collect();
    match files.is_empty() {
        true => Err(Failure::usage("no picture is named").hint("zoo infer RUN picture.png")),
        false => Ok(files),
    }
}

/// Compares the vocabulary that a run kept with its digests.
///
/// # Errors
/// A kept file is missing or was changed.
pub fn check_vocabulary(recipe: &Recipe, run: &Run) -> Result<()> {
    let kept = kept_classes(&run.folder.join(VOCABULARY), recipe.data.classes);
    kept.map(drop).map_err(prepare::failure)
}

/// Names of the classes: those that the run kept. A run by an earlier version kept none, so they are
/// those of the corpus, or of the user's own folders.
fn class_names(ctx: &Context, recipe: &Recipe, run: &Run) -> Result<Vec<String>> {
    let kept = kept_classes(&run.folder.join(VOCABULARY), recipe.data.classes);
    if let Some(names) = kept.map_err(prepare::failure)? {
        return Ok(names);
    }
    run.may_read_data()?;
    let first = recipe.data.eval_sets().into_iter().next();
    let sets: Vec<&str> = first.into_iter().collect();
    Ok(prepare::prepare(ctx, &recipe.data, &run.card.base, Sets::Evaluation(&sets))?.classes.clone())
}
