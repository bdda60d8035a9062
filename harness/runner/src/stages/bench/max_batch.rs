//! `zoo bench --max-batch`: the largest batch of each arm that fits.

use std::process::Command;

use serde::Serialize;
use zoo_models::precision::Compute;
use zoo_recipes::Resolved;
use zoo_results::exit::Exit;

use super::probe::{Bound, Limits, Probed, watched};
use super::stopped;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::memory::{self, Bytes};
use crate::stages::{Request, own_process};
use crate::task::shape::Shape;
use crate::tasks;

/// Fraction of the available memory that a batch may use. The rest is left to other programs.
const SHARE: f64 = 0.9;
/// Bisection ends when the batch that fits and the one that does not differ by at most 1/16 of the
/// former.
const RESOLUTION: u32 = 16;

/// Arguments of the search, in addition to recipe and arms.
#[derive(Debug, Clone, Copy)]
pub struct MaxBatchOptions<'a> {
    /// The recipe as the user named it, for the processes that try batches.
    pub recipe: &'a str,
    /// Batch size to start from and length of sentences; `None` uses the recipe's batches.
    pub shape: Option<Shape>,
    /// Memory limit of a batch on the CPU; `None` uses most of the available memory.
    pub memory: Option<Bytes>,
    /// Time limit for trying one batch, in seconds.
    pub seconds: f64,
}

/// Result of the search.
#[derive(Debug, Clone, Serialize)]
pub struct MaxBatch {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Description of the hardware.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// Unit that updates are counted in: tokens, frames, pictures, texts.
    pub unit: &'static str,
    /// Memory limit of a process in bytes; `None` on a GPU, whose own memory is the limit.
    #[serde(rename = "memory_limit_bytes")]
    pub memory_limit: Option<u64>,
    /// Time limit for trying one batch, in seconds.
    pub seconds_limit: f64,
    /// Results by arm.
    pub arms: Vec<ArmMaxBatch>,
}

/// An arm's largest batch.
#[derive(Debug, Clone, Serialize)]
pub struct ArmMaxBatch {
    pub arm: String,
    /// Precision of matrix products: the measured one if anything was computed.
    pub compute: String,
    /// Length of an example: tokens of each side of a sentence, frames, or rows of a picture.
    pub sentence: u32,
    /// Examples of the largest batch that fits; `None` if a single example does not fit.
    pub sentences: Option<u32>,
    /// Examples of the smallest batch that was found not to fit.
    pub too_many: Option<u32>,
    /// Why the batch of `too_many` examples does not fit.
    pub bound: Bound,
    /// Measurements of the largest batch.
    pub largest: Option<Probed>,
}

/// Searches for each arm: doubles or halves from the start, then bisects. Tries each batch in a
/// separate process.
///
/// # Errors
/// The system does not report the memory of a process, or all batches of an arm failed for a reason
/// other than their size.
pub fn max_batch(ctx: &Context, request: &Request, options: MaxBatchOptions) -> Result<MaxBatch> {
    // Reports a missing device once instead of in every process.
    ctx.open_device()?;
    let limits = Limits { memory: memory_limit(ctx, options.memory)?, seconds: options.seconds };
    let arms = request.resolve_all()?;
    let first = arms.first().ok_or_else(|| Failure::usage("no arm to time"))?;
    let unit = tasks::of(&first.recipe).unit();
    let arms = arms.iter().map(|arm| of_arm(ctx, request, arm, options, limits)).collect::<Result<_>>()?;
    ctx.progress.end_stage();
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    Ok(MaxBatch {
        recipe: request.document.name().to_string(),
        tier: request.tier.clone(),
        hardware: environment.hardware(),
        environment,
        unit,
        memory_limit: limits.memory,
        seconds_limit: limits.seconds,
        arms,
    })
}

fn memory_limit(ctx: &Context, given: Option<Bytes>) -> Result<Option<u64>> {
    if !ctx.device.is_cpu() {
        return match given {
            None => Ok(None),
            Some(_) => Err(Failure::usage(format!("--memory does not apply to {}", ctx.device.settled()))
                .hint("leave it out: a GPU's own memory is the limit")),
        };
    }
    let available = memory::available().ok_or_else(|| {
        Failure::new(Exit::Device, "this system does not report available memory and the memory of a process")
            .hint("--max-batch needs Linux, or a GPU: --device cuda:0")
    })?;
    let most = (SHARE * available as f64) as u64;
    Ok(Some(given.map_or(most, |given| given.0.min(most))))
}

fn of_arm(
    ctx: &Context,
    request: &Request,
    arm: &Resolved,
    options: MaxBatchOptions,
    limits: Limits,
) -> Result<ArmMaxBatch> {
    let ctx = &ctx.for_arms(std::slice::from_ref(arm))?;
    let name = arm.arm.clone().unwrap_or_default();
    ctx.progress.stage(&format!("largest batch of {} {name}", request.document.name()));
    let start = options.shape.unwrap_or_else(|| tasks::of(&arm.recipe).shape());
    let (mut largest, mut bound) = (None, Bound::Shape);
    let found = search(start.sentences, start.with(u32::MAX).sentences, |sentences| {
        let shape = start.with(sentences);
        let tried = watched(command(ctx, request, &name, options.recipe, shape)?, limits, || stopped(ctx))?;
        ctx.progress.note(&format!("{name} {shape}: {}", words(&tried, limits)));
        let fits = tried.is_ok();
        match tried {
            Ok(probed) => largest = Some(probed),
            Err(reason) => bound = reason,
        }
        Ok(fits)
    })?;
    match (&found.largest, bound) {
        (None, Bound::Failure(error)) => Err(Failure::new(Exit::Internal, error)
            .about(&format!("{name} {}", start.with(1)))
            .hint(format!("`zoo bench {} --arms {name}` may tell more", options.recipe))),
        (_, bound) => Ok(ArmMaxBatch {
            arm: name,
            compute: largest.as_ref().map_or_else(
                || ctx.compute_name(Compute::of(&arm.recipe.precision)).to_string(),
                |probed| probed.compute.clone(),
            ),
            sentence: start.tokens,
            sentences: found.largest,
            too_many: found.too_many,
            bound,
            largest,
        }),
    }
}

/// Command line of this program to try one batch.
fn command(ctx: &Context, request: &Request, arm: &str, recipe: &str, shape: Shape) -> Result<Command> {
    let shape = shape.to_string();
    let words = ["bench", recipe, "--arms", arm, "--shape", &shape, "--probe", "--quiet"];
    let mut command = own_process::command(ctx, request, words)?;
    command.args(["--threads", &ctx.threads.to_string()]);
    Ok(command)
}

fn words(tried: &std::result::Result<Probed, Bound>, limits: Limits) -> String {
    match tried {
        Ok(probed) => {
            let memory = probed.memory.map_or_else(String::new, |bytes| format!(", {}", Bytes(bytes)));
            format!("fits, {:.3} s an update{memory}", probed.seconds)
        }
        Err(Bound::Memory) => match limits.memory {
            Some(most) => format!("takes more than {}", Bytes(most)),
            None => "takes more memory than there is".to_owned(),
        },
        Err(Bound::Time) => format!("takes longer than {} s (--max-seconds)", limits.seconds),
        Err(Bound::Shape) => "is as large as a batch can be".to_owned(),
        Err(Bound::Failure(error)) => error.clone(),
    }
}

/// Result of a bisection.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    largest: Option<u32>,
    too_many: Option<u32>,
}

/// The largest number up to `most` that fits, to within a sixteenth of it. Doubles or halves from
/// `start`, then bisects.
fn search(start: u32, most: u32, mut fits: impl FnMut(u32) -> Result<bool>) -> Result<Found> {
    let mut found = Found { largest: None, too_many: None };
    let mut next = start.clamp(1, most);
    loop {
        match fits(next)? {
            true => found.largest = Some(next),
            false => found.too_many = Some(next),
        }
        next = match (found.largest, found.too_many) {
            (Some(low), None) if low == most => return Ok(found),
            (Some(low), None) => low.saturating_mul(2).min(most),
            (None, Some(1)) => return Ok(found),
            (None, Some(high)) => high / 2,
            (Some(low), Some(high)) if high - low <= (low / RESOLUTION).max(1) => return Ok(found),
            (Some(low), Some(high)) => low + (high - low) / 2,
            (None, None) => unreachable!("the last one fitted, or it did not"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result and tried numbers if at most `limit` sentences fit.
    fn tried(start: u32, most: u32, limit: u32) -> (Found, Vec<u32>) {
        let mut tried = Vec::new();
        let found = search(start, most, |sentences| {
            tried.push(sentences);
            Ok(sentences <= limit)
        });
        (found.unwrap(), tried)
    }

    #[test]
    fn it_doubles_and_then_bisects() {
        let (found, tried) = tried(64, 1 << 20, 300);
        assert_eq!(tried, [64, 128, 256, 512, 384, 320, 288, 304]);
        assert_eq!(found, Found { largest: Some(288), too_many: Some(304) });
    }

    #[test]
    fn it_halves_where_the_start_is_too_large() {
        let (found, tried) = tried(64, 1 << 20, 5);
        assert_eq!(tried, [64, 32, 16, 8, 4, 6, 5]);
        assert_eq!(found, Found { largest: Some(5), too_many: Some(6) });
    }

    #[test]
    fn it_ends_at_nothing_and_at_everything() {
        assert_eq!(tried(4, 100, 0).0, Found { largest: None, too_many: Some(1) });
        assert_eq!(tried(4, 100, 1000).0, Found { largest: Some(100), too_many: None });
        assert_eq!(tried(400, 100, 100).0, Found { largest: Some(100), too_many: None });
    }

    #[test]
    fn what_is_found_is_within_a_sixteenth() {
        for limit in 1..2000 {
            let (found, tried) = tried(37, 1 << 24, limit);
            let (low, high) = (found.largest.unwrap(), found.too_many.unwrap());
            assert!(low <= limit && limit < high && high - low <= (low / 16).max(1), "{limit}: {found:?}");
            assert!(tried.len() < 20, "{limit}: {tried:?}");
        }
    }
}
