//! The tasks: each is a folder here and a line in [`TASKS`]. Everything else of the program asks a task through [`Task`] and, once its
//! data is prepared, through [`Ready`]; nothing outside of this folder names one.

#[cfg(test)]
mod guard;
pub mod recordings;
mod speech_recognition;
mod speech_synthesis;
mod translation;

use std::path::Path;

use burn::tensor::Device;
use zoo_models::models::Cost;
use zoo_models::precision::Compute;
use zoo_recipes::{DataSpec, DecodeSpec, Document, ModelSpec, Recipe, Resolved};
use zoo_training::align::Alignment;

use crate::cli::{InferArgs, NewArgs, SynthesizeArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::{Aligner, Found};
use crate::size::{ModelSize, Workload};
use crate::stages::bench::{Searching, Shape};
use crate::stages::data::Sets;
use crate::stages::infer::Inference;
use crate::stages::ready::Ready;
use crate::stages::timed_arm::{Making, Measurable};

/// All tasks.
static TASKS: [&dyn Task; 3] =
    [&translation::Translation, &speech_recognition::SpeechRecognition, &speech_synthesis::SpeechSynthesis];

/// The task of a recipe.
///
/// # Panics
/// If the recipe's task has no entry: the recipes' own list of tasks is closed, and a test compares the two.
pub fn of(recipe: &Recipe) -> &'static dyn Task {
    let name = recipe.recipe.task.as_str();
    TASKS.into_iter().find(|task| task.name() == name).expect("every task that a recipe may have is listed")
}

/// What the program asks a task about a recipe, before and beside its data.
pub trait Task: Sync {
    /// The word of `recipe.task`.
    fn name(&self) -> &'static str;

    // A recipe by itself.

    /// Whether encoder, decoder, loss and searches belong together.
    fn fits(&self, recipe: &Recipe) -> bool;

    /// Rows of the vocabulary, parameters and operations; `None` if nothing can be said of the rows without data.
    fn size(&self, recipe: &Recipe) -> Option<ModelSize>;

    /// Parameters and operations, with an assumed vocabulary if it is known only from the data.
    fn cost(&self, recipe: &Recipe) -> Cost;

    /// Width of most matrix products of a model.
    fn width(&self, model: &ModelSpec) -> usize;

    /// Lengths and numbers of examples.
    fn workload(&self, recipe: &Recipe) -> Workload;

    /// The shape that is closest to the recipe's batches.
    fn shape(&self, recipe: &Recipe) -> Shape;

    /// Training examples in the user's own files; `None` if the recipe names none.
    ///
    /// # Errors
    /// A file cannot be read.
    fn own_examples(&self, data: &DataSpec, base: &Path) -> Result<Option<usize>>;

    /// Path and SHA-256 of every file that the recipe itself names; for a manifest, with the state of the recordings in it.
    ///
    /// # Errors
    /// A file cannot be read.
    fn own_files(&self, data: &DataSpec, base: &Path) -> Result<Vec<(String, String)>>;

    /// The number of examples of generated data, in words.
    fn generated(&self, data: &DataSpec) -> Option<String>;

    /// Metric conventions to score an evaluation set with: those of its claims, else the task's usual one.
    fn signatures(&self, recipe: &Recipe, eval: &str, decode: &str) -> Vec<String>;

    /// Whether the model's outputs are frames of spectrograms, which some metrics count.
    fn writes_spectrograms(&self) -> bool {
        false
    }

    /// The human language of an evaluation set's references.
    fn target_language(&self, _recipe: &Recipe, _eval: Option<&str>) -> Option<String> {
        None
    }

    // Evidence.

    /// Whether a committed fixture has the same kinds of parts, and which.
    fn parity(&self, recipe: &Recipe) -> Found;

    /// Computes the fixtures with the same kinds of parts again.
    fn align(&self, recipe: &Recipe, aligner: &mut Aligner) -> Found;

    /// Compares the model with a file of weights, outputs, gradients and one update of another framework.
    ///
    /// # Errors
    /// The file is not of this recipe's model, or models of this task cannot be compared so.
    fn align_dump(
        &self,
        _recipe: &Recipe,
        _file: &Path,
        _device: &Device,
        _compute: Compute,
    ) -> Result<Alignment> {
        Err(Failure::usage(format!("zoo align does not compare models of {}", self.name()))
            .hint("`zoo verify RECIPE --to parity` computes the committed fixtures of this task"))
    }

    /// Parameters of the model: counted by arithmetic, and with what.
    ///
    /// # Errors
    /// The recipe has no vocabulary, in words.
    fn counted(&self, recipe: &Recipe) -> std::result::Result<(u64, String), String>;

    /// Learned parameters of a model that was built as [`Self::counted`] counts it.
    ///
    /// # Errors
    /// As [`Self::counted`].
    fn built(&self, recipe: &Recipe) -> std::result::Result<u64, String>;

    // Data.

    /// Fetches and prepares the data. `base` is the folder that the recipe's paths are relative to.
    ///
    /// # Errors
    /// The data cannot be had or is damaged.
    fn prepare(&self, ctx: &Context, recipe: &Recipe, base: &Path, sets: Sets<'_>) -> Result<Box<dyn Ready>>;

    /// The references of an evaluation set that the recipe has, as outputs are scored against them.
    ///
    /// # Errors
    /// The data cannot be had, or it is another version of the set.
    fn references(&self, ctx: &Context, resolved: &Resolved, eval: &str) -> Result<Vec<String>>;

    /// The lines that the model reads of an evaluation set; `None` if it does not read lines.
    ///
    /// # Errors
    /// The data cannot be had.
    fn sources(
        &self,
        _ctx: &Context,
        _recipe: &Recipe,
        _base: &Path,
        _eval: &str,
    ) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    // Speed without data.

    /// The arm on batches that are made up: full ones of a shape, or examples of usual lengths.
    ///
    /// # Errors
    /// The model cannot read this shape, or the device cannot be opened.
    fn made_up(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        shape: Option<Shape>,
        making: Making<'_>,
    ) -> Result<Measurable>;

    /// A model with fresh weights and a search, on sources of a shape.
    ///
    /// # Errors
    /// Searches of this task cannot be timed alone.
    fn searching(
        &self,
        recipe: &Recipe,
        seed: u64,
        device: &Device,
        shape: Shape,
        search: &DecodeSpec,
    ) -> Result<Searching>;

    // Use.

    /// Name of the search that a user's own input is decoded with if none is given; `None`: that of the claims.
    fn own_search<'r>(&self, _recipe: &'r Recipe) -> Option<&'r String> {
        None
    }

    /// `zoo infer`.
    ///
    /// # Errors
    /// The input cannot be read, or is not what the model reads.
    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()>;

    /// `zoo synthesize`.
    ///
    /// # Errors
    /// The model writes no sound, or the text cannot be read.
    fn synthesize(&self, _inference: &Inference, _args: &SynthesizeArgs) -> Result<()> {
        Err(Failure::usage(format!("the run does not synthesize sound: its task is {}", self.name()))
            .hint("use zoo infer for this run"))
    }

    /// The text of a recipe for the user's own data, as `zoo new` writes it.
    ///
    /// # Errors
    /// The files cannot be read, or `zoo new` does not write recipes of this task.
    fn new_recipe(&self, _args: &NewArgs, base: &Document, _of_base: &Recipe) -> Result<String> {
        Err(Failure::usage(format!(
            "{} is a {} recipe; `zoo new` does not write recipes of this task",
            base.name(),
            self.name()
        ))
        .hint("docs/ has an example recipe for own data of each task"))
    }
}
