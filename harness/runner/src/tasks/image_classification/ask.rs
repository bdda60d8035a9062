//! `zoo infer` for image classification: classifies picture files.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use zoo_datasets::tasks::image_classification::read_picture;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::image_classification::{PictureBatch, scores};
use zoo_recipes::DataBlock;
use zoo_results::exit::Exit;

use super::material::Pictures;
use super::samples::Answer;
use super::{Recipe, prepare, size};
use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Format};
use crate::run::data::Sets;
use crate::run::evaluate::{evaluated_weights, load_model};
use crate::task::inference::Inference;

/// Number of classes that are printed unless `--nbest` asks for another.
const SHOWN: u32 = 1;

/// Classes of one picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Classified {
    /// Path of the picture.
    file: String,
    /// The class with the highest score.
    class: String,
    /// Its probability.
    confidence: f64,
    /// The classes of the highest scores, from the highest on.
    classes: Vec<Scored>,
    /// Seconds from pixels to scores.
    latency: f64,
}

/// A class with its probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Scored {
    class: String,
    confidence: f64,
}

/// Classifies pictures, each by itself. Prints one line per picture.
///
/// # Errors
/// A picture or the weights cannot be read.
pub fn classify(inference: &Inference, recipe: &Recipe, args: &InferArgs) -> Result<()> {
    let Inference { ctx, run, .. } = inference;
    let files = pictures(args)?;
    let names = class_names(ctx, recipe, &run.card.base)?;
    let weights = evaluated_weights(run, recipe)?.values;
    let model = load_model(recipe, &Pictures { prepared: None }, weights, &ctx.open_device()?)?;
    let compute = Compute::of(&recipe.precision);
    let shown = args.nbest.unwrap_or(SHOWN).max(1) as usize;
    let alone = files.len() == 1;
    for file in files {
        ctx.check_stop()?;
        let pixels =
            read_picture(&file, &recipe.data).map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
        let batch = PictureBatch { pixels, size: size(recipe), labels: vec![0] };
        let start = Instant::now();
        let found = scores(&model, &batch, &mut Pass::evaluation(compute)).remove(0);
        let latency = start.elapsed().as_secs_f64();
        let one = classified(&file, &found, &names, shown, latency);
        output::write(&line(&one, ctx, args, alone)?)?;
    }
    Ok(())
}

/// The named files. The first argument after the run may be `--input FILE`.
fn pictures(args: &InferArgs) -> Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = args.input.iter().chain(&args.files).cloned().collect();
    match files.is_empty() {
        true => Err(Failure::usage("no picture is named").hint("zoo infer RUN picture.png")),
        false => Ok(files),
    }
}

/// Names of the classes: those of the corpus, or of the user's own folders.
fn class_names(ctx: &Context, recipe: &Recipe, base: &Path) -> Result<Vec<String>> {
    let first = recipe.data.eval_sets().into_iter().next();
    let sets: Vec<&str> = first.into_iter().collect();
    Ok(prepare::prepare(ctx, &recipe.data, base, Sets::Evaluation(&sets))?.classes.clone())
}

fn classified(file: &Path, scores: &[f32], names: &[String], shown: usize, latency: f64) -> Classified {
    let name = |class: usize| names.get(class).cloned().unwrap_or_else(|| class.to_string());
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
    let best = Answer::new(scores, 0);
    let highest = scores.get(best.class).copied().unwrap_or(0.0);
    let probability = |class: usize| best.confidence * f64::from(scores[class] - highest).exp();
    let scored = |&class: &usize| Scored { class: name(class), confidence: probability(class) };
    Classified {
        file: file.display().to_string(),
        class: name(best.class),
        confidence: best.confidence,
        classes: order.iter().take(shown).map(scored).collect(),
        latency,
    }
}

fn line(one: &Classified, ctx: &Context, args: &InferArgs, alone: bool) -> Result<String> {
    if matches!(ctx.format, Format::Json) {
        let json = serde_json::to_string(one);
        return json.map(|json| format!("{json}\n")).map_err(|e| Failure::new(Exit::Internal, e.to_string()));
    }
    let file = if alone { String::new() } else { format!("{}\t", one.file) };
    let of = |scored: &Scored| format!("{file}{:.4}\t{}\n", scored.confidence, scored.class);
    Ok(match args.nbest {
        Some(_) => one.classes.iter().map(of).collect(),
        None => format!("{file}{}\n", one.class),
    })
}
