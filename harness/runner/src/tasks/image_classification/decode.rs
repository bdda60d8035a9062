//! Classification of an evaluation set.

use zoo_datasets::tasks::image_classification::PreparedPictures;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::image_classification::{Classifier, scores};

use super::Recipe;
use super::material::of_models;
use super::prepare::failure;
use super::samples::samples;
use crate::context::Context;
use crate::error::Result;
use crate::progress::Step;
use crate::run::data::Decoded;
use crate::tasks::classes::{Answer, record};

/// Pictures of a batch of evaluation.
pub const TOGETHER: usize = 500;

/// Scores the classes of each picture. Returns one record per picture, in the order of the split,
/// the confusion matrix, and the most confident errors as pictures.
pub fn decode(
    ctx: &Context,
    recipe: &Recipe,
    prepared: &PreparedPictures,
    eval: &str,
    model: &Classifier,
) -> Result<Decoded> {
    let split = prepared.eval_set(eval, &recipe.data).map_err(failure)?;
    let compute = Compute::of(&recipe.precision);
    let mut answers = Vec::with_capacity(split.labels.len());
    let mut hypotheses = Vec::with_capacity(split.labels.len());
    for batch in split.batches(&recipe.data.pixels, TOGETHER).map_err(failure)? {
        ctx.check_stop()?;
        let batch = of_models(batch.map_err(failure)?);
        let found = scores(model, &batch, &mut Pass::evaluation(compute));
        for (scores, label) in found.into_iter().zip(&batch.labels) {
            answers.push(Answer::new(&scores, *label as usize));
            hypotheses.push(record(scores));
        }
        let total = Some(split.labels.len() as u64);
        ctx.progress.step(&Step { done: answers.len() as u64, total, ..Step::default() });
    }
    let references = split.labels.iter().map(u32::to_string).collect();
    let samples = samples(&answers, split, &prepared.classes)?;
    Ok(Decoded { hypotheses, references, samples })
}
