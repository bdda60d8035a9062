//! Interface between the stages and the data of a task.
//!
//! A task writes [`Material`] and [`TaskData`], in its own types. The stages see
//! [`Ready`](super::ready::Ready), which has none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use burn::module::Module;
use burn::tensor::Device;
use zoo_models::Cost;
use zoo_models::ops::Islands;
use zoo_models::precision::Compute;
use zoo_models::{Objective, Running};
use zoo_recipes::{Common, ListedTask, Recipe, RecipeOf, TrainSpec};
use zoo_results::metrics::Scorer;
use zoo_results::report::page::SplitCounts;
use zoo_training::batches::{BatchSource, Fetched};
use zoo_training::error::OtherError;
use zoo_training::scaling::LossScaler;
use zoo_training::update::Phase;

use super::folder::Run;
use super::sweep::{Swept, SweptWeights};
use crate::context::Context;
use crate::error::{Failure, Result};

/// Training material, from prepared or generated data.
pub trait Material {
    /// Task of the recipes that it is for.
    type Task: ListedTask;
    /// The trained model.
    type Model: Module + 'static;
    /// One batch of an update.
    type Batch: 'static;

    /// Unit of speed measurements.
    const UNIT: &'static str;

    /// Model with fresh parameters, which are a function of the seed.
    fn model(&self, recipe: &RecipeOf<Self::Task>, seed: u64, device: &Device) -> Self::Model;

    /// The training objective.
    fn aim(&self, recipe: &RecipeOf<Self::Task>) -> Aim<Self::Model, Self::Batch>;

    /// The training batches of a recipe.
    ///
    /// # Errors
    /// The batching cannot form a batch from the examples.
    fn source(&self, recipe: &RecipeOf<Self::Task>, seed: u64) -> Result<Box<dyn Source<Self::Batch>>>;

    /// Parameters and operations of the model.
    fn cost(&self, recipe: &RecipeOf<Self::Task>) -> Cost;

    /// Number of output classes.
    fn classes(&self, recipe: &RecipeOf<Self::Task>) -> usize;

    /// Amounts of the two sides of a batch without padding: tokens, frames or labels.
    fn amounts(batch: &Self::Batch) -> (u64, u64);

    /// Number of examples of a batch.
    fn examples(batch: &Self::Batch) -> u64;
}

/// An objective, with the running statistics that it updates.
pub struct Aim<M, B> {
    /// The minimised function.
    pub objective: Box<dyn Objective<M, B> + Send>,
    /// Running statistics to commit after an update that was not skipped.
    pub running: Option<Box<dyn Running<M>>>,
}

/// Examples that could not be used: name and reason.
pub type LeftOut = Arc<Mutex<BTreeMap<String, String>>>;

/// A source of training batches.
pub trait Source<B>: BatchSource<B> {
    /// Fraction of padding in the first epoch's batches.
    fn padding(&self) -> f64;

    /// Examples that could not be used, by name. The map grows while batches are made.
    fn left_out(&self) -> LeftOut {
        LeftOut::default()
    }

    /// The batches of the first epoch, made in the calling thread.
    fn made_here(&self) -> MadeHere<'_, B>;
}

/// Iterator of [`Source::made_here`].
pub type MadeHere<'a, B> =
    Box<dyn ExactSizeIterator<Item = std::result::Result<Fetched<B>, OtherError>> + 'a>;

/// Iterator over the batches of an evaluation set.
pub type EvaluationBatches<'a, B> = Box<dyn Iterator<Item = std::result::Result<B, OtherError>> + 'a>;

/// The evaluation sets to prepare data for.
#[derive(Debug, Clone, Copy)]
pub enum Sets<'s> {
    /// Training data and all evaluation sets.
    All,
    /// The named evaluation sets, and all other data that their scores depend on.
    Evaluation(&'s [&'s str]),
}

/// Prepared data of a recipe.
pub trait TaskData: 'static {
    /// Task of the recipes that it is for.
    type Task: ListedTask;
    /// Training material of the task.
    type Material: Material<Task = Self::Task>;

    /// The training split.
    fn material(&self, recipe: &RecipeOf<Self::Task>) -> Result<Self::Material>;

    /// Writes what a user's own input needs of the data into a folder. A task whose recipes say it
    /// all writes nothing.
    ///
    /// # Errors
    /// A file cannot be written.
    fn keep(&self, _folder: &Path) -> Result<()> {
        Ok(())
    }

    /// Checks that the data is that which the run was trained on, if the training data numbers what
    /// is in all other data.
    ///
    /// # Errors
    /// The data changed since, or what the run keeps of it cannot be read.
    fn check(&self, _recipe: &RecipeOf<Self::Task>, _run: &Run) -> Result<()> {
        Ok(())
    }

    /// For each split, the SHA-256 of everything that training and decoding read from it.
    fn fingerprints(&self) -> BTreeMap<String, String>;

    /// For each split, the numbers of examples that were read, used and skipped.
    fn counts(&self) -> BTreeMap<String, SplitCounts>;

    /// Names of the training splits in [`Self::fingerprints`].
    fn training_splits(&self) -> Result<Vec<String>>;

    /// Names of the splits of an evaluation set in [`Self::fingerprints`].
    fn evaluation_splits(&self, recipe: &RecipeOf<Self::Task>, name: &str) -> Result<Vec<String>>;

    /// Batches of all examples of an evaluation set.
    fn evaluation(
        &self,
        recipe: &RecipeOf<Self::Task>,
        name: &str,
    ) -> Result<EvaluationBatches<'_, Batch<Self>>>;

    /// Decodes a pair of evaluation set and search. Returns the outputs with their references.
    fn decode(
        &self,
        ctx: &Context,
        recipe: &RecipeOf<Self::Task>,
        wanted: (&str, &str),
        model: &Model<Self>,
    ) -> Result<Decoded>;

    /// Decodes and scores an evaluation set with every pair of weights of a search's language
    /// model.
    ///
    /// # Errors
    /// The search has no language model, or the user interrupted the call.
    fn sweep(
        &self,
        _ctx: &Context,
        recipe: &RecipeOf<Self::Task>,
        _wanted: (&str, &str),
        _model: &Model<Self>,
        _weights: &SweptWeights,
        _scorer: Scorer,
    ) -> Result<Swept> {
        let task = &recipe.recipe.task;
        Err(Failure::usage(format!("this is a {task} run: its searches have no language model"))
            .hint("--sweep needs a run whose searches have one"))
    }
}

/// Model type of a task's data.
pub type Model<T> = <<T as TaskData>::Material as Material>::Model;
/// Batch type of a task's data.
pub type Batch<T> = <<T as TaskData>::Material as Material>::Batch;

/// Hypotheses and references, line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Outputs of the model.
    pub hypotheses: Vec<String>,
    /// Reference of each output.
    pub references: Vec<String>,
    /// Pictures and audio of some outputs.
    pub samples: Vec<KeptSample>,
}

/// Pictures and audio of one example.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptSample {
    /// Name of the example.
    pub title: String,
    /// Input text of the example.
    pub text: String,
    /// Scores by name.
    pub scores: serde_json::Map<String, serde_json::Value>,
    /// For each file: the ending of its name, a caption, and the content.
    pub files: Vec<(String, String, Kept)>,
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// Bytes to write unchanged.
    Bytes(Vec<u8>),
    /// Audio samples (1 is full scale) and their rate in Hz.
    Sound(Vec<f32>, u32),
}

/// The recipe as one of the task `T`.
///
/// # Errors
/// It is a recipe of another task.
pub fn typed<T: ListedTask>(recipe: &Recipe) -> Result<&RecipeOf<T>> {
    T::of(recipe).ok_or_else(|| {
        let (name, task) = (&recipe.recipe.name, recipe.recipe.task);
        Failure::usage(format!("the task of {name} is {task}; this data is for {}", T::TASK))
    })
}

/// Number of updates of the whole run, if it is known before the run begins. `batches` is the
/// number of batches of an epoch.
pub fn last_update(train: &TrainSpec, batches: u64) -> Option<u64> {
    // The remaining batches of an epoch form a smaller update.
    let of_epoch = batches.div_ceil(u64::from(train.batches_per_update.max(1)));
    let by_epochs = train.max_epochs.map(|epochs| epochs.saturating_mul(of_epoch));
    [train.max_updates, by_epochs].into_iter().flatten().min()
}

/// The training phase of a recipe. A schedule without an explicit end ends with the last update.
pub fn phase<M: Module, B>(recipe: &Common, aim: Aim<M, B>, last_update: Option<u64>) -> Result<Phase<M, B>> {
    let phase = Phase::single(
        aim.objective,
        &recipe.train.optimizer,
        &recipe.train.schedule,
        LossScaler::new(&recipe.precision.loss_scaling)?,
        last_update,
    )?;
    Ok(phase
        .averaged(recipe.train.loss_mean)
        .clipped(recipe.train.clip_norm)
        .grouped(&recipe.train.groups)
        .with_bias_lr(recipe.train.bias_lr)
        .adapted(recipe.train.larc.as_ref())
        .regularized(recipe.train.regularizer.as_ref())
        .with_weights(Compute::of_weights(&recipe.precision))
        .with_islands(Islands::of(&recipe.precision))
        .with_running(aim.running))
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, Selection};

    use super::*;

    #[test]
    fn the_last_update_is_the_first_end_that_is_known() {
        let document = Document::load("transformer-base").unwrap();
        let mut train = document.resolve(&Selection::default()).unwrap().recipe.train.clone();
        let mut ends = |updates, epochs, together| {
            (train.max_updates, train.max_epochs, train.batches_per_update) = (updates, epochs, together);
            last_update(&train, 10)
        };
        assert_eq!(ends(Some(7), None, 1), Some(7));
        assert_eq!(ends(None, Some(3), 1), Some(30));
        assert_eq!(ends(Some(31), Some(3), 1), Some(30));
        assert_eq!(ends(Some(29), Some(3), 1), Some(29));
        // Updates of four, four and two batches per epoch.
        assert_eq!(ends(None, Some(3), 4), Some(9));
        assert_eq!(ends(None, None, 1), None);
        assert_eq!(ends(None, Some(u64::MAX), 1), Some(u64::MAX));
    }
}
