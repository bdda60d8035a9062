//! Translation: text to text in one or several target languages.

mod ask;
mod batches;
mod data;
mod decode;
mod generated;
mod kinds;
mod material;
mod new;
mod parity;
mod prepare;
mod references;
mod search;
mod size;

use std::path::Path;

use burn::tensor::Device;
use zoo_models::models::{Cost, cost};
use zoo_models::precision::Compute;
use zoo_recipes::{
    Architecture, BatchingSpec, DataSpec, DecodeSpec, DecoderSpec, Denominator, Document, LossSpec,
    ModelSpec, ReaderSpec, Recipe, Resolved,
};
use zoo_results::metrics::{OfTerm, Unit};
use zoo_training::align::Alignment;

use self::material::Text;
use super::Task;
use crate::cli::{InferArgs, NewArgs};
use crate::context::Context;
use crate::error::Result;
use crate::evidence::{Aligner, Found, learned};
use crate::size::{ModelSize, Workload};
use crate::stages::Inference;
use crate::stages::bench::{Searching, Shape};
use crate::stages::data::{Material, Sets};
use crate::stages::evaluate::claimed_signatures;
use crate::stages::ready::Ready;
use crate::stages::timed_arm::{Making, Measurable, Updates, first_updates, of_updates};

/// Signature for recipes without claims: sacreBLEU's default.
const USUAL_SIGNATURE: &str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

/// Assumed tokens per sentence before any data is read. WMT sentences have about this mean length.
const ASSUMED_SENTENCE: f64 = 28.0;

/// Vocabulary rows of a model that is built only to count its parameters.
const BUILT_ROWS: usize = 64;

/// The translation task.
pub struct Translation;

impl Task for Translation {
    fn name(&self) -> &'static str {
        "translation"
    }

    fn fits(&self, recipe: &Recipe) -> bool {
        let model = matches!(recipe.model.architecture(), Some(Architecture::Tokens(_)));
        let attends = matches!(recipe.model.decoder, DecoderSpec::Recurrent(_));
        let searches = attends || !recipe.decode.values().any(DecodeSpec::counts_attention);
        model && matches!(recipe.loss, LossSpec::CrossEntropy { .. }) && searches
    }

    fn size(&self, recipe: &Recipe) -> Option<ModelSize> {
        let (rows, exact) = size::rows_known(recipe)?;
        Some(ModelSize { rows, exact, cost: cost(&recipe.model, &size::of_rows(recipe, rows)) })
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        cost(&recipe.model, &size::vocabularies(recipe))
    }

    fn width(&self, model: &ModelSpec) -> usize {
        model.width.unwrap_or(1) as usize
    }

    fn workload(&self, recipe: &Recipe) -> Workload {
        let data = &recipe.data;
        let example = match &data.reader {
            ReaderSpec::Reversal { min_length, max_length, .. } => {
                f64::from(min_length + max_length) / 2.0 + 1.0
            }
            _ => ASSUMED_SENTENCE,
        };
        let (batch, unit) = match data.batching {
            BatchingSpec::Tokens { max_tokens, .. } => (f64::from(max_tokens) / example, max_tokens),
            BatchingSpec::Sentences { sentences: n, .. }
            | BatchingSpec::Buckets { sentences: n, .. }
            | BatchingSpec::Utterances { utterances: n } => (f64::from(n), n),
            BatchingSpec::Seconds { .. } => (1.0, 1),
        };
        let examples = match &data.reader {
            ReaderSpec::Reversal { train, .. } => Some(f64::from(*train)),
            _ => None,
        };
        Workload { example, batch, unit, sides: 2.0, examples, copies: data.reader.targets().len() }
    }

    /// Full-length sentences if a batch has a fixed number of sentences; sentences of typical
    /// length if it has a fixed number of tokens.
    fn shape(&self, recipe: &Recipe) -> Shape {
        const USUAL: u32 = 32;
        const LONG: u32 = 64;
        let filter = &recipe.data.filter;
        match recipe.data.batching {
            BatchingSpec::Tokens { max_tokens, .. } => {
                Shape { sentences: (max_tokens / USUAL).max(1), tokens: USUAL }
            }
            BatchingSpec::Sentences { sentences: n, .. }
            | BatchingSpec::Buckets { sentences: n, .. }
            | BatchingSpec::Utterances { utterances: n } => {
                let longest = filter.max_source_tokens.max(filter.max_target_tokens);
                Shape { sentences: n, tokens: longest.unwrap_or(LONG).clamp(2, LONG) }
            }
            BatchingSpec::Seconds { .. } => Shape { sentences: 1, tokens: USUAL },
        }
    }

    fn own_examples(&self, data: &DataSpec, base: &Path) -> Result<Option<usize>> {
        prepare::own_examples(data, base)
    }

    fn own_files(&self, data: &DataSpec, base: &Path) -> Result<Vec<(String, String)>> {
        prepare::own_files(data, base)
    }

    fn generated(&self, data: &DataSpec) -> Option<String> {
        let ReaderSpec::Reversal { train, valid, test, .. } = &data.reader else { return None };
        Some(format!("{train} training, {valid} validation, {test} test pairs"))
    }

    fn signatures(&self, recipe: &Recipe, eval: &str, _: &str) -> Vec<String> {
        claimed_signatures(recipe, eval, || USUAL_SIGNATURE.to_owned())
    }

    fn training_unit(&self, recipe: &Recipe, of: OfTerm) -> Option<Unit> {
        let LossSpec::CrossEntropy { denominator, .. } = &recipe.loss else { return None };
        match (of, denominator) {
            (OfTerm::Likelihood | OfTerm::Perplexity, _) => Some(Unit::Token),
            (OfTerm::Objective, Denominator::Tokens) => Some(Unit::Token),
            (OfTerm::Objective, Denominator::Sentences) => Some(Unit::Sentence),
            _ => None,
        }
    }

    fn target_language(&self, recipe: &Recipe, eval: Option<&str>) -> Option<String> {
        let data = &recipe.data;
        let of_set = eval.and_then(|name| data.eval.get(name)).and_then(|set| set.target.clone());
        match &data.reader {
            ReaderSpec::ParallelText { target, .. } => Some(of_set.unwrap_or_else(|| target.clone())),
            _ => None,
        }
    }

    fn parity(&self, recipe: &Recipe) -> Found {
        parity::parity(recipe)
    }

    fn align(&self, recipe: &Recipe, aligner: &mut Aligner) -> Found {
        parity::align(recipe, aligner)
    }

    fn align_dump(
        &self,
        recipe: &Recipe,
        file: &Path,
        device: &Device,
        compute: Compute,
    ) -> Result<Alignment> {
        parity::align_dump(recipe, file, device, compute)
    }

    fn counted(&self, recipe: &Recipe) -> std::result::Result<(u64, String), String> {
        Ok((Text::of_rows(recipe, BUILT_ROWS).cost(recipe).parameters, format!("{BUILT_ROWS} words")))
    }

    fn built(&self, recipe: &Recipe) -> std::result::Result<u64, String> {
        Ok(learned(&Text::of_rows(recipe, BUILT_ROWS).model(recipe, 0, &Device::flex())))
    }

    /// Prepares all text regardless of the requested sets, because the vocabulary comes from
    /// training.
    fn prepare(&self, ctx: &Context, recipe: &Recipe, base: &Path, _: Sets<'_>) -> Result<Box<dyn Ready>> {
        Ok(Box::new(prepare::prepare(ctx, recipe, base)?))
    }

    fn references(&self, ctx: &Context, resolved: &Resolved, eval: &str) -> Result<Vec<String>> {
        references::of(ctx, resolved, eval)
    }

    fn sources(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        base: &Path,
        eval: &str,
    ) -> Result<Option<Vec<String>>> {
        references::sources(ctx, recipe, base, eval).map(Some)
    }

    fn made_up(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        shape: Option<Shape>,
        making: Making<'_>,
    ) -> Result<Measurable> {
        let mut text = Text { train: Vec::new(), vocabularies: size::vocabularies(recipe) };
        let updates = match shape {
            Some(Shape { sentences, tokens }) => {
                Updates::full(generated::full_batches(&text.vocabularies, sentences, tokens))
            }
            None => {
                text.train = generated::splits(recipe, &text.vocabularies);
                first_updates(recipe, &text, making.seed)?
            }
        };
        of_updates(ctx, recipe, &text, updates, making)
    }

    fn searching(
        &self,
        recipe: &Recipe,
        seed: u64,
        device: &Device,
        shape: Shape,
        search: &DecodeSpec,
    ) -> Result<Searching> {
        Ok(search::searching(recipe, seed, device, shape, search))
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::translate(inference, args)
    }

    fn new_recipe(&self, args: &NewArgs, base: &Document, of_base: &Recipe) -> Result<String> {
        new::text(args, base, of_base)
    }
}
