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

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use zoo_models::Cost;
use zoo_models::precision::Compute;
use zoo_models::tasks::translation::cost;
use zoo_recipes::tasks::translation::{Denominator, TextReaderSpec, TokenLossSpec};
use zoo_recipes::{Document, RecipeOf, Tying};
use zoo_recipes::{TextBatchingSpec, TokenSearchSpec};
use zoo_results::metrics::{OfTerm, Unit};
use zoo_training::align::Alignment;

use self::material::Text;
pub use self::prepare::check_prepared;
use crate::cli::{InferArgs, NewArgs};
use crate::context::Context;
use crate::error::Result;
use crate::run::conventions::claimed_signatures;
use crate::run::data::{Material, Sets};
use crate::run::folder::Run;
use crate::run::ready::Ready;
use crate::run::timed_arm::{Making, Measurable, Updates, first_updates, of_updates};
use crate::task::Task;
use crate::task::aligner::{Aligner, Found, learned};
use crate::task::inference::Inference;
use crate::task::searching::Searching;
use crate::task::shape::Shape;
use crate::task::size::{ModelSize, Workload};

/// Signature for recipes without claims: sacreBLEU's default.
const USUAL_SIGNATURE: &str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

/// Assumed tokens per sentence before any data is read. WMT sentences have about this mean length.
const ASSUMED_SENTENCE: f64 = 28.0;

/// Vocabulary rows of a model that is built only to count its parameters.
const BUILT_ROWS: usize = 64;

/// A recipe of this task.
pub type Recipe = RecipeOf<zoo_recipes::Translation>;

/// The task of a recipe.
pub struct Translation<'r> {
    /// The recipe.
    pub recipe: &'r Recipe,
}

impl Task for Translation<'_> {
    fn name(&self) -> &'static str {
        "translation"
    }

    fn fits(&self) -> bool {
        let attends = self.recipe.model.decoder.has_one_attention();
        attends || !self.recipe.decode.values().any(TokenSearchSpec::counts_attention)
    }

    fn size(&self) -> Option<ModelSize> {
        let (rows, exact) = size::rows_known(self.recipe);
        Some(ModelSize { rows, exact, cost: cost(&self.recipe.model, &size::of_rows(self.recipe, rows)) })
    }

    fn cost(&self) -> Cost {
        cost(&self.recipe.model, &size::vocabularies(self.recipe))
    }

    fn width(&self) -> usize {
        self.recipe.model.width as usize
    }

    fn workload(&self) -> Workload {
        let data = &self.recipe.data;
        let example = match &data.reader {
            TextReaderSpec::Reversal(spec) => f64::from(spec.min_length + spec.max_length) / 2.0 + 1.0,
            TextReaderSpec::ParallelText { .. } => ASSUMED_SENTENCE,
        };
        let (batch, unit) = match data.batching {
            TextBatchingSpec::Tokens { max_tokens, .. } => (f64::from(max_tokens) / example, max_tokens),
            TextBatchingSpec::Sentences { sentences: n, .. }
            | TextBatchingSpec::Buckets { sentences: n, .. } => (f64::from(n), n),
        };
        let examples = match &data.reader {
            TextReaderSpec::Reversal(spec) => Some(f64::from(spec.train)),
            TextReaderSpec::ParallelText { .. } => None,
        };
        Workload {
            example,
            batch,
            unit,
            sides: 2.0,
            examples,
            copies: data.reader.targets().len(),
            models: 1,
        }
    }

    fn unit(&self) -> &'static str {
        Text::UNIT
    }

    /// Full-length sentences if a batch has a fixed number of sentences; sentences of typical
    /// length if it has a fixed number of tokens.
    fn shape(&self) -> Shape {
        const USUAL: u32 = 32;
        const LONG: u32 = 64;
        let filter = &self.recipe.data.filter;
        match self.recipe.data.batching {
            TextBatchingSpec::Tokens { max_tokens, .. } => {
                Shape { sentences: (max_tokens / USUAL).max(1), tokens: USUAL }
            }
            TextBatchingSpec::Sentences { sentences: n, .. }
            | TextBatchingSpec::Buckets { sentences: n, .. } => {
                let longest = filter.max_source_tokens.max(filter.max_target_tokens);
                Shape { sentences: n, tokens: longest.unwrap_or(LONG).clamp(2, LONG) }
            }
        }
    }

    fn own_examples(&self, base: &Path) -> Result<Option<usize>> {
        prepare::own_examples(&self.recipe.data, base)
    }

    fn own_files(&self, base: &Path) -> Result<Vec<(String, String)>> {
        prepare::own_files(&self.recipe.data, base)
    }

    fn prepared_folder(&self, ctx: &Context, base: &Path) -> Result<Option<PathBuf>> {
        prepare::folder(ctx, self.recipe, base).map(Some)
    }

    fn generated(&self) -> Option<String> {
        let TextReaderSpec::Reversal(spec) = &self.recipe.data.reader else { return None };
        let (train, valid, test) = (spec.train, spec.valid, spec.test);
        Some(format!("{train} training, {valid} validation, {test} test pairs"))
    }

    fn signatures(&self, eval: &str, _: &str) -> Vec<String> {
        claimed_signatures(self.recipe, eval, || USUAL_SIGNATURE.to_owned())
    }

    fn training_unit(&self, of: OfTerm) -> Option<Unit> {
        let TokenLossSpec::CrossEntropy { denominator, .. } = &self.recipe.loss;
        match (of, denominator) {
            (OfTerm::Likelihood | OfTerm::Perplexity, _) => Some(Unit::Token),
            (OfTerm::Objective, Denominator::Tokens) => Some(Unit::Token),
            (OfTerm::Objective, Denominator::Sentences) => Some(Unit::Sentence),
            _ => None,
        }
    }

    fn has_sparse_tables(&self) -> bool {
        self.recipe.model.embedding.tied != Tying::All
    }

    fn target_language(&self, eval: Option<&str>) -> Option<String> {
        let data = &self.recipe.data;
        let of_set = eval.and_then(|name| data.eval.get(name)).and_then(|set| set.target.clone());
        match &data.reader {
            TextReaderSpec::ParallelText { target, .. } => Some(of_set.unwrap_or_else(|| target.clone())),
            TextReaderSpec::Reversal(_) => None,
        }
    }

    fn parity(&self) -> Found {
        parity::parity(self.recipe)
    }

    fn align(&self, aligner: &mut Aligner) -> Found {
        parity::align(self.recipe, aligner)
    }

    fn align_dump(&self, file: &Path, device: &Device, compute: Compute) -> Result<Alignment> {
        parity::align_dump(self.recipe, file, device, compute)
    }

    fn counted(&self) -> std::result::Result<(u64, String), String> {
        Ok((
            Text::of_rows(self.recipe, BUILT_ROWS).cost(self.recipe).parameters,
            format!("{BUILT_ROWS} words"),
        ))
    }

    fn built(&self) -> std::result::Result<u64, String> {
        Ok(learned(&Text::of_rows(self.recipe, BUILT_ROWS).model(self.recipe, 0, &Device::flex())))
    }

    /// Prepares all text regardless of the requested sets, because the vocabulary comes from
    /// training.
    fn prepare(&self, ctx: &Context, base: &Path, _: Sets<'_>) -> Result<Box<dyn Ready>> {
        Ok(Box::new(prepare::prepare(ctx, self.recipe, base)?))
    }

    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>> {
        references::of(ctx, self.recipe, base, eval)
    }

    fn sources(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Option<Vec<String>>> {
        references::sources(ctx, self.recipe, base, eval).map(Some)
    }

    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable> {
        let mut text = Text { train: Vec::new(), vocabularies: size::vocabularies(self.recipe) };
        let updates = match shape {
            Some(Shape { sentences, tokens }) => {
                Updates::full(generated::full_batches(&text.vocabularies, sentences, tokens))
            }
            None => {
                text.train = generated::splits(self.recipe, &text.vocabularies);
                first_updates(self.recipe, &text, making.seed)?
            }
        };
        of_updates(ctx, self.recipe, &text, updates, making)
    }

    fn searching(&self, seed: u64, device: &Device, shape: Shape, search: &str) -> Result<Searching> {
        Ok(search::searching(self.recipe, seed, device, shape, search))
    }

    fn hub_name(&self) -> &'static str {
        "translation"
    }

    fn example_use(&self) -> &'static str {
        "infer MODEL --input lines.txt"
    }

    fn check_vocabulary(&self, run: &Run) -> Result<()> {
        prepare::check_vocabulary(self.recipe, run)
    }

    fn open(&self, inference: &Inference) -> Result<()> {
        ask::open(inference, self.recipe).map(drop)
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::translate(inference, self.recipe, args)
    }

    fn new_recipe(&self, args: &NewArgs, base: &Document) -> Result<String> {
        new::text(args, base, self.recipe)
    }
}
