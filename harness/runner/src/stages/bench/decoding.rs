//! `zoo bench --decode`: decoding speed of a search, in sentences per second.
//!
//! Weights are fresh and sources generated. All sources and outputs have the lengths of the shape,
//! so that other programs can be given the same work. Nothing is recorded.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value as Json;
use zoo_models::precision::Compute;
use zoo_recipes::{ComputeType, Resolved};

use super::speeds::Spread;
use super::{ROUNDS, stopped};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::stages::Request;
use crate::task::searching::Searching;
use crate::task::shape::Shape;
use crate::{memory, tasks};

/// Arguments of `zoo bench --decode`.
#[derive(Debug, Clone)]
pub struct DecodingOptions {
    /// Name of the search.
    pub search: String,
    /// Batch size, and source and output length in tokens (output length in frames for synthesis).
    pub shape: Option<Shape>,
    /// Number of batches per arm.
    pub batches: Option<u64>,
    /// Types to time every arm in; empty: the arm's own.
    pub computes: Vec<ComputeType>,
}

/// Decoding speeds of a search.
#[derive(Debug, Clone, Serialize)]
pub struct Decoding {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Name of the search.
    pub search: String,
    /// Settings of the search.
    pub spec: Json,
    /// `SENTENCESxTOKENS`.
    pub shape: String,
    /// Description of the machine.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// Arms in the order of the request.
    pub arms: Vec<ArmDecoding>,
    /// Peak memory of all arms together, in bytes.
    #[serde(rename = "peak_memory_bytes")]
    pub peak_memory: Option<u64>,
}

/// Decoding speed of one arm.
#[derive(Debug, Clone, Serialize)]
pub struct ArmDecoding {
    pub arm: String,
    /// Precision of matrix products.
    pub compute: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Vocabulary rows.
    pub vocabulary: usize,
    pub sentences_per_second: Spread,
    /// Tokens of the best hypotheses, or frames. Fewer than the shape has if random weights predict
    /// the end early.
    pub tokens: u64,
    /// Duration of each batch, in seconds.
    pub laps: Vec<f64>,
}

struct Contender {
    arm: String,
    searching: Searching,
    compute: Compute,
    laps: Vec<f64>,
    tokens: u64,
}

/// Decodes batches of every arm of a request in alternation.
pub fn decoding(ctx: &Context, request: &Request, options: &DecodingOptions) -> Result<Decoding> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let first = &arms.first().ok_or_else(|| Failure::usage("no arm to time"))?.recipe;
    if !first.has_search(&options.search) {
        return Err(Failure::usage(format!("the recipe has no search `{}`", options.search))
            .hint(format!("it has {}", first.searches().join(", "))));
    }
    let shape = options.shape.unwrap_or_else(|| tasks::of(first).shape());
    let rounds = options.batches.unwrap_or(ROUNDS);
    let mut contenders = Vec::new();
    for resolved in &arms {
        let own = [resolved.recipe.precision.compute];
        let computes = if options.computes.is_empty() { &own } else { options.computes.as_slice() };
        for compute in computes {
            contenders.push(Contender::new(ctx, request, resolved, *compute, (shape, &options.search))?);
        }
    }
    ctx.progress.stage(&format!("decode {} with {}", request.document.name(), options.search));
    for contender in &mut contenders {
        contender.lap(0)?;
        stopped(ctx)?;
    }
    for round in 0..rounds {
        // Alternates the order, so that a machine that slows down does not look like a slow arm.
        let order: Vec<usize> = match round % 2 {
            0 => (0..contenders.len()).collect(),
            _ => (0..contenders.len()).rev().collect(),
        };
        for at in order {
            let (seconds, tokens) = contenders[at].lap(round as usize + 1)?;
            contenders[at].laps.push(seconds);
            contenders[at].tokens += tokens;
            stopped(ctx)?;
        }
        ctx.progress.step(&Step { done: round + 1, total: Some(rounds), ..Step::default() });
    }
    ctx.progress.end_stage();
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let sentences = f64::from(shape.sentences);
    Ok(Decoding {
        recipe: request.document.name().to_string(),
        tier: request.tier.clone(),
        search: options.search.clone(),
        spec: contenders.first().map(|one| one.searching.spec.clone()).unwrap_or_default(),
        shape: shape.to_string(),
        hardware: environment.hardware(),
        environment,
        arms: contenders.into_iter().map(|contender| contender.end(sentences)).collect(),
        peak_memory: memory::peak(ctx.device),
    })
}

impl Contender {
    fn new(
        ctx: &Context,
        request: &Request,
        resolved: &Resolved,
        compute: ComputeType,
        (shape, search): (Shape, &str),
    ) -> Result<Self> {
        let recipe = &resolved.recipe.clone().computing(Some(compute));
        let seed = request.seeds.first().copied().unwrap_or(recipe.train.seed);
        let compute = Compute::of(&recipe.precision);
        let device = ctx.open_device_for(compute)?;
        let searching = tasks::of(recipe).searching(seed, &device, shape, search)?;
        let arm = resolved.arm.clone().unwrap_or_default();
        Ok(Self { arm, searching, compute, laps: Vec::new(), tokens: 0 })
    }

    /// Decodes one batch. Returns its duration in seconds and the number of output tokens.
    fn lap(&self, number: usize) -> Result<(f64, u64)> {
        let begun = Instant::now();
        let tokens = self.searching.batches.decode(number)?;
        Ok((begun.elapsed().as_secs_f64(), tokens))
    }

    fn end(self, sentences: f64) -> ArmDecoding {
        ArmDecoding {
            arm: self.arm,
            compute: self.compute.name().to_string(),
            parameters: self.searching.parameters,
            vocabulary: self.searching.vocabulary,
            sentences_per_second: Spread::of(self.laps.iter().map(|seconds| sentences / seconds)),
            tokens: self.tokens,
            laps: self.laps,
        }
    }
}
