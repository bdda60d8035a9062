//! Text classification: texts to scores of classes.

mod ask;
mod data;
mod decode;
mod generated;
mod material;
mod new;
mod parity;
mod prepare;

use std::path::Path;

use burn::tensor::Device;
use zoo_models::Cost;
use zoo_models::tasks::text_classification::cost;
use zoo_recipes::tasks::text_classification::{LabelledReaderSpec, LabelledTokenizerSpec, TextLayerSpec};
use zoo_recipes::{Document, RecipeOf};
use zoo_results::metrics::{OfTerm, Unit};
use zoo_results::report::grouped;

use self::data::TextData;
use self::material::Texts;
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

/// Assumed rows of an embedding if only the data determines them.
const ASSUMED_ROWS: usize = 20_000;

/// A recipe of this task.
pub type Recipe = RecipeOf<zoo_recipes::TextClassification>;

/// The task of a recipe.
pub struct TextClassification<'r> {
    /// The recipe.
    pub recipe: &'r Recipe,
}

impl Task for TextClassification<'_> {
    fn name(&self) -> &'static str {
        "text-classification"
    }

    fn fits(&self) -> bool {
        let classes = self.recipe.data.classes;
        let shapes = self.recipe.model.shapes(self.recipe.data.positions());
        let outputs = shapes.ok().and_then(|shapes| shapes.last().map(|shape| shape.width()));
        let due = self.recipe.loss.outputs(classes);
        classes > 1 && (due > 1 || classes == 2) && outputs == Some(due)
    }

    fn size(&self) -> Option<ModelSize> {
        let (rows, exact) = rows(self.recipe);
        Some(ModelSize { rows, exact, cost: self.cost() })
    }

    fn cost(&self) -> Cost {
        Texts { prepared: None }.cost(self.recipe)
    }

    fn width(&self) -> usize {
        let width = |layer: &TextLayerSpec| match *layer {
            TextLayerSpec::Embedding { width, .. } => width,
            TextLayerSpec::Convolution { channels, .. } | TextLayerSpec::Kernels { channels, .. } => channels,
            TextLayerSpec::Dense { units, .. } | TextLayerSpec::Lstm { units, .. } => units,
            TextLayerSpec::LayerNormLstm { units, width, .. } => units.max(width),
            _ => 1,
        };
        self.recipe.model.layer.iter().map(width).max().unwrap_or(1) as usize
    }

    fn workload(&self) -> Workload {
        let unit = self.recipe.data.batching.texts;
        let examples = match self.recipe.data.reader {
            LabelledReaderSpec::MarkedWords { train, .. } => Some(f64::from(train)),
            _ => None,
        };
        // The model of each part is trained on the other parts.
        let copies = self.recipe.data.folds.as_ref().map_or(1, |folds| folds.count.max(2) as usize - 1);
        let models = u64::from(self.recipe.data.models());
        Workload { example: 1.0, batch: f64::from(unit), unit, sides: 1.0, examples, copies, models }
    }

    fn unit(&self) -> &'static str {
        Texts::UNIT
    }

    fn shape(&self) -> Shape {
        // A shape has at least two positions.
        let positions = self.recipe.data.positions().max(2);
        Shape { sentences: self.recipe.data.batching.texts, tokens: positions }
    }

    fn own_examples(&self, base: &Path) -> Result<Option<usize>> {
        prepare::own_examples(&self.recipe.data, base)
    }

    fn own_files(&self, base: &Path) -> Result<Vec<(String, String)>> {
        prepare::own_files(&self.recipe.data, base)
    }

    fn generated(&self) -> Option<String> {
        let LabelledReaderSpec::MarkedWords { train, valid, test, .. } = self.recipe.data.reader else {
            return None;
        };
        Some(format!("{train} training, {valid} validation, {test} test texts"))
    }

    fn signatures(&self, eval: &str, _: &str) -> Vec<String> {
        let classes = self.recipe.data.classes;
        claimed_signatures(self.recipe, eval, || {
            format!("metric:accuracy|nrefs:1|top:1|classes:{classes}|ties:first")
        })
    }

    fn training_unit(&self, of: OfTerm) -> Option<Unit> {
        matches!(of, OfTerm::Objective | OfTerm::Accuracy { top: 1 }).then_some(Unit::Example)
    }

    fn has_sparse_tables(&self) -> bool {
        true
    }

    fn parity(&self) -> Found {
        parity::parity(&self.recipe.model)
    }

    fn align(&self, aligner: &mut Aligner) -> Found {
        parity::align(&self.recipe.model, aligner)
    }

    fn counted(&self) -> std::result::Result<(u64, String), String> {
        let rows = rows(self.recipe).0;
        let cost = cost(&self.recipe.model, self.recipe.data.positions(), rows as u64);
        let cost = cost.map_err(|problem| problem.to_string())?;
        Ok((cost.parameters, format!("{} words", grouped(rows as u64))))
    }

    fn built(&self) -> std::result::Result<u64, String> {
        Ok(learned(&Texts { prepared: None }.model(self.recipe, 0, &Device::flex())))
    }

    fn prepare(&self, ctx: &Context, base: &Path, _: Sets<'_>) -> Result<Box<dyn Ready>> {
        Ok(Box::new(TextData { prepared: prepare::prepare(ctx, &self.recipe.data, base)? }))
    }

    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>> {
        let prepared = prepare::labelled(ctx, &self.recipe.data, base)?;
        Ok(decode::references(prepared.eval_set(eval, &self.recipe.data).map_err(prepare::failure)?))
    }

    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable> {
        let asked = shape.unwrap_or(self.shape());
        if !asked.is_usable() {
            return Err(Failure::usage(format!("a batch of {asked} is too large to make"))
                .hint("--shape TEXTSxPOSITIONS, 16 million at most together"));
        }
        if let Err(problem) = self.recipe.model.shapes(asked.tokens) {
            let message = format!("--shape {asked}: {problem}");
            return Err(
                Failure::usage(message).hint(format!("give texts x positions, e.g. {}", self.shape()))
            );
        }
        let updates = Updates::full(generated::full_batches(self.recipe, asked));
        of_updates(ctx, self.recipe, &Texts { prepared: None }, updates, making)
    }

    fn searching(&self, _: u64, _: &Device, _: Shape, _: &str) -> Result<Searching> {
        Err(Failure::usage("a classifier of texts has no searches to time")
            .hint("`zoo infer RUN --format json` prints the time per text"))
    }

    fn hub_name(&self) -> &'static str {
        "text-classification"
    }

    fn example_use(&self) -> &'static str {
        "infer MODEL --input lines.txt"
    }

    fn check_vocabulary(&self, run: &Run) -> Result<()> {
        prepare::check_vocabulary(&self.recipe.data, run)
    }

    fn open(&self, inference: &Inference) -> Result<()> {
        ask::open(inference, self.recipe).map(drop)
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::classify(inference, self.recipe, args)
    }

    fn new_recipe(&self, args: &NewArgs, base: &Document) -> Result<String> {
        new::text(args, base, self.recipe)
    }
}

/// Rows of the embedding without the data, and whether they are exact: those that the recipe states
/// for a whole corpus, or those that its settings imply.
fn rows(recipe: &Recipe) -> (usize, bool) {
    let data = &recipe.data;
    let whole = data.corpus.is_some() && data.share.is_none();
    match (recipe.recipe.vocabulary_rows.filter(|_| whole), &data.tokenizer) {
        (Some(rows), _) => (rows as usize, true),
        (None, LabelledTokenizerSpec::Keras { words, bigrams: false }) => (*words as usize, true),
        (None, LabelledTokenizerSpec::LanguageModel { words, .. }) => (*words as usize, false),
        (None, _) => (ASSUMED_ROWS, false),
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{ListedTask, Selection};

    use super::*;

    #[test]
    fn a_recipe_fits_if_its_last_layer_has_the_outputs_of_the_loss() {
        let resolved = Document::load("imdb-fasttext-keras").unwrap().resolve(&Selection::default()).unwrap();
        let sound = zoo_recipes::TextClassification::of(&resolved.recipe).unwrap().clone();
        let fits = |change: fn(&mut Recipe)| {
            let mut recipe = sound.clone();
            change(&mut recipe);
            TextClassification { recipe: &recipe }.fits()
        };
        assert!(fits(|_| ()));
        assert!(!fits(|recipe| recipe.data.classes = 3));
        assert!(!fits(|recipe| recipe.data.classes = 1));
        assert!(!fits(
            |recipe| recipe.loss = zoo_recipes::tasks::text_classification::TextLossSpec::CrossEntropy {}
        ));
        assert!(!fits(|recipe| recipe.model.layer.clear()));
    }
}
