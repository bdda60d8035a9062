//! Classification of an evaluation set.

use zoo_datasets::tasks::text_classification::{PreparedTexts, TextSplit};
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::text_classification::{TextModel, scores};

use super::Recipe;
use super::material::of_models;
use super::prepare::failure;
use crate::context::Context;
use crate::error::Result;
use crate::progress::Step;
use crate::run::data::{Decoded, KeptSample};
use crate::tasks::classes::{Answer, confusion, record, wrong};

/// Texts of a batch of evaluation.
pub const TOGETHER: usize = 100;

/// Number of errors that are kept with their words.
const ERRORS: usize = 12;

/// Scores the classes of each text. Returns one record per text, in the order of the split, the
/// confusion matrix, and the most confident errors.
pub fn decode(
    ctx: &Context,
    recipe: &Recipe,
    prepared: &PreparedTexts,
    eval: &str,
    model: &TextModel,
) -> Result<Decoded> {
    let split = prepared.eval_set(eval, &recipe.data).map_err(failure)?;
    let compute = Compute::of(&recipe.precision);
    let mut answers = Vec::with_capacity(split.labels.len());
    let mut hypotheses = Vec::with_capacity(split.labels.len());
    for batch in split.batches(TOGETHER) {
        ctx.check_stop()?;
        let batch = of_models(batch);
        let found = scores(model, &batch, &mut Pass::evaluation(compute));
        for (scores, label) in found.into_iter().zip(&batch.labels) {
            answers.push(Answer::new(&scores, *label as usize));
            hypotheses.push(record(scores));
        }
        let total = Some(split.labels.len() as u64);
        ctx.progress.step(&Step { done: answers.len() as u64, total, ..Step::default() });
    }
    let mut samples: Vec<KeptSample> = confusion(&answers, &prepared.classes, "texts")?.into_iter().collect();
    samples.extend(wrong(&answers, ERRORS).into_iter().map(|at| error(&answers[at], at, split, prepared)));
    Ok(Decoded { hypotheses, references: references(split), samples })
}

/// The labels of a split, as references.
pub fn references(split: &TextSplit) -> Vec<String> {
    split.labels.iter().map(u32::to_string).collect()
}

/// A wrong answer with the words that the model read.
fn error(answer: &Answer, at: usize, split: &TextSplit, prepared: &PreparedTexts) -> KeptSample {
    let name = |class: usize| prepared.classes.get(class).cloned().unwrap_or_else(|| class.to_string());
    let mut scores = serde_json::Map::new();
    scores.insert("class".to_owned(), name(answer.label).into());
    scores.insert("answer".to_owned(), name(answer.class).into());
    scores.insert("confidence".to_owned(), answer.confidence.into());
    KeptSample {
        title: format!("Text {}", at + 1),
        text: prepared.vocabulary.text(&split.texts[at]),
        scores,
        files: Vec::new(),
    }
}
