//! What the stages need of the data of a task: what a model is trained on, and an evaluation of it.
//!
//! A task writes [`Material`] and [`TaskData`], in its own types. The stages see
//! [`Ready`](super::ready::Ready), which has none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use burn::module::Module;
use burn::tensor::Device;
use zoo_models::models::Cost;
use zoo_models::{Objective, Running};
use zoo_recipes::{EvalSetSpec, Recipe, TrainSpec};
use zoo_results::metrics::Scorer;
use zoo_results::report::page::SplitCounts;
use zoo_training::batches::{BatchSource, Fetched};
use zoo_training::error::OtherError;
use zoo_training::scaling::LossScaler;
use zoo_training::update::Phase;

use super::sweep::{Swept, SweptWeights};
use crate::context::Context;
use crate::error::{Failure, Result};

/// What a model is trained on, prepared or made up.
pub trait Material {
    /// What is trained.
    type Model: Module + 'static;
    /// What an update is made of.
    type Batch: 'static;

    /// What speed is counted in.
    const UNIT: &'static str;

    /// Fresh parameters, a function of the seed.
    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> Self::Model;

    /// What is minimised.
    fn aim(&self, recipe: &Recipe) -> Aim<Self::Model, Self::Batch>;

    /// The training batches of a recipe.
    ///
    /// # Errors
    /// No batch can be made of the examples as they are.
    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<Self::Batch>>>;

    /// Parameters and operations of the model.
    fn cost(&self, recipe: &Recipe) -> Cost;

    /// Rows of the output.
    fn classes(&self) -> usize;

    /// Amounts of the two sides of a batch, without padding: tokens, frames, labels.
    fn amounts(batch: &Self::Batch) -> (u64, u64);

    /// Examples of a batch.
    fn examples(batch: &Self::Batch) -> u64;
}

/// An objective, and what it keeps of running statistics.
pub struct Aim<M, B> {
    /// What is minimised.
    pub objective: Box<dyn Objective<M, B> + Send>,
    /// Statistics to commit after a good update.
    pub running: Option<Box<dyn Running<M>>>,
}

/// Examples by name, and why they could not be used.
pub type LeftOut = Arc<Mutex<BTreeMap<String, String>>>;

/// Training batches.
pub trait Source<B>: BatchSource<B> {
    /// Share of padding in the first epoch's batches.
    fn padding(&self) -> f64;

    /// Examples that could not be used, by name, as far as batches were made of them; they fill up while batches are made.
    fn left_out(&self) -> LeftOut {
        LeftOut::default()
    }

    /// The batches of the first epoch, made by the thread that asks for them.
    fn made_here(&self) -> MadeHere<'_, B>;
}

/// See [`Source::made_here`].
pub type MadeHere<'a, B> =
    Box<dyn ExactSizeIterator<Item = std::result::Result<Fetched<B>, OtherError>> + 'a>;

/// Batches of an evaluation set.
pub type EvaluationBatches<'a, B> = Box<dyn Iterator<Item = std::result::Result<B, OtherError>> + 'a>;

/// The evaluation sets that data is prepared for.
#[derive(Debug, Clone, Copy)]
pub enum Sets<'s> {
    /// Training data and all evaluation sets.
    All,
    /// Some evaluation sets, and what else of the data their scores depend on.
    Evaluation(&'s [&'s str]),
}

/// Prepared data of a recipe.
pub trait TaskData: 'static {
    /// What is trained on.
    type Material: Material;

    /// The training split.
    fn material(&self, recipe: &Recipe) -> Result<Self::Material>;

    /// For each split, the SHA-256 of what training and decoding see of it.
    fn fingerprints(&self) -> BTreeMap<String, String>;

    /// For each split, how many examples were read, are used, and are not.
    fn counts(&self) -> BTreeMap<String, SplitCounts>;

    /// Names of the training splits in [`Self::fingerprints`].
    fn training_splits(&self) -> Result<Vec<String>>;

    /// Names of the splits of an evaluation set there.
    fn evaluation_splits(&self, name: &str, set: &EvalSetSpec) -> Result<Vec<String>>;

    /// All examples of an evaluation set.
    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, Batch<Self>>>;

    /// The model's outputs on an evaluation set with a search of the recipe, and what they are scored against.
    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &Model<Self>,
    ) -> Result<Decoded>;

    /// Decodes and scores an evaluation set with every pair of weights of a search's language model.
    ///
    /// # Errors
    /// The search has no language model, or the call was interrupted.
    fn sweep(
        &self,
        _ctx: &Context,
        recipe: &Recipe,
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

/// The model of a task.
pub type Model<T> = <<T as TaskData>::Material as Material>::Model;
/// The batches of a task.
pub type Batch<T> = <<T as TaskData>::Material as Material>::Batch;

/// Hypotheses and references, line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// What the model wrote.
    pub hypotheses: Vec<String>,
    /// What they are scored against.
    pub references: Vec<String>,
    /// Pictures and sounds of some of them.
    pub samples: Vec<KeptSample>,
}

/// Pictures and sounds of an example.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptSample {
    /// Its name.
    pub title: String,
    /// The text that it is made from.
    pub text: String,
    /// Its scores by name.
    pub scores: serde_json::Map<String, serde_json::Value>,
    /// Ends of file names, what they are, and what is in them.
    pub files: Vec<(String, String, Kept)>,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// As it is.
    Bytes(Vec<u8>),
    /// Samples, 1 being full scale, so many a second.
    Sound(Vec<f32>, u32),
}

/// Updates of the whole run, where they are known before it begins; an epoch has so many batches.
pub fn last_update(train: &TrainSpec, batches: u64) -> Option<u64> {
    // What is left of an epoch makes a smaller update.
    let of_epoch = batches.div_ceil(u64::from(train.batches_per_update.max(1)));
    let by_epochs = train.max_epochs.map(|epochs| epochs.saturating_mul(of_epoch));
    [train.max_updates, by_epochs].into_iter().flatten().min()
}

/// The one phase of a recipe's updates; what its schedule leaves open ends with the last one.
pub fn phase<M: Module, B>(recipe: &Recipe, aim: Aim<M, B>, last_update: Option<u64>) -> Result<Phase<M, B>> {
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
        .adapted(recipe.train.larc.as_ref())
        .regularized(recipe.train.regularizer.as_ref())
        .with_running(aim.running))
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, Selection};

    use super::*;

    #[test]
    fn the_last_update_is_the_first_end_that_is_known() {
        let document = Document::load("transformer-base").unwrap();
        let mut train = document.resolve(&Selection::default()).unwrap().recipe.train;
        let mut ends = |updates, epochs, together| {
            (train.max_updates, train.max_epochs, train.batches_per_update) = (updates, epochs, together);
            last_update(&train, 10)
        };
        assert_eq!(ends(Some(7), None, 1), Some(7));
        assert_eq!(ends(None, Some(3), 1), Some(30));
        assert_eq!(ends(Some(31), Some(3), 1), Some(30));
        assert_eq!(ends(Some(29), Some(3), 1), Some(29));
        // Four batches, four, and the two that are left.
        assert_eq!(ends(None, Some(3), 4), Some(9));
        assert_eq!(ends(None, None, 1), None);
        assert_eq!(ends(None, Some(u64::MAX), 1), Some(u64::MAX));
    }
}
