//! `zoo bench`: speed of a recipe's updates on this machine, on batches of the published shape.
//!
//! Arms alternate (A B B A), so that a machine that slows down does not look like a slow arm.
//! Nothing is recorded.

mod ceilings;
mod contender;
mod decoding;
mod kernels;
mod max_batch;
mod probe;
mod speeds;

use zoo_results::exit::Exit;
use zoo_training::timing::{round, warm_up_alone, warm_up_pair};

use self::contender::{Contender, Data};
use self::speeds::ArmSpeedUp;
use super::Request;
use super::timing::speed_ups as in_rounds;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::memory;
use crate::progress::Step;
use crate::task::shape::Shape;
use crate::tasks;

pub use self::decoding::{Decoding, DecodingOptions, decoding};
pub use self::kernels::{ArmKernels, Kernels, kernels};
pub use self::max_batch::{MaxBatch, MaxBatchOptions, max_batch};
pub use self::probe::{Bound, probe};
pub use self::speeds::{Bench, DataMargin, Spread};

/// Number of rounds of four blocks, two per arm.
const ROUNDS: u64 = 6;
/// Approximate duration of a block, in seconds. A block has at least one update.
const BLOCK_SECONDS: f64 = 1.0;

/// Arguments of `zoo bench`, in addition to recipe and arms.
#[derive(Debug, Clone, Copy, Default)]
pub struct BenchOptions {
    /// Minimum number of updates per arm; `None` chooses enough for a steady result.
    pub steps: Option<u64>,
    /// Shape of generated batches; `None` uses the recipe's batches.
    pub shape: Option<Shape>,
}

/// Measures the arms of a request.
pub fn bench(ctx: &Context, request: &Request, options: BenchOptions) -> Result<Bench> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let (first, others) = arms.split_first().ok_or_else(|| Failure::usage("no arm to time"))?;
    let data = Data::chosen(ctx, first, options.shape)?;
    let mut baseline = Contender::new(ctx, request, first, &data)?;
    let (mut ended, mut speed_ups) = (Vec::new(), Vec::new());
    let parts = options.steps.unwrap_or(u64::MAX);
    let blocks = |seconds: f64| match options.steps {
        Some(steps) => {
            let rounds = steps.div_ceil(2).clamp(1, ROUNDS);
            (rounds, steps.div_ceil(2 * rounds))
        }
        None => (ROUNDS, (BLOCK_SECONDS / seconds).ceil().clamp(1.0, 1000.0) as u64),
    };
    let done = |done, total| {
        ctx.progress.step(&Step { done, total: Some(total), loss: None, speed: None });
        stopped(ctx)
    };
    if others.is_empty() {
        let seconds = warm_up_alone(baseline.timed.as_mut())?;
        baseline.is_warm(ctx, seconds);
        let (rounds, updates) = blocks(seconds);
        for lap in 1..=2 * rounds {
            baseline.laps.push(baseline.timed.clean_lap(updates)?);
            done(lap, 2 * rounds)?;
        }
    }
    for other in others {
        let mut candidate = Contender::new(ctx, request, other, &data)?;
        let (of_baseline, of_candidate) = warm_up_pair(baseline.timed.as_mut(), candidate.timed.as_mut())?;
        baseline.is_warm(ctx, of_baseline);
        candidate.is_warm(ctx, of_candidate);
        let (rounds, updates) = blocks(of_baseline.min(of_candidate));
        let mut measured = Vec::new();
        for number in 1..=rounds {
            let round = round(baseline.timed.as_mut(), candidate.timed.as_mut(), updates)?;
            baseline.laps.extend([round.baseline_first, round.baseline_second]);
            candidate.laps.extend([round.candidate_first, round.candidate_second]);
            measured.push(round);
            done(number, rounds)?;
        }
        if rounds < 2 {
            ctx.progress.note("one round has no spread: a speed-up takes --steps 4");
        }
        let speed_up = in_rounds(&measured, |lap| lap.tokens);
        speed_ups.push(ArmSpeedUp { arm: candidate.name(), baseline: baseline.name(), speed_up });
        ended.push(candidate.end(parts)?);
    }
    ended.insert(0, baseline.end(parts)?);
    // The measurement of peak speeds allocates memory, so peak memory is read first.
    let peak_memory = memory::peak(ctx.device);
    let device = ctx.open_device()?;
    let copy = ceilings::copy(&device)?;
    let arms = ended.into_iter().map(|arm| arm.speed(&device, copy)).collect::<Result<Vec<_>>>()?;
    ctx.progress.end_stage();
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    Ok(Bench {
        recipe: request.document.name().to_string(),
        tier: request.tier.clone(),
        unit: tasks::of(&first.recipe).unit(),
        data: data.name(),
        hardware: environment.hardware(),
        environment,
        data_margin: DataMargin::of(&arms),
        arms,
        speed_ups,
        peak_memory,
    })
}

/// Fails after Ctrl-C. A benchmark stores nothing, so it cannot resume.
fn stopped(ctx: &Context) -> Result<()> {
    match ctx.stopped() {
        true => {
            Err(Failure::new(Exit::Interrupted, "interrupted")
                .hint("run the same command again to start over"))
        }
        false => Ok(()),
    }
}
