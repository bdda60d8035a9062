//! `zoo bench --decode` for recognition: generated features of one length, to transcripts.

use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::speech::Classes;
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_recognition::{AcousticModel, FrameGrid, SpeechBatch};
use zoo_recipes::SearchBlock;
use zoo_recipes::tasks::speech_recognition::CtcSearchSpec;

use super::material::SpeechMaterial;
use super::recogniser::Recogniser;
use super::{Recipe, generated};
use crate::error::{Failure, Result};
use crate::run::data::Material;
use crate::task::searching::{SearchBatches, Searching};
use crate::task::shape::Shape;

/// Number of distinct batches.
const BATCHES: usize = 4;

struct Utterances {
    model: AcousticModel,
    classes: Arc<Classes>,
    search: CtcSearchSpec,
    batches: Vec<SpeechBatch>,
    compute: Compute,
}

impl Utterances {
    /// The search. It reads no file, so it needs no folder.
    fn recogniser(&self) -> Result<Recogniser<'_>> {
        Recogniser::new(&self.model, &self.classes, &self.search, Path::new(""), self.compute)
    }
}

impl SearchBatches for Utterances {
    fn decode(&self, number: usize) -> Result<u64> {
        let batch = &self.batches[number % self.batches.len()];
        self.recogniser()?.recognise(batch);
        Ok(batch.lengths.iter().map(|&frames| frames as u64).sum())
    }
}

/// A model with fresh weights and generated features, to time a search without a language model.
/// The features are computed beforehand.
///
/// # Errors
/// The search reads a language model or a list of words, or the shape has fewer frames than the model reads.
pub fn searching(
    recipe: &Recipe,
    seed: u64,
    device: &Device,
    shape: Shape,
    search: &str,
) -> Result<Searching> {
    readable(recipe, shape)?;
    let spec = &recipe.decode[search];
    if spec.language_model().is_some() || spec.word_list().is_some() || spec.lacks_language_model() {
        return Err(Failure::usage("the search reads a language model or a list of words").hint(
            "time one that reads none; `zoo infer RUN RECORDING --format json` prints the time per recording",
        ));
    }
    let material = SpeechMaterial::of(recipe)?;
    let full = generated::full_batches(recipe, &material, shape.sentences, shape.tokens);
    Ok(Searching {
        spec: serde_json::json!(spec),
        parameters: material.cost(recipe).parameters,
        vocabulary: material.classes.len(),
        batches: Box::new(Utterances {
            model: material.model(recipe, seed, device),
            classes: Arc::clone(&material.classes),
            search: spec.clone(),
            batches: full.take(BATCHES).flatten().map(|fetched| fetched.batch).collect(),
            compute: Compute::of(&recipe.precision),
        }),
    })
}

/// Checks that the model reads utterances of this length.
///
/// # Errors
/// They are too short.
pub fn readable(recipe: &Recipe, Shape { sentences, tokens }: Shape) -> Result<()> {
    let least = FrameGrid::of(recipe.model.layers()).least();
    if tokens as usize >= least {
        return Ok(());
    }
    let message = format!("the model reads {least} frames at least, and {tokens} are given");
    Err(Failure::usage(message).hint(format!("--shape {sentences}x{least}")))
}
