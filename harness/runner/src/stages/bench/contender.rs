//! A timed arm, and the evaluation of its measurements.

use burn::tensor::Device;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_models::Cost;
use zoo_models::ops::probe;
use zoo_models::precision::Compute;
use zoo_recipes::{DataStatus, OptimizerSpec, Recipe, Resolved};
use zoo_training::parts::PartSeconds;
use zoo_training::timing::{Lap, Timed};

use super::ceilings;
use super::speeds::{ArmSpeed, Roofline, Split, Spread};
use crate::context::Context;
use crate::error::Result;
use crate::run::data::Sets;
use crate::run::ready::Ready;
use crate::run::timed_arm::{Count, Making, Measurable};
use crate::stages::Request;
use crate::task::shape::Shape;
use crate::tasks;

/// Source of batches.
pub enum Data {
    /// The recipe's data.
    Real(Box<dyn Ready>),
    /// Generated examples with the lengths of the recipe's data.
    Generated,
    /// Full batches of one shape.
    Shaped(Shape),
}

impl Data {
    /// Full batches of a shape, else the recipe's data if it is available, else generated data.
    pub fn chosen(ctx: &Context, arm: &Resolved, shape: Option<Shape>) -> Result<Self> {
        match shape {
            Some(shape) => Ok(Self::Shaped(shape)),
            None => Self::of(ctx, arm),
        }
    }

    /// The recipe's data if it is available, else generated data.
    fn of(ctx: &Context, arm: &Resolved) -> Result<Self> {
        let missing = match arm.recipe.data().corpus_to_fetch() {
            Some(name) => {
                let missing = CorpusDefinition::find(name)?.bytes_to_download(&ctx.data_home());
                missing.known > 0 || missing.unknown > 0
            }
            None => arm.recipe.recipe.status == DataStatus::Private,
        };
        // What a run of another recipe keeps may be a part of the data, and is not looked for here.
        if arm.recipe.train.transfer.is_some() && ctx.source.is_none() {
            ctx.progress.note(
                "the vocabulary comes from another recipe's run: timing generated batches of the published shape",
            );
            return Ok(Self::Generated);
        }
        if missing {
            ctx.progress
                .note("the data is not there (`zoo fetch`): batches of the published shape are generated");
            return Ok(Self::Generated);
        }
        let data = tasks::of(&arm.recipe).prepare(ctx, &arm.folder, Sets::All)?;
        Ok(Self::Real(data))
    }

    /// Name of the source in the results.
    pub fn name(&self) -> String {
        match self {
            Self::Real(_) => "real".into(),
            Self::Generated => "generated".into(),
            Self::Shaped(shape) => shape.to_string(),
        }
    }

    /// Prepares the arm of a recipe on the batches of its first updates.
    pub fn arm(&self, ctx: &Context, recipe: &Recipe, making: Making<'_>) -> Result<Measurable> {
        match self {
            Self::Real(data) => data.timed(ctx, recipe, making),
            Self::Generated => tasks::of(recipe).made_up(ctx, None, making),
            Self::Shaped(shape) => tasks::of(recipe).made_up(ctx, Some(*shape), making),
        }
    }
}

/// An arm during its timing.
pub struct Contender {
    pub timed: Box<dyn Timed>,
    /// Measured blocks.
    pub laps: Vec<Lap>,
    arm: Arm,
}

/// Properties of an arm that are known before its timing.
struct Arm {
    name: String,
    compute: Compute,
    /// Width of most matrix products.
    width: usize,
    cost: Cost,
    vocabulary: usize,
    /// Minimum bytes that the optimizer must move per parameter.
    moved: Option<u64>,
    /// Amounts of both sides of the updates. `counted` is their total in the unit of speed
    /// measurements.
    amounts: (u64, u64),
    counted: u64,
    /// Time to make the batches of an update, in seconds.
    data: Option<f64>,
}

impl Contender {
    /// Prepares the arm for timing.
    pub fn new(ctx: &Context, request: &Request, resolved: &Resolved, data: &Data) -> Result<Self> {
        let (recipe, name) = (&resolved.recipe, resolved.arm.clone().unwrap_or_default());
        ctx.progress.stage(&format!("time {} {name}", request.document.name()));
        let seed = request.seeds.first().copied().unwrap_or(recipe.train.seed);
        let making = Making { initial: request.initial_of(recipe), seed, count: Count::Usual };
        let made = data.arm(ctx, recipe, making)?;
        let arm = Arm {
            name,
            compute: Compute::of(&recipe.precision),
            width: tasks::of(recipe).width(),
            cost: made.cost,
            vocabulary: made.classes,
            moved: bytes_moved(recipe),
            amounts: made.amounts,
            counted: made.counted,
            data: made.data,
        };
        Ok(Self { timed: made.timed, laps: Vec::new(), arm })
    }

    pub fn name(&self) -> String {
        self.arm.name.clone()
    }

    /// Reports that the warm-up of the arm is done.
    pub fn is_warm(&self, ctx: &Context, seconds: f64) {
        ctx.progress.note(&format!("{}: warm, {seconds:.3} s an update", self.arm.name));
    }

    /// Times the parts of at most `most` further updates, and drops the model.
    pub fn end(mut self, most: u64) -> Result<Ended> {
        Ok(Ended { parts: self.timed.parts(most)?, laps: self.laps, arm: self.arm })
    }
}

/// Measurements of an arm.
pub struct Ended {
    arm: Arm,
    laps: Vec<Lap>,
    parts: PartSeconds,
}

impl Ended {
    /// All results of the arm, relative to the peak speeds of the device. `copy` is the peak
    /// bandwidth in bytes per second.
    pub fn speed(self, device: &Device, copy: f64) -> Result<ArmSpeed> {
        let Self { arm, laps, parts } = self;
        let product = ceilings::product(device, arm.compute)?;
        let (source, target) = arm.amounts;
        let of_token = arm.cost.training_operations(source, target) / arm.counted as f64;
        let of = |value: &dyn Fn(&Lap) -> f64| Spread::of(laps.iter().map(value));
        let sum = |value: fn(&Lap) -> u64| laps.iter().map(value).sum::<u64>();
        let seconds = of(&|lap| lap.seconds / lap.updates as f64);
        let flops = of(&|lap| of_token * lap.tokens as f64 / lap.seconds);
        let moved = arm.moved.map(|bytes| (bytes * arm.cost.parameters) as f64);
        Ok(ArmSpeed {
            arm: arm.name,
            compute: probe(device, arm.compute, arm.width).name().to_string(),
            parameters: arm.cost.parameters,
            vocabulary: arm.vocabulary,
            tokens_per_update: sum(|lap| lap.tokens) as f64 / sum(|lap| lap.updates) as f64,
            seconds_per_update: seconds,
            tokens_per_second: of(&|lap| lap.tokens as f64 / lap.seconds),
            flops,
            split: Split {
                data: arm.data,
                data_ahead: arm.data.map(|data| seconds.median / data),
                forward: parts.forward,
                backward: parts.backward,
                update: parts.update,
                rest: seconds.median - parts.sum(),
            },
            roofline: Roofline {
                product_flops: product,
                product_share: flops.median / product,
                copy_bytes: copy,
                update_share: moved.map(|bytes| bytes / parts.update / copy),
            },
            skipped: sum(|lap| lap.skipped),
            laps,
        })
    }
}

/// Minimum bytes per parameter that an update must move. The gradient is read for the norm and by
/// the update rule; weight and moments are read and written.
fn bytes_moved(recipe: &Recipe) -> Option<u64> {
    let moments = match recipe.train.optimizer {
        // Moves only the table rows that the batch uses, unless the tables are tied to the output
        // projection.
        OptimizerSpec::LazyAdam { .. } if tasks::of(recipe).has_sparse_tables() => {
            return None;
        }
        OptimizerSpec::Adam { .. } | OptimizerSpec::LazyAdam { .. } | OptimizerSpec::Adamw { .. } => 2,
        OptimizerSpec::Novograd { .. } | OptimizerSpec::Rmsprop { .. } | OptimizerSpec::Adagrad { .. } => 1,
        OptimizerSpec::Adadelta { .. } => 2,
        OptimizerSpec::Sgd { momentum, .. } => u64::from(momentum != 0.0),
    };
    Some(size_of::<f32>() as u64 * (2 + 2 * (1 + moments)))
}
