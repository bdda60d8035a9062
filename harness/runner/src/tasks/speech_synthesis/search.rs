//! `zoo bench --decode` for synthesis: generates texts of one length up to the frame limit.

use burn::tensor::Device;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_synthesis::{Limits, Synthesiser};
use zoo_recipes::MaxLength;
use zoo_recipes::tasks::speech_synthesis::{FreeRunningSpec, SynthesisSearchSpec};

use super::material::SynthesisMaterial;
use super::speak::limits;
use super::{Recipe, generated};
use crate::error::{Failure, Result};
use crate::run::data::Material;
use crate::task::searching::{SearchBatches, Searching};
use crate::task::shape::Shape;

/// Number of distinct batches.
const BATCHES: usize = 4;

struct Texts {
    model: Synthesiser,
    limits: Limits,
    texts: Vec<Vec<Vec<u32>>>,
    compute: Compute,
}

impl SearchBatches for Texts {
    fn decode(&self, number: usize) -> Result<u64> {
        let texts = &self.texts[number % self.texts.len()];
        let spoken = self.model.speak(texts, self.limits, &mut Pass::evaluation(self.compute));
        Ok(spoken.iter().map(|one| one.frames as u64).sum())
    }
}

/// A model with fresh weights and generated texts, to time a free-running search.
///
/// # Errors
/// The search is teacher-forced.
pub fn searching(
    recipe: &Recipe,
    seed: u64,
    device: &Device,
    shape: Shape,
    search: &str,
) -> Result<Searching> {
    let SynthesisSearchSpec::FreeRunning(spec) = &recipe.decode[search] else {
        return Err(Failure::usage("the search is teacher-forced").hint("time one of another kind"));
    };
    let spec = FreeRunningSpec { max_frames: MaxLength::fixed(shape.tokens), ..spec.clone() };
    let material = SynthesisMaterial::of(recipe)?;
    let model = material.model(recipe, seed, device);
    let full = generated::full_batches(recipe, &material, shape.sentences, shape.tokens);
    let texts = full.take(BATCHES).flatten().map(|fetched| fetched.batch.symbols).collect();
    // A threshold of 1 keeps every text from stopping before the shape's frames.
    let limits = Limits { threshold: 1.0, ..limits(&spec) };
    let compute = Compute::of(&recipe.precision);
    Ok(Searching {
        spec: serde_json::json!(SynthesisSearchSpec::FreeRunning(spec)),
        parameters: material.cost(recipe).parameters,
        vocabulary: material.symbols,
        batches: Box::new(Texts { model, limits, texts, compute }),
    })
}
