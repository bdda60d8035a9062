//! Classification of an evaluation set.

use zoo_datasets::tasks::image_classification::PreparedPictures;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::image_classification::{Classifier, scores};
use zoo_results::metrics::ClassRecord;

use super::Recipe;
use super::material::of_models;
use super::prepare::failure;
use super::samples::{Answer, samples};
use crate::context::Context;
use crate::error::Result;
use crate::progress::Step;
use crate::run::data::Decoded;

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
            let scores = scores.into_iter().map(shortest).collect();
            hypotheses.push(ClassRecord { scores: Some(scores), ..ClassRecord::default() }.to_string());
        }
        let total = Some(split.labels.len() as u64);
        ctx.progress.step(&Step { done: answers.len() as u64, total, ..Step::default() });
    }
    let references = split.labels.iter().map(u32::to_string).collect();
    let samples = samples(&answers, split, &prepared.classes)?;
    Ok(Decoded { hypotheses, references, samples })
}

/// The number that the shortest decimals of an FP32 number stand for. Records are half as long with
/// it; other numbers keep their order, and equal ones stay equal.
fn shortest(score: f32) -> f64 {
    score.to_string().parse().unwrap_or_else(|_| f64::from(score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_written_in_few_decimals_and_read_back() {
        assert_eq!(serde_json::to_string(&shortest(0.1)).unwrap(), "0.1");
        for score in [0.1f32, -2.710_356, 1e-30, f32::MIN_POSITIVE, 16_777_216.0] {
            assert_eq!(shortest(score) as f32, score);
        }
        assert!(shortest(f32::NAN).is_nan(), "refused where it is scored");
    }
}
