//! `zoo bench --decode` for translation: searches on generated sentences of one length.

use burn::tensor::Device;
use zoo_models::Packed;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::search::{SearchIds, search};
use zoo_models::tasks::translation::{Seq2Seq, Vocabularies, Writer};
use zoo_recipes::TokenSearchSpec;

use super::generated::full_batches;
use super::material::Text;
use super::{Recipe, size};
use crate::error::Result;
use crate::run::data::Material;
use crate::task::searching::{SearchBatches, Searching};
use crate::task::shape::Shape;

/// Number of distinct batches.
const BATCHES: usize = 4;

struct Sentences {
    model: Seq2Seq,
    spec: TokenSearchSpec,
    vocabularies: Vocabularies,
    sources: Vec<Packed>,
    compute: Compute,
}

impl SearchBatches for Sentences {
    fn decode(&self, number: usize) -> Result<u64> {
        let sources = &self.sources[number % self.sources.len()];
        let ids = SearchIds { pad: self.vocabularies.pad, end: self.vocabularies.end };
        let writer = Writer::new(&self.model, 0, Pass::evaluation(self.compute));
        let found = search(&writer, sources, &self.spec, ids);
        Ok(found.iter().filter_map(|ranked| ranked.first()).map(|best| best.tokens.len() as u64).sum())
    }
}

/// A model with fresh weights and generated sentences, to time a search.
pub fn searching(recipe: &Recipe, seed: u64, device: &Device, shape: Shape, search: &str) -> Searching {
    let text = Text { train: Vec::new(), vocabularies: size::vocabularies(recipe) };
    let model = text.model(recipe, seed, device);
    let vocabularies = text.vocabularies;
    let full = full_batches(&vocabularies, shape.sentences, shape.tokens);
    let sources = full.take(BATCHES).flatten().map(|fetched| fetched.batch.source).collect();
    let spec = recipe.decode[search].clone().writing(shape.tokens);
    let compute = Compute::of(&recipe.precision);
    Searching {
        spec: serde_json::json!(spec),
        parameters: text.cost(recipe).parameters,
        vocabulary: vocabularies.target,
        batches: Box::new(Sentences { model, spec, vocabularies, sources, compute }),
    }
}
