//! The loss of an evaluation set, window by window.

use zoo_datasets::tasks::language_modelling::{PreparedLanguage, WindowBatch};
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::language_modelling::{LanguageModel, NO_TARGET, losses};
use zoo_recipes::tasks::language_modelling::LanguageUnitSpec;
use zoo_results::metrics::{LikelihoodRecord, ModelState};

use super::Recipe;
use super::generate::{Sampling, sample_of};
use super::material::of_models;
use super::prepare::failure;
use crate::context::Context;
use crate::error::Result;
use crate::progress::Step;
use crate::run::data::Decoded;

/// Reads an evaluation set as the recipe says. Returns one record per batch of windows, the units
/// that were predicted as references, and a text that the model continues by itself.
pub fn decode(
    ctx: &Context,
    recipe: &Recipe,
    prepared: &PreparedLanguage,
    eval: &str,
    model: &LanguageModel,
) -> Result<Decoded> {
    let compute = Compute::of(&recipe.precision);
    let carries = recipe.data.eval.get(eval).is_some_and(|set| set.windows.carries());
    let batches = prepared.evaluation(eval, &recipe.data).map_err(failure)?;
    let total = Some(batches.len() as u64);
    let (mut hypotheses, mut references, mut state) = (Vec::new(), Vec::new(), None);
    for (batch, given) in batches {
        ctx.check_stop()?;
        references.push(reference(&batch, prepared));
        let batch = of_models(batch);
        let before = state.take().filter(|_| carries && !batch.begins);
        let (nats, after) = losses(model, &batch, before, &mut Pass::evaluation(compute));
        state = Some(after);
        hypotheses.push(record(recipe, nats, batch.predicted() as u64, given, carries).to_string());
        ctx.progress.step(&Step { done: hypotheses.len() as u64, total, ..Step::default() });
    }
    let samples = vec![sample_of(recipe, prepared, model, Sampling::default())];
    Ok(Decoded { hypotheses, references, samples })
}

/// The references of an evaluation set: for each batch, the units that it predicts.
pub fn references(recipe: &Recipe, prepared: &PreparedLanguage, eval: &str) -> Result<Vec<String>> {
    let batches = prepared.evaluation(eval, &recipe.data).map_err(failure)?;
    Ok(batches.map(|(batch, _)| reference(&batch, prepared)).collect())
}

/// The units that a batch predicts, row by row, as one line.
fn reference(batch: &WindowBatch, prepared: &PreparedLanguage) -> String {
    let there = batch.targets.iter().filter(|target| **target != NO_TARGET);
    let names = there.map(|id| prepared.units.name(*id));
    match prepared.units.are_words() {
        true => names.collect::<Vec<_>>().join(" "),
        false => names
            .map(|name| match name {
                "\n" => "\\n",
                "\r" => "\\r",
                "\\" => "\\\\",
                name => name,
            })
            .collect(),
    }
}

fn record(recipe: &Recipe, nats: f64, predicted: u64, given: u64, carries: bool) -> LikelihoodRecord {
    let record = LikelihoodRecord {
        nats,
        state: if carries { ModelState::Carried } else { ModelState::Reset },
        given: (given > 0).then_some(given),
        ..LikelihoodRecord::default()
    };
    match recipe.data.unit {
        LanguageUnitSpec::Word { .. } => LikelihoodRecord { words: Some(predicted), ..record },
        LanguageUnitSpec::Character {} => LikelihoodRecord { characters: Some(predicted), ..record },
    }
}
