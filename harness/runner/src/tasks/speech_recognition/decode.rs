//! Decoding of an evaluation set with one search.

use zoo_models::precision::Compute;
use zoo_models::tasks::speech_recognition::{AcousticModel, FrameGrid};

use zoo_results::exit::Exit;

use super::Recipe;
use super::batches::{evaluation, of_models};
use super::recogniser::Recogniser;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::run::data::Decoded;
use crate::tasks::recordings::RecordingData;

/// Decodes an evaluation set to one line per utterance, in the order of the split.
pub fn decode(
    ctx: &Context,
    recipe: &Recipe,
    RecordingData { prepared, base }: &RecordingData,
    (eval, decode): (&str, &str),
    model: &AcousticModel,
) -> Result<Decoded> {
    let split = prepared.eval_set(eval, &recipe.data.eval[eval])?;
    let compute = Compute::of(&recipe.precision);
    let recogniser = Recogniser::new(model, &prepared.classes, &recipe.decode[decode], base, compute)?;
    let mut hypotheses = vec![String::new(); split.utterances.len()];
    let mut done = 0;
    let grid = FrameGrid::of(recipe.model.layers());
    for batch in evaluation(prepared, split, &recipe.data.batching) {
        ctx.check_stop()?;
        let batch = batch?;
        let ids = batch.ids.clone();
        let batch = of_models(batch, grid).map_err(|why| Failure::new(Exit::Data, why).about(eval))?;
        for (id, found) in ids.into_iter().zip(recogniser.recognise(&batch)) {
            hypotheses[id as usize] = found.text;
            done += 1;
        }
        ctx.progress.step(&Step { done, total: Some(hypotheses.len() as u64), ..Step::default() });
    }
    let references = split.references_as(recipe.data.eval[eval].references).to_vec();
    Ok(Decoded { hypotheses, references, samples: Vec::new() })
}
