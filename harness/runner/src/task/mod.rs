//! The contract between a task and the program: what the stages ask of a task, and the types that
//! the questions and answers have. Nothing here knows which tasks there are;
//! [`tasks::of`](crate::tasks::of) is the registry.

pub mod aligner;
pub mod fixtures;
pub mod inference;
pub mod searching;
pub mod shape;
pub mod size;

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use zoo_datasets::audio::Features;
use zoo_models::Cost;
use zoo_models::precision::Compute;
use zoo_recipes::Document;
use zoo_results::metrics::{OfTerm, Unit};
use zoo_training::align::Alignment;

use self::aligner::{Aligner, Found};
use self::inference::Inference;
use self::searching::Searching;
use self::shape::Shape;
use self::size::{ModelSize, Workload};
use crate::cli::{InferArgs, NewArgs, SynthesizeArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::data::Sets;
use crate::run::folder::Run;
use crate::run::ready::Ready;
use crate::run::timed_arm::{Making, Measurable};

/// Task-specific operations on a recipe that do not need its prepared data.
pub trait Task {
    /// Value of `recipe.task`.
    fn name(&self) -> &'static str;

    // A recipe by itself.

    /// Whether the parts of the recipe can be combined in this task: its model, data, loss and
    /// searches. Their types alone suffice for some tasks.
    fn fits(&self) -> bool {
        true
    }

    /// Vocabulary rows, parameters and operations of the model; `None` if the number of rows cannot
    /// be estimated without data.
    fn size(&self) -> Option<ModelSize>;

    /// Parameters and operations. Assumes a vocabulary size if only the data determines it.
    fn cost(&self) -> Cost;

    /// Width of most matrix products of the model.
    fn width(&self) -> usize;

    /// Lengths and numbers of examples.
    fn workload(&self) -> Workload;

    /// Unit of speed measurements: what the updates of a run are counted in.
    fn unit(&self) -> &'static str;

    /// The batch shape that is closest to the recipe's batches.
    fn shape(&self) -> Shape;

    /// Number of training examples in the user's own files; `None` if the recipe names no files.
    ///
    /// # Errors
    /// A file cannot be read.
    fn own_examples(&self, base: &Path) -> Result<Option<usize>>;

    /// Path and SHA-256 of every file that the recipe itself names. The hash of a manifest covers
    /// the state of the recordings in it.
    ///
    /// # Errors
    /// A file cannot be read.
    fn own_files(&self, base: &Path) -> Result<Vec<(String, String)>>;

    /// Description of the number of generated examples; `None` if the data is not generated.
    fn generated(&self) -> Option<String>;

    /// Metric conventions to score an evaluation set with: those of its claims, else the task's
    /// default.
    fn signatures(&self, eval: &str, decode: &str) -> Vec<String>;

    /// The unit of a training term's denominator; `None` if the task does not log the term, or if
    /// its denominator is not a unit.
    fn training_unit(&self, _of: OfTerm) -> Option<Unit> {
        None
    }

    /// Whether the model has tables of which a batch uses only some rows.
    fn has_sparse_tables(&self) -> bool {
        false
    }

    /// Whether the model outputs spectrogram frames, which some metrics count.
    fn writes_spectrograms(&self) -> bool {
        false
    }

    /// Language of an evaluation set's references; `None` if it does not apply.
    fn target_language(&self, _eval: Option<&str>) -> Option<String> {
        None
    }

    /// Features of a recording, as the model reads them. With `training`, those of a training
    /// example in its first epoch, with augmentation.
    ///
    /// # Errors
    /// The recording cannot be used, or the task does not read recordings.
    fn features(&self, _file: &Path, _training: bool) -> Result<Features> {
        Err(Failure::usage(format!("recipes of {} do not read recordings", self.name()))
            .hint("`zoo list` shows the task of each recipe"))
    }

    // Evidence.

    /// The committed fixture with the same kinds of parts, or a description of what has no fixture.
    fn parity(&self) -> Found;

    /// Recomputes the fixtures with the same kinds of parts.
    fn align(&self, aligner: &mut Aligner) -> Found;

    /// Compares the model with weights, outputs, gradients and one update from another framework.
    ///
    /// # Errors
    /// The file does not describe this recipe's model, or the task does not support the comparison.
    fn align_dump(&self, _file: &Path, _device: &Device, _compute: Compute) -> Result<Alignment> {
        Err(Failure::usage(format!("zoo align does not compare models of {}", self.name()))
            .hint("`zoo verify RECIPE --to parity` computes the committed fixtures of this task"))
    }

    /// Number of parameters by arithmetic, and a description of the vocabulary size that it is for.
    ///
    /// # Errors
    /// The recipe has no vocabulary; the error is a description.
    fn counted(&self) -> std::result::Result<(u64, String), String>;

    /// Number of learned parameters of a model that was built with the vocabulary of
    /// [`Self::counted`].
    ///
    /// # Errors
    /// As for [`Self::counted`].
    fn built(&self) -> std::result::Result<u64, String>;

    // Data.

    /// Fetches and prepares the data. `base` is the folder that the recipe's paths are relative to.
    ///
    /// # Errors
    /// The data cannot be obtained, or it is damaged.
    fn prepare(&self, ctx: &Context, base: &Path, sets: Sets<'_>) -> Result<Box<dyn Ready>>;

    /// Folder of the prepared data in the home, whether it exists or not; `None` if the task stores
    /// no prepared data.
    ///
    /// # Errors
    /// A file that the recipe names cannot be read.
    fn prepared_folder(&self, _ctx: &Context, _base: &Path) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// References of an evaluation set of the recipe, in the form that outputs are scored against.
    ///
    /// # Errors
    /// The data cannot be obtained, or it is another version of the set.
    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>>;

    /// Source lines of an evaluation set; `None` if the model does not read text lines.
    ///
    /// # Errors
    /// The data cannot be obtained.
    fn sources(&self, _ctx: &Context, _base: &Path, _eval: &str) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// As [`Self::sources`], from what is in the home.
    ///
    /// # Errors
    /// The data is not there.
    fn sources_at_hand(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Option<Vec<String>>> {
        let offline = Context { mirror: None, ..ctx.quiet_within(&ctx.home) };
        self.sources(&offline, base, eval)
    }

    // Speed without data.

    /// Prepares the arm to be timed on generated batches: full batches of `shape`, or examples of
    /// typical lengths if no shape is given.
    ///
    /// # Errors
    /// The model cannot read this shape, or the device cannot be opened.
    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable>;

    /// Builds a model with fresh weights and generated sources of `shape`, to time a search.
    ///
    /// # Errors
    /// The task does not support timing a search by itself.
    fn searching(&self, seed: u64, device: &Device, shape: Shape, search: &str) -> Result<Searching>;

    // Use.

    /// Name of the task on model hubs: Hugging Face's `pipeline_tag`.
    fn hub_name(&self) -> &'static str;

    /// Arguments of `zoo` that use a trained model, with `MODEL` in the place of its folder.
    fn example_use(&self) -> &'static str;

    /// Whether a user's own input needs something of the training data, which a run keeps. A task
    /// whose recipes say it all keeps nothing.
    fn keeps_vocabulary(&self) -> bool {
        true
    }

    /// Compares the vocabulary that a run keeps with its digests. A run by an earlier version may have
    /// kept less, which is not a fault.
    ///
    /// # Errors
    /// A file is missing or was changed.
    fn check_vocabulary(&self, _run: &Run) -> Result<()> {
        Ok(())
    }

    /// Loads what a user's own input needs: the model, its vocabulary and the search.
    ///
    /// # Errors
    /// Something is missing, damaged, or does not fit the recipe.
    fn open(&self, inference: &Inference) -> Result<()>;

    /// Name of the search to decode a user's own input with if none is given; `None` selects the
    /// search of the claims.
    fn own_search(&self) -> Option<&str> {
        None
    }

    /// Runs `zoo infer`.
    ///
    /// # Errors
    /// The input cannot be read, or the model cannot use it.
    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()>;

    /// Runs `zoo synthesize`.
    ///
    /// # Errors
    /// The model does not produce audio, or the text cannot be read.
    fn synthesize(&self, _inference: &Inference, _args: &SynthesizeArgs) -> Result<()> {
        Err(Failure::usage(format!("the run does not synthesize sound: its task is {}", self.name()))
            .hint("use zoo infer for this run"))
    }

    /// Text of a recipe for the user's own data, as `zoo new` writes it.
    ///
    /// # Errors
    /// The files cannot be read, or `zoo new` does not support this task.
    fn new_recipe(&self, _args: &NewArgs, base: &Document) -> Result<String> {
        Err(Failure::usage(format!(
            "the task of {} is {}; `zoo new` does not write recipes of this task",
            base.name(),
            self.name()
        ))
        .hint("docs/ has an example recipe for own data of each task"))
    }
}
