//! `zoo bench --kernels`: launches and time of the kernels of one update on a GPU.

use serde::Serialize;
use zoo_models::ops::{Launched, probe, time_launches};
use zoo_models::precision::Compute;
use zoo_recipes::Resolved;
use zoo_results::exit::Exit;
use zoo_training::timing::warm_up_alone;

use super::contender::{Contender, Data};
use super::stopped;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::stages::Request;
use crate::task::shape::Shape;
use crate::tasks;

/// Maximum number of observed updates, of which those that were skipped for overflow are dropped.
const TRIES: u32 = 4;

/// Kernels of one update of every arm.
#[derive(Debug, Clone, Serialize)]
pub struct Kernels {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Unit of the amount of an update.
    pub unit: &'static str,
    /// Source of the batches.
    pub data: String,
    /// Description of the machine.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// Arms in the order of the request.
    pub arms: Vec<ArmKernels>,
}

/// Kernels of one update of one arm.
#[derive(Debug, Clone, Serialize)]
pub struct ArmKernels {
    pub arm: String,
    /// Precision of matrix products.
    pub compute: String,
    /// Tokens, frames, pictures or texts of the update.
    pub tokens: u64,
    /// Duration of the same update when its kernels are not timed, in seconds.
    pub seconds: f64,
    /// Kinds of kernels, those that took longest first.
    pub kernels: Vec<Kernel>,
}

/// All launches of one kind of kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kernel {
    pub kernel: String,
    pub launches: usize,
    /// Time on the device in seconds; `None` if the device did not measure every launch.
    pub seconds: Option<f64>,
}

/// Times the kernels of the first update of every arm of a request.
///
/// # Errors
/// [`Exit::Device`] on a CPU, which launches no kernels.
pub fn kernels(ctx: &Context, request: &Request, shape: Option<Shape>) -> Result<Kernels> {
    if ctx.device.is_cpu() {
        return Err(Failure::new(Exit::Device, "--kernels needs a GPU: a CPU launches no kernels")
            .hint("pass --device cuda:0 or --device wgpu to a build that supports it"));
    }
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let first = arms.first().ok_or_else(|| Failure::usage("no arm to time"))?;
    let data = Data::chosen(ctx, first, shape)?;
    let measured = arms.iter().map(|arm| ArmKernels::of(ctx, request, arm, &data)).collect::<Result<_>>()?;
    ctx.progress.end_stage();
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    Ok(Kernels {
        recipe: request.document.name().to_string(),
        tier: request.tier.clone(),
        unit: tasks::of(&first.recipe).unit(),
        data: data.name(),
        hardware: environment.hardware(),
        environment,
        arms: measured,
    })
}

impl ArmKernels {
    fn of(ctx: &Context, request: &Request, resolved: &Resolved, data: &Data) -> Result<Self> {
        let mut contender = Contender::new(ctx, request, resolved, data)?;
        let arm = contender.name();
        let timed = contender.timed.as_mut();
        // One update, so that all of its kernels are compiled and the loss scale fits.
        timed.rewind(1);
        warm_up_alone(timed)?;
        let usual = timed.clean_lap(1)?;
        let mut tries = 0;
        let launched = loop {
            stopped(ctx)?;
            let (lap, launched) = time_launches(|| timed.lap(1));
            tries += 1;
            match lap?.skipped {
                0 => break launched,
                _ if tries == TRIES => {
                    return Err(Failure::new(
                        Exit::Internal,
                        format!("{arm}: {TRIES} updates were skipped for overflow"),
                    )
                    .hint("set a smaller precision.loss_scaling.scale_init"));
                }
                _ => {}
            }
        };
        let recipe = &resolved.recipe;
        let compute = probe(&ctx.open_device()?, Compute::of(&recipe.precision), tasks::of(recipe).width());
        let kernels = launched.into_iter().map(|Launched { kernel, launches, seconds }| Kernel {
            kernel,
            launches,
            seconds,
        });
        Ok(Self {
            arm,
            compute: compute.name().to_string(),
            tokens: usual.tokens,
            seconds: usual.seconds,
            kernels: kernels.collect(),
        })
    }

    /// Number of launches.
    pub fn launches(&self) -> usize {
        self.kernels.iter().map(|kernel| kernel.launches).sum()
    }

    /// Time of all kernels on the device in seconds; `None` if a launch was not measured.
    pub fn device_seconds(&self) -> Option<f64> {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }
}
