//! `zoo bench`: how fast the updates of a recipe are here, on batches of the published shape.
//!
//! Arms take turns (A B B A), so that a machine that slows down does not look like a slow arm. Nothing is recorded.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::prepare::PreparedTranslation;
use zoo_models::models::{Cost, PairBatch, Seq2Seq, Vocabularies, cost};
use zoo_models::precision::Compute;
use zoo_recipes::{Recipe, Resolved};
use zoo_results::exit::Exit;
use zoo_results::statistics::SpeedUp;
use zoo_training::timing::{Lap, TimedArm, round, warm_up_pair};

use super::prepare::{prepare, vocabularies};
use super::timed_arm::{Material, Update, first_updates, timed_arm};
use super::timing::speed_ups as in_rounds;
use super::{Request, generated};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::progress::Step;
use crate::size;

/// Rounds of four blocks, two of each arm.
const ROUNDS: u64 = 6;
/// A block lasts about so many seconds, as long as an update at least.
const BLOCK_SECONDS: f64 = 1.0;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Bench {
    /// Recipe.
    pub recipe: String,
    /// Tier, if it is not the published size.
    pub tier: Option<String>,
    /// `real`; `generated`: lengths as text has them, words at random; or the shape of full batches.
    pub data: String,
    /// What computed.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// Speeds, the baseline's first.
    pub arms: Vec<ArmSpeed>,
    /// Each further arm against the first.
    pub speed_ups: Vec<ArmSpeedUp>,
    /// Most memory that the process had, bytes; the CPU's.
    pub peak_memory: Option<u64>,
}

/// An arm's speed.
#[derive(Debug, Clone, Serialize)]
pub struct ArmSpeed {
    /// Arm.
    pub arm: String,
    /// Type of its products.
    pub compute: String,
    /// Parameters.
    pub parameters: u64,
    /// Rows of the target's vocabulary.
    pub vocabulary: usize,
    /// Source and target tokens of an update, padding left aside; mean over the batches that were timed.
    pub tokens_per_update: f64,
    /// Seconds an update.
    pub seconds_per_update: Spread,
    /// Source and target tokens a second.
    pub tokens_per_second: Spread,
    /// Operations a second, against the count of products that the model needs.
    pub flops: Spread,
    /// Updates that were skipped for overflow while the clock ran.
    pub skipped: u64,
    /// All blocks.
    pub laps: Vec<Lap>,
}

/// Blocks in the middle and at the ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            (at(middle.wrapping_sub(1)) + at(middle)) / 2.0
        } else {
            at(middle)
        };
        Self { median, low: at(0), high: at(values.len().wrapping_sub(1)) }
    }
}

/// One arm against the first.
#[derive(Debug, Clone, Serialize)]
pub struct ArmSpeedUp {
    /// Arm.
    pub arm: String,
    /// The arm that is 1.0.
    pub baseline: String,
    /// Tokens a second over the baseline's.
    pub speed_up: Option<SpeedUp>,
}

/// A batch of full sentences, for comparisons with programs that pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Sentences of a batch; a batch makes an update.
    pub sentences: u32,
    /// Tokens of each side of each of them.
    pub tokens: u32,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers = text.split_once('x').and_then(|(sentences, tokens)| {
            Some(Self { sentences: sentences.parse().ok()?, tokens: tokens.parse().ok()? })
        });
        let usable = |shape: &Self| {
            let all = u64::from(shape.sentences) * u64::from(shape.tokens);
            shape.sentences > 0 && shape.tokens > 1 && all <= 16_777_216
        };
        let problem = || "give sentences x tokens, 16 million at most together, e.g. 64x56".to_owned();
        numbers.filter(usable).ok_or_else(problem)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.sentences, self.tokens)
    }
}

/// What `zoo bench` was asked for, beside recipe and arms.
#[derive(Debug, Clone, Copy, Default)]
pub struct BenchOptions {
    /// At least so many updates of each arm; else as many as give a steady number.
    pub steps: Option<u64>,
    /// Batches of this shape instead of the recipe's.
    pub shape: Option<Shape>,
}

/// Measures the arms of a request.
pub fn bench(ctx: &Context, request: &Request, options: BenchOptions) -> Result<Bench> {
    let arms = request.resolve_all()?;
    let (first, others) = arms.split_first().ok_or_else(|| Failure::usage("no arm to time"))?;
    let data = match options.shape {
        Some(shape) => Data::Shaped(shape),
        None => Data::of(ctx, first)?,
    };
    let mut baseline = Contender::new(ctx, request, first, &data)?;
    let (mut speeds, mut speed_ups) = (Vec::new(), Vec::new());
    let blocks = |seconds: f64| match options.steps {
        Some(steps) => {
            let rounds = steps.div_ceil(2).clamp(1, ROUNDS);
            (rounds, steps.div_ceil(2 * rounds))
        }
        None => (ROUNDS, (BLOCK_SECONDS / seconds).ceil().clamp(1.0, 1000.0) as u64),
    };
    let done = |done, total| {
        ctx.progress.step(&Step { done, total: Some(total), loss: None, tokens_per_second: None });
        stopped(ctx)
    };
    if others.is_empty() {
        let seconds = baseline.timed.warm_up()?;
        baseline.is_warm(ctx, seconds);
        let (rounds, updates) = blocks(seconds);
        for lap in 1..=2 * rounds {
            baseline.laps.push(baseline.timed.clean_lap(updates)?);
            done(lap, 2 * rounds)?;
        }
    }
    for other in others {
        let mut candidate = Contender::new(ctx, request, other, &data)?;
        let (of_baseline, of_candidate) = warm_up_pair(&mut baseline.timed, &mut candidate.timed)?;
        baseline.is_warm(ctx, of_baseline);
        candidate.is_warm(ctx, of_candidate);
        let (rounds, updates) = blocks(of_baseline.min(of_candidate));
        let mut measured = Vec::new();
        for number in 1..=rounds {
            let round = round(&mut baseline.timed, &mut candidate.timed, updates)?;
            baseline.laps.extend([round.baseline_first, round.baseline_second]);
            candidate.laps.extend([round.candidate_first, round.candidate_second]);
            measured.push(round);
            done(number, rounds)?;
        }
        if rounds < 2 {
            ctx.progress.note("one round has no spread: a speed-up takes --steps 4");
        }
        let speed_up = in_rounds(&measured, |lap| lap.tokens);
        let (arm, baseline) = (candidate.name.clone(), baseline.name.clone());
        speed_ups.push(ArmSpeedUp { arm, baseline, speed_up });
        speeds.push(candidate.speed());
    }
    ctx.progress.end_stage();
    speeds.insert(0, baseline.speed());
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    Ok(Bench {
        recipe: request.document.name().to_string(),
        tier: request.tier.clone(),
        data: data.name(),
        hardware: environment.hardware(),
        peak_memory: ctx.device.is_cpu().then(peak_memory).flatten(),
        environment,
        arms: speeds,
        speed_ups,
    })
}

/// Nothing of a bench is kept, so nothing goes on.
fn stopped(ctx: &Context) -> Result<()> {
    match ctx.stopped() {
        true => Err(Failure::new(Exit::Interrupted, "interrupted").hint("the same command starts again")),
        false => Ok(()),
    }
}

/// The text, where it is there.
enum Data {
    Real(Box<PreparedTranslation>),
    Generated,
    Shaped(Shape),
}

impl Data {
    fn of(ctx: &Context, arm: &Resolved) -> Result<Self> {
        let corpus = arm.recipe.data.corpus.as_deref().filter(|name| !name.is_empty());
        let missing = match corpus {
            Some(name) => {
                let missing = CorpusDefinition::find(name)?.bytes_to_download(&ctx.data_home());
                missing.known > 0 || missing.unknown > 0
            }
            None => false,
        };
        if missing {
            ctx.progress
                .note("the data is not there (`zoo fetch`): batches of the published shape are generated");
            return Ok(Self::Generated);
        }
        Ok(Self::Real(Box::new(prepare(ctx, &arm.recipe, &arm.folder)?)))
    }

    fn name(&self) -> String {
        match self {
            Self::Real(_) => "real".into(),
            Self::Generated => "generated".into(),
            Self::Shaped(shape) => shape.to_string(),
        }
    }

    /// The vocabularies of a recipe, and the batches of its first updates.
    fn updates(&self, recipe: &Recipe, seed: u64) -> Result<(Vocabularies, Vec<Update>)> {
        match self {
            Self::Real(prepared) => {
                let material = Material { train: prepared.train()?, vocabularies: vocabularies(prepared) };
                Ok((material.vocabularies, first_updates(recipe, &material, seed)?))
            }
            Self::Generated => {
                let vocabularies = size::vocabularies(recipe);
                let splits = generated::splits(recipe, &vocabularies);
                let material = Material { train: splits.iter().collect(), vocabularies };
                Ok((vocabularies, first_updates(recipe, &material, seed)?))
            }
            Self::Shaped(shape) => {
                let vocabularies = size::vocabularies(recipe);
                let updates = generated::full_batches(&vocabularies, shape.sentences, shape.tokens);
                Ok((vocabularies, updates))
            }
        }
    }
}

/// An arm that is being timed.
struct Contender {
    name: String,
    compute: Compute,
    cost: Cost,
    vocabulary: usize,
    timed: TimedArm<Seq2Seq, PairBatch>,
    /// Source and target tokens of the updates.
    tokens: (u64, u64),
    laps: Vec<Lap>,
}

impl Contender {
    fn new(ctx: &Context, request: &Request, arm: &Resolved, data: &Data) -> Result<Self> {
        let (recipe, name) = (&arm.recipe, arm.arm.clone().unwrap_or_default());
        ctx.progress.stage(&format!("time {} {name}", request.document.name()));
        let seed = request.seeds.first().copied().unwrap_or(recipe.train.seed);
        let (vocabularies, updates) = data.updates(recipe, seed)?;
        let tokens = tokens(&updates);
        let timed = timed_arm(ctx, recipe, &vocabularies, updates, request.initial.as_ref(), seed)?;
        Ok(Self {
            name,
            compute: Compute::of(&recipe.precision, ctx.device.is_cpu()),
            cost: cost(&recipe.model, &vocabularies),
            vocabulary: vocabularies.target,
            timed,
            tokens,
            laps: Vec::new(),
        })
    }

    fn is_warm(&self, ctx: &Context, seconds: f64) {
        ctx.progress.note(&format!("{}: warm, {seconds:.3} s an update", self.name));
    }

    fn speed(self) -> ArmSpeed {
        let (source, target) = self.tokens;
        let of_token = self.cost.training_operations(source, target) / (source + target) as f64;
        let of = |value: &dyn Fn(&Lap) -> f64| Spread::of(self.laps.iter().map(value));
        let sum = |value: fn(&Lap) -> u64| self.laps.iter().map(value).sum::<u64>();
        ArmSpeed {
            compute: self.compute.name().to_string(),
            parameters: self.cost.parameters,
            vocabulary: self.vocabulary,
            tokens_per_update: sum(|lap| lap.tokens) as f64 / sum(|lap| lap.updates) as f64,
            seconds_per_update: of(&|lap| lap.seconds / lap.updates as f64),
            tokens_per_second: of(&|lap| lap.tokens as f64 / lap.seconds),
            flops: of(&|lap| of_token * lap.tokens as f64 / lap.seconds),
            skipped: sum(|lap| lap.skipped),
            laps: self.laps,
            arm: self.name,
        }
    }
}

/// Tokens of both sides of all updates.
fn tokens(updates: &[Update]) -> (u64, u64) {
    let batches = || updates.iter().flatten().map(|fetched| &fetched.batch);
    let of = |side: fn(&PairBatch) -> usize| batches().map(|batch| side(batch) as u64).sum();
    (of(|batch| batch.source.tokens.len()), of(|batch| batch.target.tokens.len()))
}

/// Linux keeps the most that a process ever had resident.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_of_even_and_odd_numbers() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, low: 1.0, high: 4.0 });
        assert_eq!(of(&[5.0]).median, 5.0);
    }

    #[test]
    fn shapes_are_read_and_written() {
        let shape: Shape = "64x56".parse().unwrap();
        assert_eq!((shape, shape.to_string()), (Shape { sentences: 64, tokens: 56 }, "64x56".to_owned()));
        for text in ["64", "0x5", "3x1", "x", "4x99999999", "4000000000x2"] {
            assert!(text.parse::<Shape>().unwrap_err().contains("64x56"), "{text}");
        }
    }
}
