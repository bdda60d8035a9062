//! Language modelling: from the words or characters so far to the next one.

mod ask;
mod data;
mod decode;
mod generate;
mod generated;
mod material;
mod new;
mod parity;
mod prepare;

use std::path::Path;

use burn::tensor::Device;
use zoo_models::Cost;
use zoo_models::tasks::language_modelling::{LanguageModel, cost};
use zoo_recipes::tasks::language_modelling::{
    EvaluationWindowsSpec, LanguageLossSpec, LanguageModelSpec, LanguageReaderSpec, LanguageUnitSpec,
    LossDivisor, LossOver, TrainingWindowsSpec, WordRules,
};
use zoo_recipes::{Document, RecipeOf};
use zoo_results::metrics::{OfTerm, Unit};

use self::data::LanguageData;
use self::material::Text;
use crate::cli::{InferArgs, NewArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::conventions::claimed_signatures;
use crate::run::data::{Material, Sets};
use crate::run::folder::Run;
use crate::run::ready::Ready;
use crate::run::timed_arm::{Making, Measurable, Updates, of_updates};
use crate::task::Task;
use crate::task::aligner::{Aligner, Found, learned};
use crate::task::inference::Inference;
use crate::task::searching::Searching;
use crate::task::shape::Shape;
use crate::task::size::{ModelSize, Workload};

/// Assumed units of a line of text, for plans: Penn Treebank has 22 words, tiny Shakespeare 28
/// characters.
const WORDS_OF_LINE: f64 = 22.0;
/// The same of a film review, which is a line: 6.8 million words and marks in 25,000 reviews of
/// IMDB.
const WORDS_OF_REVIEW: f64 = 271.0;
const CHARACTERS_OF_LINE: f64 = 28.0;

/// Most units of a model that is built to be counted.
const MOST_BUILT: u64 = 50_000;
/// The same of a model whose softmax is sampled because its tables are large.
const MOST_BUILT_SAMPLED: u64 = 1_000;

/// A recipe of this task.
pub type Recipe = RecipeOf<zoo_recipes::LanguageModelling>;

/// The task of a recipe.
pub struct LanguageModelling<'r> {
    /// The recipe.
    pub recipe: &'r Recipe,
}

impl LanguageModelling<'_> {
    fn units(&self) -> u64 {
        u64::from(self.recipe.data.vocabulary.size)
    }

    /// Number of units of a model that is built to be counted. A table has as many rows as there
    /// are units; hundreds of thousands more of them show nothing.
    fn built_units(&self) -> u64 {
        self.units().min(match self.recipe.loss {
            LanguageLossSpec::CrossEntropy { .. } => MOST_BUILT,
            LanguageLossSpec::SampledSoftmax { .. } => MOST_BUILT_SAMPLED,
        })
    }
}

impl Task for LanguageModelling<'_> {
    fn name(&self) -> &'static str {
        "language-modelling"
    }

    fn fits(&self) -> bool {
        let [rows, steps] = self.recipe.data.batching.shape();
        let sets = self.recipe.data.eval.values().map(|set| set.windows.shape()[1]);
        let longest = sets.chain([steps]).max().unwrap_or(steps);
        let reads = match self.recipe.model {
            LanguageModelSpec::Lstm(lstm) => !lstm.tied || lstm.width == lstm.output(),
            LanguageModelSpec::LayerNormLstm(_) => true,
            LanguageModelSpec::Gpt(gpt) => {
                longest <= gpt.context && gpt.heads > 0 && gpt.width.is_multiple_of(gpt.heads)
            }
        };
        reads && rows > 0 && steps > 0
    }

    fn size(&self) -> Option<ModelSize> {
        let exact = !self.recipe.data.vocabulary.estimated;
        Some(ModelSize { rows: self.units() as usize, exact, cost: self.cost() })
    }

    fn cost(&self) -> Cost {
        cost(&self.recipe.model, self.units())
    }

    fn width(&self) -> usize {
        match self.recipe.model {
            LanguageModelSpec::Lstm(lstm) => lstm.units.max(lstm.width) as usize,
            LanguageModelSpec::LayerNormLstm(lstm) => lstm.units.max(lstm.width) as usize,
            LanguageModelSpec::Gpt(gpt) => gpt.width as usize,
        }
    }

    fn workload(&self) -> Workload {
        let data = &self.recipe.data;
        let example = match (&data.unit, &data.reader) {
            (_, LanguageReaderSpec::Babble { .. }) => 10.0,
            (LanguageUnitSpec::Word { rules: Some(WordRules::Reviews), .. }, _) => WORDS_OF_REVIEW,
            (LanguageUnitSpec::Word { .. }, _) => WORDS_OF_LINE,
            (LanguageUnitSpec::Character {}, _) => CHARACTERS_OF_LINE,
        };
        let [rows, steps] = data.batching.shape();
        let batch = f64::from(rows) * f64::from(steps) / example;
        let examples = match (data.batching, &data.reader) {
            // An epoch has so many batches, whatever the length of the text.
            (TrainingWindowsSpec::Random { batches, .. }, _) => Some(f64::from(batches) * batch),
            // The batches that fit into the part that is read.
            (
                TrainingWindowsSpec::Chunks { first_units: Some(units), .. },
                LanguageReaderSpec::Text { .. },
            ) => Some(f64::from(units / steps.max(1) / rows.max(1)) * batch),
            (_, LanguageReaderSpec::Babble { train, .. }) => Some(f64::from(*train)),
            _ => None,
        };
        Workload { example, batch, unit: rows, sides: 1.0, examples, copies: 1, models: 1 }
    }

    fn unit(&self) -> &'static str {
        Text::UNIT
    }

    fn shape(&self) -> Shape {
        let [rows, steps] = self.recipe.data.batching.shape();
        // A shape has at least two of each.
        Shape { sentences: rows, tokens: steps.max(2) }
    }

    fn own_examples(&self, base: &Path) -> Result<Option<usize>> {
        prepare::own_examples(&self.recipe.data, base)
    }

    fn own_files(&self, base: &Path) -> Result<Vec<(String, String)>> {
        prepare::own_files(&self.recipe.data, base)
    }

    fn generated(&self) -> Option<String> {
        let LanguageReaderSpec::Babble { train, valid, test, .. } = self.recipe.data.reader else {
            return None;
        };
        Some(format!("{train} training, {valid} validation, {test} test lines"))
    }

    fn signatures(&self, eval: &str, _: &str) -> Vec<String> {
        claimed_signatures(self.recipe, eval, || usual_signature(self.recipe, eval))
    }

    fn training_unit(&self, of: OfTerm) -> Option<Unit> {
        // A loss among drawn units is not a likelihood.
        let LanguageLossSpec::CrossEntropy { over } = self.recipe.loss else { return None };
        let unit = Some(unit(self.recipe));
        match of {
            OfTerm::Likelihood | OfTerm::Perplexity => unit,
            OfTerm::Objective if over == LossOver::Mean => unit,
            OfTerm::Objective | OfTerm::Accuracy { .. } => None,
        }
    }

    fn has_sparse_tables(&self) -> bool {
        matches!(self.recipe.model, LanguageModelSpec::Lstm(lstm) if !lstm.tied)
    }

    fn parity(&self) -> Found {
        parity::parity(self.recipe)
    }

    fn align(&self, aligner: &mut Aligner) -> Found {
        parity::align(self.recipe, aligner)
    }

    fn counted(&self) -> std::result::Result<(u64, String), String> {
        let units = self.built_units();
        Ok((cost(&self.recipe.model, units).parameters, format!("{units} units")))
    }

    fn built(&self) -> std::result::Result<u64, String> {
        let units = self.built_units() as usize;
        Ok(learned(&LanguageModel::new(&self.recipe.model, units, 0, 1, &Device::flex())))
    }

    fn prepare(&self, ctx: &Context, base: &Path, _: Sets<'_>) -> Result<Box<dyn Ready>> {
        Ok(Box::new(LanguageData { prepared: prepare::prepare(ctx, &self.recipe.data, base)? }))
    }

    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>> {
        decode::references(self.recipe, &*prepare::prepare(ctx, &self.recipe.data, base)?, eval)
    }

    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable> {
        let Shape { sentences, tokens } = shape.unwrap_or(self.shape());
        if let LanguageModelSpec::Gpt(gpt) = self.recipe.model
            && tokens > gpt.context
        {
            let message = format!("--shape {sentences}x{tokens}: the model's context is {}", gpt.context);
            return Err(Failure::usage(message).hint(format!("--shape {sentences}x{}", gpt.context)));
        }
        let recipe = generated::of_shape(self.recipe, [sentences, tokens]);
        let updates = Updates::full(generated::full_batches(&recipe));
        of_updates(ctx, &recipe, &Text { prepared: None }, updates, making)
    }

    fn searching(&self, _: u64, _: &Device, _: Shape, _: &str) -> Result<Searching> {
        Err(Failure::usage("a language model has no searches to time")
            .hint("`zoo bench RECIPE` times its updates"))
    }

    fn hub_name(&self) -> &'static str {
        "text-generation"
    }

    fn example_use(&self) -> &'static str {
        "infer MODEL --prompt \"the\" --length 50"
    }

    fn check_vocabulary(&self, run: &Run) -> Result<()> {
        prepare::check_vocabulary(&self.recipe.data, run)
    }

    fn open(&self, inference: &Inference) -> Result<()> {
        ask::open(inference, self.recipe).map(drop)
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::answer(inference, self.recipe, args)
    }

    fn new_recipe(&self, args: &NewArgs, base: &Document) -> Result<String> {
        new::text(args, base, self.recipe)
    }
}

/// The unit that is predicted, in a signature.
fn unit(recipe: &Recipe) -> Unit {
    match recipe.data.unit {
        LanguageUnitSpec::Word { .. } => Unit::Word,
        LanguageUnitSpec::Character {} => Unit::Character,
    }
}

/// Perplexity as the evaluation set is read.
fn usual_signature(recipe: &Recipe, eval: &str) -> String {
    let windows = recipe.data.eval.get(eval).map(|set| set.windows);
    let state = if windows.is_some_and(EvaluationWindowsSpec::carries) { "carried" } else { "reset" };
    let divisor = match windows.map(EvaluationWindowsSpec::divisor) {
        Some(LossDivisor::All) => "|divisor:all",
        _ => "",
    };
    let unknown = match recipe.data.unit {
        LanguageUnitSpec::Word { .. } => "scored",
        LanguageUnitSpec::Character {} => "none",
    };
    let unit = unit(recipe).name();
    format!("metric:perplexity|unit:{unit}|unk:{unknown}|end:yes|state:{state}{divisor}")
}
