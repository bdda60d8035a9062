//! An arm prepared for timing: a fresh model, and the batches of a few updates in memory.

use std::time::Instant;

use zoo_models::Cost;
use zoo_models::precision::Compute;
use zoo_recipes::RecipeOf;
use zoo_results::exit::Exit;
use zoo_training::batches::Fetched;
use zoo_training::timing::{Timed, TimedArm};

use super::data::{Material, phase};
use super::initial::InitialWeights;
use crate::context::Context;
use crate::error::{Failure, Result};

/// Maximum number of updates whose batches are kept in memory. A longer block cycles through them.
pub const KEPT_UPDATES: u64 = 16;
/// Number of updates kept if all batches are full.
const FULL_UPDATES: usize = 4;
/// Assumed number of updates of a timed run, for schedules that depend on it.
const LONG: u64 = 100_000;

/// Time limit for making batches, in seconds. Batches that take longer are also large.
const MAKING_SECONDS: f64 = 10.0;

/// The batches of one update.
pub type Update<B> = Vec<Fetched<B>>;

/// The batches of several updates.
pub struct Updates<B> {
    /// The updates in order.
    pub updates: Vec<Update<B>>,
    /// Median time in which one thread makes the batches of an update, in seconds; `None` if not
    /// measured.
    pub seconds: Option<f64>,
}

impl<B> Updates<B> {
    /// The first of an iterator of updates with full batches. All have one size, so a few are
    /// enough.
    pub fn full(updates: impl Iterator<Item = Update<B>>) -> Self {
        Self { updates: updates.take(FULL_UPDATES).collect(), seconds: None }
    }
}

/// An arm that can be timed, with its properties.
pub struct Measurable {
    pub timed: Box<dyn Timed>,
    /// Parameters and operations of the model.
    pub cost: Cost,
    /// Number of output classes.
    pub classes: usize,
    /// Amounts of both sides of the updates, without padding.
    pub amounts: (u64, u64),
    /// Total of the updates in the unit of speed measurements.
    pub counted: u64,
    /// Median time in which one thread makes the batches of an update, in seconds; `None` if not
    /// measured.
    pub data: Option<f64>,
}

/// Quantity that an arm's speed is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// The task's usual quantity.
    Usual,
    /// The target side of the batches only.
    TargetSide,
    Examples,
}

/// Options for preparing an arm.
#[derive(Clone, Copy)]
pub struct Making<'a> {
    /// Weights to start from instead of fresh ones.
    pub initial: Option<&'a InitialWeights>,
    /// Seed of weights and batches.
    pub seed: u64,
    /// Quantity that speed is counted in.
    pub count: Count,
}

/// Prepares the arm of a recipe to be timed on these batches.
pub fn of_updates<D: Material>(
    ctx: &Context,
    recipe: &RecipeOf<D::Task>,
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
        Some(initial) => initial.put_into(model, recipe.train.transfer.as_ref())?.0,
        None => model,
    };
    let compute = Compute::of(&recipe.precision);
    let phases = vec![phase(recipe, material.aim(recipe), Some(LONG))?];
    let timed = Box::new(TimedArm::new(model, phases, updates, compute, making.seed)?);
    let (cost, classes) = (material.cost(recipe), material.classes(recipe));
    Ok(Measurable { timed, cost, classes, amounts, counted, data: seconds })
}

/// The batches of the first updates of training.
pub fn first_updates<D: Material>(
    recipe: &RecipeOf<D::Task>,
    material: &D,
    seed: u64,
) -> Result<Updates<D::Batch>> {
    let source = material.source(recipe, seed)?;
    let mut batches = source.made_here();
    let (length, group) = (batches.len(), recipe.train.batches_per_update as usize);
    // The last update of an epoch may be smaller, so it is left out.
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
