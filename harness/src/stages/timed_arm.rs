//! An arm as a clock wants it: a fresh model, and the batches of a few updates in memory.

use std::sync::Arc;

use zoo_datasets::prepare::PreparedSplit;
use zoo_models::models::{PairBatch, Seq2Seq, Vocabularies};
use zoo_models::precision::Compute;
use zoo_recipes::Recipe;
use zoo_training::batches::{BatchSource, Fetched, Share};
use zoo_training::error::TrainError;
use zoo_training::timing::TimedArm;

use super::InitialWeights;
use super::batches::TrainingBatches;
use super::train::phase;
use crate::context::Context;
use crate::error::{Failure, Result};

/// Updates whose batches are kept in memory; a longer block goes through them again.
pub const KEPT_UPDATES: u64 = 16;

/// What an arm is trained on.
pub struct Material<'a> {
    /// A split for each target language.
    pub train: Vec<&'a Arc<PreparedSplit>>,
    /// Sizes and special ids.
    pub vocabularies: Vocabularies,
}

/// The batches of an update.
pub type Update = Vec<Fetched<PairBatch>>;

/// The arm of a recipe, trained on these batches.
pub fn timed_arm(
    ctx: &Context,
    recipe: &Recipe,
    vocabularies: &Vocabularies,
    updates: Vec<Update>,
    initial: Option<&InitialWeights>,
    seed: u64,
) -> Result<TimedArm<Seq2Seq, PairBatch>> {
    let device = ctx.open_device()?.autodiff();
    let model = Seq2Seq::new(&recipe.model, vocabularies, seed, &device);
    let model = match initial {
        Some(initial) => initial.put_into(model)?,
        None => model,
    };
    let compute = Compute::of(&recipe.precision, ctx.device.is_cpu());
    Ok(TimedArm::new(model, vec![phase(recipe)?], updates, compute, seed)?)
}

/// The batches of the first updates that training would see.
pub fn first_updates(recipe: &Recipe, material: &Material, seed: u64) -> Result<Vec<Update>> {
    let batching = &recipe.data.batching;
    let mut source = TrainingBatches::new(&material.train, batching, seed, &material.vocabularies)?;
    let failed = |source| Failure::from(TrainError::Batch { epoch: 0, batch: 0, source });
    let length = source.epoch_len(0).map_err(failed)?;
    let group = u64::from(recipe.train.batches_per_update);
    // The last update of an epoch may be a smaller one: it is no measure.
    let kept = (length / group).min(KEPT_UPDATES);
    let (group, kept) = if kept == 0 { (length, 1) } else { (group, kept) };
    let share = Share { rank: 0, world: 1, group };
    let mut batches = source.batches(0, 0, share).map_err(failed)?;
    let mut updates = Vec::new();
    for _ in 0..kept {
        let update = batches.by_ref().take(group as usize).collect::<std::result::Result<_, _>>();
        updates.push(update.map_err(failed)?);
    }
    Ok(updates)
}
