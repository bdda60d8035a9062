//! An arm that is being timed, and what its clock and its counts come to.

use burn::tensor::Device;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_models::models::Cost;
use zoo_models::precision::{Compute, probe};
use zoo_recipes::{DataStatus, OptimizerSpec, Recipe, Resolved, Tying};
use zoo_training::parts::PartSeconds;
use zoo_training::timing::{Lap, Timed};

use super::ceilings;
use super::shape::Shape;
use super::speeds::{ArmSpeed, Roofline, Split, Spread};
use crate::context::Context;
use crate::error::Result;
use crate::stages::Request;
use crate::stages::data::Sets;
use crate::stages::ready::Ready;
use crate::stages::timed_arm::{Count, Making, Measurable};
use crate::{size, tasks};

/// Where batches come from.
pub enum Data {
    /// The recipe's own.
    Real(Box<dyn Ready>),
    /// Data that is not there: examples of its lengths, made up.
    Generated,
    /// Full batches.
    Shaped(Shape),
}

impl Data {
    /// The recipe's data where it is there.
    pub fn of(ctx: &Context, arm: &Resolved) -> Result<Self> {
        let missing = match arm.recipe.data.corpus_to_fetch() {
            Some(name) => {
                let missing = CorpusDefinition::find(name)?.bytes_to_download(&ctx.data_home());
                missing.known > 0 || missing.unknown > 0
            }
            None => arm.recipe.recipe.status == DataStatus::Private,
        };
        if missing {
            ctx.progress
                .note("the data is not there (`zoo fetch`): batches of the published shape are generated");
            return Ok(Self::Generated);
        }
        let data = tasks::of(&arm.recipe).prepare(ctx, &arm.recipe, &arm.folder, Sets::All)?;
        Ok(Self::Real(data))
    }

    /// What the results call it.
    pub fn name(&self) -> String {
        match self {
            Self::Real(_) => "real".into(),
            Self::Generated => "generated".into(),
            Self::Shaped(shape) => shape.to_string(),
        }
    }

    /// The arm of a recipe on the batches of its first updates.
    pub fn arm(&self, ctx: &Context, recipe: &Recipe, making: Making<'_>) -> Result<Measurable> {
        match self {
            Self::Real(data) => data.timed(ctx, recipe, making),
            Self::Generated => tasks::of(recipe).made_up(ctx, recipe, None, making),
            Self::Shaped(shape) => tasks::of(recipe).made_up(ctx, recipe, Some(*shape), making),
        }
    }
}

/// A model on its way through the blocks.
pub struct Contender {
    /// What is timed.
    pub timed: Box<dyn Timed>,
    /// Its blocks.
    pub laps: Vec<Lap>,
    arm: Arm,
}

/// What is known of an arm before the clock runs.
struct Arm {
    name: String,
    compute: Compute,
    /// Of the model.
    width: usize,
    cost: Cost,
    vocabulary: usize,
    /// Bytes that the optimizer must move for each parameter.
    moved: Option<u64>,
    /// Amounts of both sides of the updates, and what their speed is counted in.
    amounts: (u64, u64),
    counted: u64,
    /// Seconds that it takes to make the batches of an update.
    data: Option<f64>,
}

impl Contender {
    /// The arm at its start.
    pub fn new(ctx: &Context, request: &Request, resolved: &Resolved, data: &Data) -> Result<Self> {
        let (recipe, name) = (&resolved.recipe, resolved.arm.clone().unwrap_or_default());
        ctx.progress.stage(&format!("time {} {name}", request.document.name()));
        let seed = request.seeds.first().copied().unwrap_or(recipe.train.seed);
        let making = Making { initial: request.initial.as_ref(), seed, count: Count::Usual };
        let made = data.arm(ctx, recipe, making)?;
        let arm = Arm {
            name,
            compute: Compute::of(&recipe.precision),
            width: size::width(recipe),
            cost: made.cost,
            vocabulary: made.classes,
            moved: bytes_moved(recipe),
            amounts: made.amounts,
            counted: made.counted,
            data: made.data,
        };
        Ok(Self { timed: made.timed, laps: Vec::new(), arm })
    }

    /// The arm's name.
    pub fn name(&self) -> String {
        self.arm.name.clone()
    }

    /// Says that the arm is ready for its blocks.
    pub fn is_warm(&self, ctx: &Context, seconds: f64) {
        ctx.progress.note(&format!("{}: warm, {seconds:.3} s an update", self.arm.name));
    }

    /// Makes at most so many more updates, for their parts, and lets the model go.
    pub fn end(mut self, most: u64) -> Result<Ended> {
        Ok(Ended { parts: self.timed.parts(most)?, laps: self.laps, arm: self.arm })
    }
}

/// What the clock has shown of an arm.
pub struct Ended {
    arm: Arm,
    laps: Vec<Lap>,
    parts: PartSeconds,
}

impl Ended {
    /// All numbers, beside the ceilings of the device, of which that of copies is given in bytes a second.
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

/// Bytes for each parameter that no update can do without: the gradient is read for the norm and by the rule; weight and moments
/// are read and written.
fn bytes_moved(recipe: &Recipe) -> Option<u64> {
    let moments = match recipe.train.optimizer {
        // Moves rows of the tables that the batch uses, unless every row is the output projection's too.
        OptimizerSpec::LazyAdam { .. }
            if recipe.model.embedding.as_ref().is_some_and(|tables| tables.tied != Tying::All) =>
        {
            return None;
        }
        OptimizerSpec::Adam { .. } | OptimizerSpec::LazyAdam { .. } => 2,
        OptimizerSpec::Novograd { .. } => 1,
        OptimizerSpec::Sgd { momentum, .. } => u64::from(momentum != 0.0),
    };
    Some(size_of::<f32>() as u64 * (2 + 2 * (1 + moments)))
}
