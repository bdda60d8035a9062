//! Image classification: pictures to scores of classes.

mod ask;
mod data;
mod decode;
mod generated;
mod material;
mod parity;
mod prepare;
mod samples;

use std::path::Path;

use burn::tensor::Device;
use zoo_models::Cost;
use zoo_models::tasks::image_classification::cost;
use zoo_recipes::RecipeOf;
use zoo_recipes::tasks::image_classification::{ClassifierLayerSpec, PictureReaderSpec, PictureSizeSpec};
use zoo_results::metrics::{OfTerm, Unit};

use self::data::PictureData;
use self::material::Pictures;
use crate::cli::InferArgs;
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

/// A recipe of this task.
pub type Recipe = RecipeOf<zoo_recipes::ImageClassification>;

/// The task of a recipe.
pub struct ImageClassification<'r> {
    /// The recipe.
    pub recipe: &'r Recipe,
}

impl Task for ImageClassification<'_> {
    fn name(&self) -> &'static str {
        "image-classification"
    }

    fn fits(&self) -> bool {
        let PictureSizeSpec { height, width, channels } = self.recipe.data.picture;
        let classes = u64::from(self.recipe.data.classes);
        let shapes = self.recipe.model.shapes([height, width, channels]);
        let outputs = shapes.ok().and_then(|shapes| shapes.last().map(|shape| shape.numbers()));
        classes > 1 && outputs == Some(classes)
    }

    fn size(&self) -> Option<ModelSize> {
        Some(ModelSize { rows: self.recipe.data.classes as usize, exact: true, cost: self.cost() })
    }

    fn cost(&self) -> Cost {
        let nothing = Cost { parameters: 0, source_token: 0, target_token: 0 };
        cost(&self.recipe.model, size(self.recipe)).unwrap_or(nothing)
    }

    fn width(&self) -> usize {
        let width = |layer: &ClassifierLayerSpec| match *layer {
            ClassifierLayerSpec::Convolution { channels, .. } => channels,
            ClassifierLayerSpec::Dense { units, .. } => units,
            _ => 1,
        };
        self.recipe.model.layer.iter().map(width).max().unwrap_or(1) as usize
    }

    fn workload(&self) -> Workload {
        let unit = self.recipe.data.batching.pictures;
        Workload {
            example: 1.0,
            batch: f64::from(unit),
            unit,
            sides: 1.0,
            examples: None,
            copies: 1,
            models: 1,
        }
    }

    fn unit(&self) -> &'static str {
        Pictures::UNIT
    }

    fn shape(&self) -> Shape {
        // A shape has at least two of each.
        let rows = self.recipe.data.picture.height.max(2);
        Shape { sentences: self.recipe.data.batching.pictures, tokens: rows }
    }

    fn own_examples(&self, base: &Path) -> Result<Option<usize>> {
        prepare::own_examples(&self.recipe.data, base)
    }

    fn own_files(&self, base: &Path) -> Result<Vec<(String, String)>> {
        prepare::own_files(&self.recipe.data, base)
    }

    fn generated(&self) -> Option<String> {
        let PictureReaderSpec::Stripes { train, test, .. } = self.recipe.data.reader else { return None };
        Some(format!("{train} training, {test} test pictures"))
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

    fn parity(&self) -> Found {
        parity::parity(&self.recipe.model)
    }

    fn align(&self, aligner: &mut Aligner) -> Found {
        parity::align(&self.recipe.model, aligner)
    }

    fn counted(&self) -> std::result::Result<(u64, String), String> {
        let cost = cost(&self.recipe.model, size(self.recipe)).map_err(|problem| problem.to_string())?;
        Ok((cost.parameters, format!("{} classes", self.recipe.data.classes)))
    }

    fn built(&self) -> std::result::Result<u64, String> {
        Ok(learned(&Pictures { prepared: None }.model(self.recipe, 0, &Device::flex())))
    }

    fn prepare(&self, ctx: &Context, base: &Path, sets: Sets<'_>) -> Result<Box<dyn Ready>> {
        Ok(Box::new(PictureData { prepared: prepare::prepare(ctx, &self.recipe.data, base, sets)? }))
    }

    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>> {
        let prepared = prepare::prepare(ctx, &self.recipe.data, base, Sets::Evaluation(&[eval]))?;
        let split = prepared.eval_set(eval, &self.recipe.data).map_err(prepare::failure)?;
        Ok(split.labels.iter().map(u32::to_string).collect())
    }

    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable> {
        let own = self.shape();
        let asked = shape.unwrap_or(own);
        if asked.tokens != own.tokens {
            let message =
                format!("--shape {asked}: a picture of {} has {} rows", self.recipe.recipe.name, own.tokens);
            return Err(Failure::usage(message).hint(format!("give pictures x rows, e.g. {own}")));
        }
        let pictures = asked.sentences;
        let updates = Updates::full(generated::full_batches(self.recipe, pictures));
        of_updates(ctx, self.recipe, &Pictures { prepared: None }, updates, making)
    }

    fn searching(&self, _: u64, _: &Device, _: Shape, _: &str) -> Result<Searching> {
        Err(Failure::usage("an image classifier has no searches to time")
            .hint("`zoo infer RUN PICTURE --format json` prints the time per picture"))
    }

    fn hub_name(&self) -> &'static str {
        "image-classification"
    }

    fn example_use(&self) -> &'static str {
        "infer MODEL picture.png"
    }

    fn check_vocabulary(&self, run: &Run) -> Result<()> {
        ask::check_vocabulary(self.recipe, run)
    }

    fn open(&self, inference: &Inference) -> Result<()> {
        ask::open(inference, self.recipe).map(drop)
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::classify(inference, self.recipe, args)
    }
}

/// Height, width and channels of a model's input.
fn size(recipe: &Recipe) -> [usize; 3] {
    let PictureSizeSpec { height, width, channels } = recipe.data.picture;
    [height, width, channels].map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, ListedTask, Selection};

    use super::*;

    #[test]
    fn classes_are_counted_without_pictures() {
        let resolved = Document::load("mnist-mlp-keras").unwrap().resolve(&Selection::default()).unwrap();
        let recipe = zoo_recipes::ImageClassification::of(&resolved.recipe).unwrap();
        assert_eq!(Pictures { prepared: None }.classes(recipe), 10);
    }

    #[test]
    fn a_recipe_fits_if_its_last_layer_has_a_unit_for_each_class() {
        let resolved = Document::load("mnist-mlp-keras").unwrap().resolve(&Selection::default()).unwrap();
        let sound = zoo_recipes::ImageClassification::of(&resolved.recipe).unwrap().clone();
        let fits = |change: fn(&mut Recipe)| {
            let mut recipe = sound.clone();
            change(&mut recipe);
            ImageClassification { recipe: &recipe }.fits()
        };
        assert!(fits(|_| ()));
        assert!(!fits(|recipe| recipe.data.classes = 11));
        assert!(!fits(|recipe| recipe.data.classes = 0));
        assert!(!fits(|recipe| recipe.data.picture.height = 0));
        assert!(!fits(|recipe| recipe.model.layer.clear()));
    }
}
