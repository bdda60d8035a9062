//! Times one arm against another where a claim is on their speeds.
//!
//! The weights are fresh: what an update costs does not depend on them. A timing is kept beside the runs, and made again where
//! recipe, machine or number of threads differ.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::{BatchingSpec, ClaimKind, ClaimSpec, RatioProtocol, Recipe, Resolved};
use zoo_results::statistics::{AbbaBlock, speed_up};
use zoo_results::verdict::{Interval, SpeedEvidence};
use zoo_training::timing::{Lap, Round, round};

use super::Request;
use super::prepare::{prepare, vocabularies};
use super::run::{Run, read_json, write_json};
use super::timed_arm::{Material, first_updates, timed_arm};
use crate::context::Context;
use crate::environment::{Environment, hex};
use crate::error::Result;
use crate::progress::Step;

/// Rounds of four blocks each.
const ROUNDS: u64 = 6;
/// A block lasts about so many seconds, as long as an update at least.
const BLOCK_SECONDS: f64 = 0.5;

/// A timing of one arm against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The arm.
    pub arm: String,
    /// The arm that is 1.0.
    pub baseline: String,
    /// What was held equal.
    pub protocol: RatioProtocol,
    /// Batch of an update of the arm, in the recipe's unit.
    pub batch: u64,
    /// That of the baseline.
    pub baseline_batch: u64,
    /// Where it was timed.
    pub environment: Environment,
    /// All blocks.
    pub rounds: Vec<Round>,
}

impl Timing {
    /// What a claim on this pair of arms is judged on; `None` if it is on another, or the clock stood still.
    pub fn evidence(&self, claim: &ClaimSpec) -> Option<SpeedEvidence> {
        if Pair::of(claim)? != self.pair() {
            return None;
        }
        // Arms with batches of their own make other numbers of tokens in an update.
        let work = |lap: &Lap| match claim.metric.as_str() {
            "updates-per-second" => lap.updates,
            _ => lap.tokens,
        };
        let cost = |lap: &Lap| lap.seconds / work(lap) as f64;
        let block = |round: &Round| AbbaBlock {
            baseline_first: cost(&round.baseline_first),
            candidate_first: cost(&round.candidate_first),
            candidate_second: cost(&round.candidate_second),
            baseline_second: cost(&round.baseline_second),
        };
        let found = speed_up(&self.rounds.iter().map(block).collect::<Vec<_>>())?;
        Some(SpeedEvidence {
            ratio: found.ratio,
            interval: Interval { low: found.low, high: found.high, level: found.level },
            protocol: self.protocol,
            batch: self.batch,
            baseline_batch: self.baseline_batch,
        })
    }

    /// A line for the record.
    pub fn note(&self) -> String {
        let laps = self.rounds.iter().flat_map(|round| {
            [round.baseline_first, round.candidate_first, round.candidate_second, round.baseline_second]
        });
        let skipped: u64 = laps.map(|lap| lap.skipped).sum();
        let updates = self.rounds.first().map_or(0, |round| round.baseline_first.updates);
        format!(
            "{} against {} at {}: {} rounds of 4 blocks of {updates} updates, {skipped} skipped for overflow",
            self.arm,
            self.baseline,
            protocol_name(self.protocol),
            self.rounds.len()
        )
    }

    fn pair(&self) -> Pair<'_> {
        Pair { arm: &self.arm, baseline: &self.baseline, protocol: self.protocol }
    }
}

/// What is timed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair<'a> {
    arm: &'a str,
    baseline: &'a str,
    protocol: RatioProtocol,
}

impl<'a> Pair<'a> {
    /// What a claim is on; `None` if it is not on a speed-up.
    fn of(claim: &'a ClaimSpec) -> Option<Self> {
        (claim.kind == ClaimKind::Ratio).then(|| Self {
            arm: claim.arm.as_deref().unwrap_or("mixed"),
            baseline: claim.baseline.as_deref().unwrap_or("fp32"),
            protocol: claim.protocol.unwrap_or(RatioProtocol::EqualBatch),
        })
    }
}

fn protocol_name(protocol: RatioProtocol) -> &'static str {
    match protocol {
        RatioProtocol::EqualBatch => "equal batches",
        RatioProtocol::AsPublished => "each arm's own batches",
    }
}

/// Times every pair of arms that a claim is on, as far as both were asked for and it was not done before.
pub fn time_arms(ctx: &Context, request: &Request, arms: &[Resolved]) -> Result<Vec<Timing>> {
    let claims = arms.first().map(|arm| arm.recipe.claim.as_slice()).unwrap_or_default();
    let mut timings: Vec<Timing> = Vec::new();
    for pair in claims.iter().filter_map(Pair::of) {
        let of = |name: &str| arms.iter().find(|arm| arm.arm.as_deref() == Some(name));
        let (Some(arm), Some(baseline)) = (of(pair.arm), of(pair.baseline)) else { continue };
        if !timings.iter().any(|known| known.pair() == pair) {
            timings.push(timing(ctx, request, pair, arm, baseline)?);
        }
    }
    Ok(timings)
}

fn timing(
    ctx: &Context,
    request: &Request,
    pair: Pair,
    arm: &Resolved,
    baseline: &Resolved,
) -> Result<Timing> {
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let file = place(ctx, request, pair, arm, baseline, &environment)?;
    if file.is_file() {
        return read_json(&file);
    }
    let mut equal = arm.recipe.clone();
    if pair.protocol == RatioProtocol::EqualBatch {
        equal.data.batching = baseline.recipe.data.batching.clone();
        equal.train.batches_per_update = baseline.recipe.train.batches_per_update;
    }
    let (arm_recipe, baseline_recipe) = (&equal, &baseline.recipe);
    let seed = request.seeds.first().copied().unwrap_or(baseline_recipe.train.seed);
    let open = |recipe: &Recipe, resolved: &Resolved| {
        let prepared = prepare(ctx, recipe, &resolved.folder)?;
        let material = Material { train: prepared.train()?, vocabularies: vocabularies(&prepared) };
        let updates = first_updates(recipe, &material, seed)?;
        timed_arm(ctx, recipe, &material.vocabularies, updates, request.initial.as_ref(), seed)
    };
    let (mut candidate, mut base) = (open(arm_recipe, arm)?, open(baseline_recipe, baseline)?);
    ctx.progress.stage(&format!(
        "time {}: {} against {} at {}",
        request.document.name(),
        pair.arm,
        pair.baseline,
        protocol_name(pair.protocol)
    ));
    // Another tier shows that it runs, and no more.
    let (rounds, seconds) = if request.tier.is_none() { (ROUNDS, BLOCK_SECONDS) } else { (2, 0.0) };
    let mean = (base.warm_up()?.seconds + candidate.warm_up()?.seconds) / 2.0;
    let updates = (seconds / mean).ceil().clamp(1.0, 1000.0) as u64;
    let mut measured = Vec::new();
    for done in 1..=rounds {
        ctx.check_stop()?;
        measured.push(round(&mut base, &mut candidate, updates)?);
        ctx.progress.step(&Step { done, total: Some(rounds), loss: None, tokens_per_second: None });
    }
    ctx.progress.end_stage();
    let timing = Timing {
        arm: pair.arm.to_string(),
        baseline: pair.baseline.to_string(),
        protocol: pair.protocol,
        batch: batch_of(arm_recipe),
        baseline_batch: batch_of(baseline_recipe),
        environment,
        rounds: measured,
    };
    write_json(&file, &timing)?;
    Ok(timing)
}

/// Where a timing is kept: its name has all that it depends on.
fn place(
    ctx: &Context,
    request: &Request,
    pair: Pair,
    arm: &Resolved,
    baseline: &Resolved,
    environment: &Environment,
) -> Result<PathBuf> {
    let seed = request.seeds.first().copied().unwrap_or(baseline.recipe.train.seed);
    let key = |resolved: &Resolved| Run::locate(ctx, resolved, seed, request.initial.as_ref());
    let (arm_run, baseline_run) = (key(arm)?, key(baseline)?);
    let what = serde_json::json!([
        arm_run.card.key,
        baseline_run.card.key,
        environment.hardware(),
        environment.device,
        environment.threads,
    ]);
    let key = hex(&Sha256::digest(what.to_string()));
    let protocol = serde_json::json!(pair.protocol);
    let protocol = protocol.as_str().unwrap_or_default();
    let name = format!("{}-{}-{protocol}-{}.json", pair.arm, pair.baseline, &key[..12]);
    let runs = arm_run.folder.parent().map(PathBuf::from).unwrap_or_else(|| ctx.runs_dir());
    Ok(runs.join("timings").join(name))
}

/// Sentences or tokens of an update.
fn batch_of(recipe: &Recipe) -> u64 {
    let of_batch = match recipe.data.batching {
        BatchingSpec::Sentences { sentences, .. } => sentences,
        BatchingSpec::Tokens { max_tokens, .. } => max_tokens,
    };
    u64::from(of_batch) * u64::from(recipe.train.batches_per_update)
}
