//! Timing of one arm against another for claims about their speed ratio.
//!
//! The weights are fresh, because the cost of an update does not depend on them. A timing is stored
//! next to the runs. It is repeated for another program, machine or number of threads.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::{ClaimKind, ClaimSpec, RatioProtocol, Recipe, Resolved};
use zoo_results::exit::Exit;
use zoo_results::metrics::{Entry, Path, Work};
use zoo_results::statistics::{AbbaBlock, SpeedUp, speed_up};
use zoo_results::verdict::{Interval, SpeedEvidence};
use zoo_training::timing::{Lap, Round, round, warm_up_pair};

use super::Request;
use crate::context::Context;
use crate::environment::{Environment, fused};
use crate::error::{Failure, Result};
use crate::files::{read_json, write_json};
use crate::progress::Step;
use crate::run::data::Sets;
use crate::run::timed_arm::{Count, Making};
use crate::tasks;

/// Number of rounds of four blocks each.
const ROUNDS: u64 = 6;
/// Approximate duration of a block, in seconds. A block has at least one update.
const BLOCK_SECONDS: f64 = 0.5;

/// Version of stored timings. Increase it when the timed work or the method changes, so that older
/// timings are not reused.
const VERSION: u32 = 1;

/// A timing of one arm against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The timed pair of arms.
    #[serde(flatten)]
    pub pair: Pair,
    /// Batch size of an update of the arm, in the recipe's unit.
    pub batch: u64,
    /// Batch size of an update of the baseline, in the recipe's unit.
    pub baseline_batch: u64,
    /// Program and machine.
    pub environment: Environment,
    /// Measurements of all rounds.
    pub rounds: Vec<Round>,
}

impl Timing {
    /// Evidence for a claim about this pair of arms. `None` if the claim is about another pair, or
    /// if updates were skipped during the timing, because a skipped update is cheaper.
    pub fn evidence(&self, claim: &ClaimSpec) -> Option<SpeedEvidence> {
        let skipped: u64 = self.rounds.iter().flat_map(Round::laps).map(|lap| lap.skipped).sum();
        if Pair::of(claim)? != self.pair || skipped > 0 {
            return None;
        }
        let found = match self.pair.work {
            Work::Updates => speed_ups(&self.rounds, |lap| lap.updates),
            Work::Tokens | Work::TargetTokens | Work::Examples => speed_ups(&self.rounds, |lap| lap.tokens),
        }?;
        Some(SpeedEvidence {
            ratio: found.ratio,
            interval: Interval { low: found.low, high: found.high, level: found.level },
            protocol: self.pair.protocol,
            batch: self.batch,
            baseline_batch: self.baseline_batch,
        })
    }

    /// Description of the timing for the record.
    pub fn note(&self) -> String {
        let laps = || self.rounds.iter().flat_map(Round::laps);
        let skipped: u64 = laps().map(|lap| lap.skipped).sum();
        let updates = laps().next().map_or(0, |lap| lap.updates);
        format!(
            "{}: {} rounds of 4 blocks of {updates} updates, {skipped} skipped for overflow, by {}",
            self.pair,
            self.rounds.len(),
            self.environment.sources()
        )
    }
}

/// Speed-up over rounds, per unit of the given work.
pub fn speed_ups(rounds: &[Round], work: fn(&Lap) -> u64) -> Option<SpeedUp> {
    let cost = |lap: &Lap| lap.seconds / work(lap) as f64;
    let block = |round: &Round| AbbaBlock {
        baseline_first: cost(&round.baseline_first),
        candidate_first: cost(&round.candidate_first),
        candidate_second: cost(&round.candidate_second),
        baseline_second: cost(&round.baseline_second),
    };
    speed_up(&rounds.iter().map(block).collect::<Vec<_>>())
}

/// A pair of arms to time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Name of the candidate arm.
    pub arm: String,
    /// Name of the arm whose speed is 1.0.
    pub baseline: String,
    /// Which batch sizes are compared.
    pub protocol: RatioProtocol,
    /// Quantity that speed is counted in.
    pub work: Work,
}

impl Pair {
    /// The pair that a claim is about; `None` if timing updates cannot judge the claim.
    fn of(claim: &ClaimSpec) -> Option<Self> {
        let Path::Timed { work, .. } = Entry::find(&claim.metric)?.path else { return None };
        (claim.kind == ClaimKind::Ratio).then(|| Self {
            arm: claim.arm.clone().unwrap_or_else(|| "mixed".into()),
            baseline: claim.baseline.clone().unwrap_or_else(|| "fp32".into()),
            protocol: claim.protocol.unwrap_or(RatioProtocol::EqualBatch),
            work,
        })
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batches = match self.protocol {
            RatioProtocol::EqualBatch => "equal batches",
            RatioProtocol::AsPublished => "each arm's own batches",
        };
        write!(f, "{} against {} at {batches}", self.arm, self.baseline)
    }
}

/// Two requested arms that a claim compares.
struct Task<'a> {
    pair: Pair,
    arm: &'a Resolved,
    baseline: &'a Resolved,
    file: PathBuf,
}

/// The pairs of arms that claims are about, without duplicates.
fn tasks<'a>(ctx: &Context, request: &Request, arms: &'a [Resolved]) -> Result<Vec<Task<'a>>> {
    let claims = arms.first().map(|arm| arm.recipe.claim.as_slice()).unwrap_or_default();
    let mut tasks: Vec<Task> = Vec::new();
    for pair in claims.iter().filter_map(Pair::of) {
        let of = |name: &str| arms.iter().find(|arm| arm.arm.as_deref() == Some(name));
        let (Some(arm), Some(baseline)) = (of(&pair.arm), of(&pair.baseline)) else { continue };
        if !tasks.iter().any(|known| known.pair == pair) {
            let file = place(ctx, request, &pair, arm, baseline)?;
            tasks.push(Task { pair, arm, baseline, file });
        }
    }
    Ok(tasks)
}

/// Number of pairs of arms that remain to be timed.
pub fn untimed(ctx: &Context, request: &Request, arms: &[Resolved]) -> Result<usize> {
    Ok(tasks(ctx, request, arms)?.iter().filter(|task| !task.file.is_file()).count())
}

/// Duration of timing a pair, in seconds. `update` is the duration of an update.
pub fn seconds_of_pair(update: f64) -> f64 {
    let rounds = 4.0 * ROUNDS as f64 * BLOCK_SECONDS.max(update);
    // The warm-up has two updates of each arm, then several seconds of distinct updates.
    rounds + 2.0 * (2.0 * update + update.max(4.0))
}

/// Times every pair of requested arms that a claim is about, or reads the stored timing.
pub fn time_arms(ctx: &Context, request: &Request, arms: &[Resolved]) -> Result<Vec<Timing>> {
    let timing = |task: &Task| match task.file.is_file() {
        true => read_json(&task.file),
        false => time_pair(ctx, request, task),
    };
    tasks(ctx, request, arms)?.iter().map(timing).collect()
}

fn time_pair(ctx: &Context, request: &Request, task: &Task) -> Result<Timing> {
    let pair = &task.pair;
    let mut equal = task.arm.recipe.clone();
    if pair.protocol == RatioProtocol::EqualBatch {
        equal = equal.batched_as(&task.baseline.recipe).map_err(|error| {
            Failure::new(Exit::Recipe, format!("the baseline's batches do not suit the arm: {error}"))
        })?;
        equal.train.batches_per_update = task.baseline.recipe.train.batches_per_update;
    }
    let (arm_recipe, baseline_recipe) = (&equal, &task.baseline.recipe);
    let seed = request.seeds.first().copied().unwrap_or(baseline_recipe.train.seed);
    let open = |recipe: &Recipe, resolved: &Resolved| -> Result<_> {
        let data = tasks::of(recipe).prepare(ctx, &resolved.folder, Sets::All)?;
        let count = match pair.work {
            Work::TargetTokens => Count::TargetSide,
            Work::Examples => Count::Examples,
            Work::Updates | Work::Tokens => Count::Usual,
        };
        let making = Making { initial: request.initial_of(recipe), seed, count };
        Ok(data.timed(ctx, recipe, making)?.timed)
    };
    let (mut arm, mut baseline) = (open(arm_recipe, task.arm)?, open(baseline_recipe, task.baseline)?);
    ctx.progress.stage(&format!("time {}: {pair}", request.document.name()));
    // A run of a tier only shows that timing works.
    let (rounds, seconds) = if request.tier.is_none() { (ROUNDS, BLOCK_SECONDS) } else { (2, 0.0) };
    let (of_baseline, of_arm) = warm_up_pair(baseline.as_mut(), arm.as_mut())?;
    let updates = (2.0 * seconds / (of_baseline + of_arm)).ceil().clamp(1.0, 1000.0) as u64;
    let mut measured = Vec::new();
    for done in 1..=rounds {
        ctx.check_stop()?;
        measured.push(round(baseline.as_mut(), arm.as_mut(), updates)?);
        ctx.progress.step(&Step { done, total: Some(rounds), loss: None, speed: None });
    }
    ctx.progress.end_stage();
    let timing = Timing {
        pair: pair.clone(),
        batch: batch_of(arm_recipe),
        baseline_batch: batch_of(baseline_recipe),
        environment: Environment::current(&ctx.device.settled().to_string(), ctx.threads),
        rounds: measured,
    };
    write_json(&task.file, &timing)?;
    Ok(timing)
}

/// File of a timing. Its name is a hash of everything that the timing depends on, including the
/// program.
fn place(
    ctx: &Context,
    request: &Request,
    pair: &Pair,
    arm: &Resolved,
    baseline: &Resolved,
) -> Result<PathBuf> {
    let seed = request.seeds.first().copied().unwrap_or(baseline.recipe.train.seed);
    let run = |resolved: &Resolved| request.run(ctx, resolved, seed);
    let (arm_run, baseline_run) = (run(arm)?, run(baseline)?);
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let what = serde_json::json!({
        "version": VERSION, "pair": pair, "arm": arm_run.card.key, "baseline": baseline_run.card.key,
        "environment": environment, "hardware": environment.hardware(), "fused": fused(),
    });
    let key = hex::encode(Sha256::digest(what.to_string()));
    let name = format!("{}-{}-{}.json", pair.arm, pair.baseline, &key[..12]);
    let runs = arm_run.folder.parent().map(PathBuf::from).unwrap_or_else(|| ctx.runs_dir());
    Ok(runs.join("timings").join(name))
}

/// Size of an update, in the unit of the recipe's batching.
fn batch_of(recipe: &Recipe) -> u64 {
    let unit = tasks::of(recipe).workload().unit;
    u64::from(unit) * u64::from(recipe.train.batches_per_update)
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{Document, Selection};
    use zoo_results::metrics::METRICS;

    use super::*;

    /// A published speed-up claim.
    fn claim() -> ClaimSpec {
        let recipe =
            Document::load("transformer-big-nvidia").unwrap().resolve(&Selection::default()).unwrap().recipe;
        recipe.claim.clone().into_iter().find(|claim| claim.kind == ClaimKind::Ratio).unwrap()
    }

    /// A timing whose baseline has three times the seconds and twice the tokens per update.
    fn timing(claim: &ClaimSpec, skipped: u64) -> Timing {
        let lap = |tokens, seconds| Lap { updates: 2, skipped: 0, tokens, seconds };
        let (slow, fast) = (lap(400, 3.0), lap(200, 1.0));
        let round = Round {
            baseline_first: slow,
            candidate_first: Lap { skipped, ..fast },
            candidate_second: fast,
            baseline_second: slow,
        };
        let environment = Environment::current("cpu", 1);
        let pair = Pair::of(claim).unwrap();
        Timing { pair, batch: 1, baseline_batch: 2, environment, rounds: vec![round; 3] }
    }

    #[test]
    fn work_is_counted_as_the_claim_says() {
        for (metric, expected) in [
            ("updates-per-second", 3.0),
            ("tokens-per-second", 1.5),
            ("target-tokens-per-second", 1.5),
            ("mel-frames-per-second", 1.5),
        ] {
            let claim = ClaimSpec { metric: metric.into(), ..claim() };
            let found = timing(&claim, 0).evidence(&claim).unwrap();
            assert!((found.ratio - expected).abs() < 1e-9, "{metric}: {}", found.ratio);
            assert_eq!((found.batch, found.baseline_batch), (1, 2));
        }
    }

    #[test]
    fn what_can_be_timed_is_what_the_list_of_metrics_says() {
        for metric in METRICS {
            let claim = ClaimSpec { metric: metric.name.into(), ..claim() };
            let timed = matches!(metric.path, Path::Timed { .. });
            assert_eq!(Pair::of(&claim).is_some(), timed, "{}", metric.name);
        }
    }

    #[test]
    fn what_was_not_timed_is_no_evidence() {
        let timed = ClaimSpec { metric: "updates-per-second".into(), ..claim() };
        let clean = timing(&timed, 0);
        for other in [
            ClaimSpec { metric: "seconds-to-train".into(), ..timed.clone() },
            ClaimSpec { metric: "tokens-per-second".into(), ..timed.clone() },
            ClaimSpec { arm: Some("other".into()), ..timed.clone() },
            ClaimSpec { kind: ClaimKind::Value, ..timed.clone() },
        ] {
            assert_eq!(clean.evidence(&other), None, "{other:?}");
        }
        // A skipped update is cheaper than others.
        assert_eq!(timing(&timed, 1).evidence(&timed), None);
    }
}
