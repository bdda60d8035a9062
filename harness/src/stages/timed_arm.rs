//! An arm as a clock wants it: a fresh model, and the batches of a few updates in memory.

use std::time::Instant;

use zoo_models::models::Cost;
use zoo_models::precision::Compute;
use zoo_recipes::Recipe;
use zoo_results::exit::Exit;
use zoo_training::batches::Fetched;
use zoo_training::timing::{Timed, TimedArm};

use super::InitialWeights;
use super::data::{Material, phase};
use crate::context::Context;
use crate::error::{Failure, Result};

/// Updates whose batches are kept in memory; a longer block goes through them again.
pub const KEPT_UPDATES: u64 = 16;
/// Updates with full batches that are kept.
const FULL_UPDATES: usize = 4;
/// A run that is timed is the beginning of one of so many updates, where a rate depends on that.
const LONG: u64 = 100_000;

/// Seconds that making batches may take: what takes longer is large, too.
const MAKING_SECONDS: f64 = 10.0;

/// The batches of an update.
pub type Update<B> = Vec<Fetched<B>>;

/// The batches of some updates.
pub struct Updates<B> {
    /// In order.
    pub updates: Vec<Update<B>>,
    /// Seconds that one thread takes to make those of an update, median; `None` where nobody looked.
    pub seconds: Option<f64>,
}

impl<B> Updates<B> {
    /// The first of updates with full batches: they are all of one size, so a few of them will do.
    pub fn full(updates: impl Iterator<Item = Update<B>>) -> Self {
        Self { updates: updates.take(FULL_UPDATES).collect(), seconds: None }
    }
}

/// An arm that can be timed, and what is known of it before the clock runs.
pub struct Measurable {
    /// The arm.
    pub timed: Box<dyn Timed>,
    /// Parameters and operations of its model.
    pub cost: Cost,
    /// Rows of its output.
    pub classes: usize,
    /// Amounts of both sides of its updates, without padding.
    pub amounts: (u64, u64),
    /// What their speed is counted in, in the task's unit.
    pub counted: u64,
    /// Seconds that one thread takes to make the batches of an update, median; `None` where nobody looked.
    pub data: Option<f64>,
}

/// What the speed of an arm is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// As its task counts.
    Usual,
    /// The second side of its batches alone.
    TargetSide,
    /// Examples.
    Examples,
}

/// How an arm is made.
#[derive(Clone, Copy)]
pub struct Making<'a> {
    /// Weights to start from instead of fresh ones.
    pub initial: Option<&'a InitialWeights>,
    /// Seed of weights and batches.
    pub seed: u64,
    /// What is counted.
    pub count: Count,
}

/// The arm of a recipe on these batches.
pub fn of_updates<D: Material>(
    ctx: &Context,
    recipe: &Recipe,
    material: &D,
    Updates { mut updates, seconds }: Updates<D::Batch>,
    making: Making<'_>,
) -> Result<Measurable> {
    let amounts = updates.iter().flatten().fold((0, 0), |sum, fetched| {
        let (first, second) = D::amounts(&fetched.batch);
        (sum.0 + first, sum.1 + second)
    });
    for fetched in updates.iter_mut().flatten() {
        fetched.tokens = match making.count {
            Count::Usual => fetched.tokens,
            Count::TargetSide => D::amounts(&fetched.batch).1,
            Count::Examples => D::examples(&fetched.batch),
        };
    }
    let counted = updates.iter().flatten().map(|fetched| fetched.tokens).sum();
    let device = ctx.open_device()?.autodiff();
    let model = material.model(recipe, making.seed, &device);
    let model = match making.initial {
        Some(initial) => initial.put_into(model)?,
        None => model,
    };
    let compute = Compute::of(&recipe.precision);
    let phases = vec![phase(recipe, material.aim(recipe), Some(LONG))?];
    let timed = Box::new(TimedArm::new(model, phases, updates, compute, making.seed)?);
    let (cost, classes) = (material.cost(recipe), material.classes());
    Ok(Measurable { timed, cost, classes, amounts, counted, data: seconds })
}

/// The batches of the first updates that training would see.
pub fn first_updates<D: Material>(recipe: &Recipe, material: &D, seed: u64) -> Result<Updates<D::Batch>> {
    let source = material.source(recipe, seed)?;
    let mut batches = source.made_here();
    let (length, group) = (batches.len(), recipe.train.batches_per_update as usize);
    // The last update of an epoch may be a smaller one: it is no measure.
    let kept = (length / group).min(KEPT_UPDATES as usize);
    let (group, kept) = if kept == 0 { (length, 1) } else { (group, kept) };
    let (mut updates, mut seconds) = (Vec::new(), Vec::new());
    while updates.is_empty() || updates.len() < kept && seconds.iter().sum::<f64>() < MAKING_SECONDS {
        let start = Instant::now();
        let update: std::result::Result<Update<_>, _> = batches.by_ref().take(group).collect();
        updates.push(update.map_err(|error| Failure::new(Exit::Data, error.to_string()))?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(Updates { seconds: seconds.get(seconds.len() / 2).copied(), updates })
}
