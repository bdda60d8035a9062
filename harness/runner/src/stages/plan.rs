//! Estimated cost of a request, computed within seconds and before anything is fetched.

mod gpus;

use std::fmt;
use std::path::Path;
use std::time::Instant;

use burn::tensor::{Device, Tensor};
use serde::Serialize;
use zoo_datasets::corpora::{ByteCount, CorpusDefinition};
use zoo_models::parameters::host_values;
use zoo_models::precision::Compute;
use zoo_recipes::{DataBlock, Recipe, Resolved, ScheduleSpec};
use zoo_results::report::{duration, grouped};

use self::gpus::OnGpu;
use super::Request;
use super::spending::{planned, without_claims};
use super::timing::{seconds_of_pair, untimed};
use crate::context::Context;
use crate::error::Result;
use crate::fp32::Fp32;
use crate::output::{Cell, Table, columns};
use crate::run::folder::Made;
use crate::task::size::Workload;
use crate::{gate, records, tasks};

/// Assumed fraction of the matrix product speed that a training step reaches. Small models reach
/// less.
const ASSUMED_EFFICIENCY: f64 = 0.6;

/// A number of epochs above all published schedules. The longest of them has 440.
const MANY_EPOCHS: f64 = 500.0;
/// Epochs of the shorter run that the warning suggests.
const USUAL_EPOCHS: f64 = 50.0;

/// Cost of one arm and seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmPlan {
    pub arm: String,
    pub seed: u64,
    /// Number of parameters of the model.
    pub parameters: u64,
    /// Type of its products: `fp32`, `tf32`, `fp16` or `bf16`.
    pub products: &'static str,
    /// Maximum number of updates that remain to be made.
    pub updates: u64,
    /// Maximum number of updates of the whole run.
    pub all_updates: u64,
    /// Whether `updates` assumes a million examples because the corpus does not state its size.
    pub examples_assumed: bool,
    /// Programs that trained the run, if it has ended.
    pub trained: Option<Made>,
    /// Floating-point operations of the remaining updates.
    pub operations: f64,
    /// Estimated duration of the remaining updates on this device, in seconds.
    pub seconds: f64,
}

/// Cost of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the recipe.
    pub recipe: String,
    /// Device that the request would run on.
    pub device: String,
    /// Measured speed of matrix products, in operations per second.
    #[serde(rename = "operations_per_second")]
    pub speed: f64,
    /// Arms and seeds in the order in which they run.
    pub runs: Vec<ArmPlan>,
    /// Number of pairs of arms whose speeds remain to be timed against each other.
    pub timings: usize,
    /// Estimated duration of the timings, in seconds.
    pub timing_seconds: f64,
    /// Estimated duration of all runs and timings, in seconds.
    pub seconds: f64,
    /// Bytes to fetch, as far as they are known.
    #[serde(rename = "download_bytes")]
    pub download: u64,
    /// Number of files to fetch whose size is not known.
    pub unknown_sizes: usize,
    /// Description of `download` and `unknown_sizes`.
    #[serde(skip)]
    pub download_text: String,
    /// Bytes on disk: data and checkpoints.
    #[serde(rename = "disk_bytes")]
    pub disk: u64,
    /// Approximate memory in bytes: weights, gradients, moments and activations.
    #[serde(rename = "memory_bytes")]
    pub memory: u64,
    /// Licence terms of the data.
    pub licence: Option<String>,
    /// Why the schedule does not suit the user's data, with a suggestion.
    pub warning: Option<String>,
    /// Significance level of claims that earlier plans spent, one sentence per claim.
    pub spent: Vec<String>,
    /// The runs on the GPU that [`Self::on`] was asked for.
    pub gpu: Option<OnGpu>,
}

impl Plan {
    /// The runs as a table, for the formats of one table.
    pub fn table(&self) -> Table {
        let mut table =
            columns(["arm", "#seed", "#parameters", "#updates", "#operations", "#seconds", "trained"]);
        for run in &self.runs {
            let trained = run.trained.as_ref().map_or_else(String::new, ToString::to_string);
            table.push(vec![
                Cell::words(run.arm.as_str()),
                Cell::count(run.seed),
                Cell::count(run.parameters),
                Cell::count(run.updates),
                Cell::of(operations(run.operations, "FLOP"), run.operations),
                Cell::of(duration(run.seconds), run.seconds),
                Cell::words(trained),
            ]);
        }
        table
    }

    /// Adds what the runs would take on a GPU.
    ///
    /// # Errors
    /// `gpus.toml` has no GPU of this name, or the recipe cannot be resolved.
    pub fn on(&mut self, ctx: &Context, request: &Request, gpu: &str) -> Result<()> {
        let mut records = records::kept(ctx, Some(&self.recipe));
        records.retain(|kept| {
            let record = &kept.entry.record;
            record.is_own_evidence() && record.tier == request.tier && record.changes() == request.overrides
        });
        self.gpu = Some(gpus::on_gpu(gpu, &self.runs, &records, &without_claims(request)?)?);
        Ok(())
    }

    /// Asks for confirmation, or refuses, if the cost is above the limits of [`gate`].
    pub fn gate(&self, ctx: &Context) -> Result<()> {
        let cost = gate::Cost {
            seconds: Some(self.seconds),
            bytes: self.download,
            unknown_sizes: self.unknown_sizes,
        };
        gate::pass(ctx, &cost)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "plan for {} on {} ({} measured)",
            self.recipe,
            self.device,
            operations(self.speed, "FLOP/s")
        )?;
        for run in &self.runs {
            if let Some(trained) = &run.trained {
                writeln!(f, "  {:<6} seed {}: trained already ({trained})", run.arm, run.seed)?;
                continue;
            }
            writeln!(
                f,
                "  {:<6} seed {}: {} parameters, {}, {}, about {}",
                run.arm,
                run.seed,
                grouped(run.parameters),
                match (grouped(run.updates), run.examples_assumed) {
                    (updates, false) => format!("at most {updates} updates"),
                    (updates, true) => format!("{updates} updates for each million of examples"),
                },
                operations(run.operations, "FLOP"),
                duration(run.seconds)
            )?;
        }
        if self.timings > 0 {
            let pairs = if self.timings == 1 { "pair" } else { "pairs" };
            let time = duration(self.timing_seconds);
            writeln!(f, "  speed   {} {pairs} of arms to time, about {time}", self.timings)?;
        }
        writeln!(f, "  fetch   {}", self.download_text)?;
        writeln!(
            f,
            "  disk    {}, memory {}",
            ByteCount { known: self.disk, unknown: 0 },
            ByteCount { known: self.memory, unknown: 0 }
        )?;
        if let Some(licence) = &self.licence {
            writeln!(f, "  licence {licence}")?;
        }
        write!(f, "  all     about {}", duration(self.seconds))?;
        for note in self.warning.iter().chain(&self.spent) {
            write!(f, "\n  note    {note}")?;
        }
        match &self.gpu {
            Some(gpu) => write!(f, "{gpu}"),
            None => Ok(()),
        }
    }
}

/// Makes the plan without fetching anything.
pub fn plan(ctx: &Context, request: &Request) -> Result<Plan> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let sourced = request.sourced(ctx, &arms, false);
    // A plan needs no weights.
    let mut warning = sourced.as_ref().err().map(|failure| failure.to_string().replace("\nhint: ", "; "));
    let (ctx, request) = sourced.as_ref().map_or((ctx, request), |(ctx, request)| (ctx, request));
    let device = ctx.open_device()?;
    let speed = measured_speed(&device);
    let mut runs = Vec::new();
    let (mut memory, mut checkpoints, mut longest) = (0, 0, 0.0_f64);
    let own = arms.first().map(|arm| own_examples(&arm.recipe, &arm.folder)).transpose()?.flatten();
    for &seed in &request.seeds {
        for resolved in &arms {
            let step = step_cost(&resolved.recipe, own);
            let Updates { most: limit, examples_assumed } = updates(resolved, &step, own);
            warning =
                warning.or_else(|| own.and_then(|own| too_long_a_schedule(resolved, &step, limit, own)));
            let run = request.run(ctx, resolved, seed)?;
            let trained = run.is_trained(request.stop_early)?;
            let done = if trained { limit } else { run.updates_made().min(limit) };
            let left = limit - done;
            let operations = step.operations * left as f64;
            longest = longest.max(step.operations / (speed * ASSUMED_EFFICIENCY));
            let average = u64::from(resolved.recipe.train.checkpoint.ema.is_some());
            // Activations exist for one batch at a time, regardless of the batches per update.
            let of_batch = step.tokens / f64::from(resolved.recipe.train.batches_per_update);
            memory = memory.max(
                step.parameters * (16 + 4 * average)
                    + (of_batch * 400.0 * tasks::of(&resolved.recipe).width() as f64) as u64,
            );
            checkpoints += step.parameters * 4 * (2 * (3 + average) + kept_weights(resolved));
            runs.push(ArmPlan {
                arm: resolved.arm.clone().unwrap_or_default(),
                seed,
                parameters: step.parameters,
                products: products(resolved),
                updates: left,
                all_updates: limit,
                examples_assumed,
                trained: match trained {
                    true => Some(Made { reused: true, other_programs: run.other_programs()? }),
                    false => None,
                },
                operations,
                seconds: operations / (speed * ASSUMED_EFFICIENCY),
            });
        }
    }
    let timings = untimed(ctx, request, &arms)?;
    let timing_seconds = if timings == 0 { 0.0 } else { timings as f64 * seconds_of_pair(longest) };
    let corpus = arms.first().and_then(|arm| arm.recipe.data().corpus_to_fetch());
    let corpus = corpus.map(CorpusDefinition::find).transpose()?;
    let download = corpus.as_ref().map(|corpus| corpus.bytes_to_download(&ctx.data_home()));
    let seconds = runs.iter().map(|run| run.seconds).sum::<f64>() + timing_seconds;
    Ok(Plan {
        seconds,
        recipe: request.document.name().to_string(),
        device: ctx.device.settled().to_string(),
        speed,
        runs,
        timings,
        timing_seconds,
        download: download.map_or(0, |count| count.known),
        unknown_sizes: download.map_or(0, |count| count.unknown),
        download_text: download.map_or_else(|| "nothing".into(), |count| count.to_string()),
        disk: corpus.as_ref().map_or(0, |corpus| corpus.disk_bytes().known) + checkpoints,
        // Both arms of a timing are in memory at the same time.
        memory: if timings > 0 { 2 * memory } else { memory },
        licence: corpus.map(|corpus| corpus.licence.terms),
        warning,
        spent: arms.first().map_or_else(|| Ok(Vec::new()), |arm| planned(ctx, request, &arm.recipe.claim))?,
        gpu: None,
    })
}

/// Type of an arm's products, as its name and recipe have it.
fn products(resolved: &Resolved) -> &'static str {
    let compute = Compute::of(&resolved.recipe.precision);
    let arm = resolved.arm.as_deref().unwrap_or_default();
    Fp32::of_arm(arm, compute).unwrap_or_default().compute_name(compute)
}

/// Computation of one update.
struct StepCost {
    parameters: u64,
    tokens: f64,
    examples: f64,
    operations: f64,
    work: Workload,
}

/// Cost of one update. `own` is the number of examples in the user's files, if known.
fn step_cost(recipe: &Recipe, own: Option<f64>) -> StepCost {
    let task = tasks::of(recipe);
    let (cost, work) = (task.cost(), task.workload());
    // A batch does not contain an example twice.
    let of_batch = own.map_or(work.batch, |own| work.batch.min(own.max(1.0)));
    let examples = f64::from(recipe.train.batches_per_update) * of_batch;
    let read = examples * work.example;
    let operations = cost.training_operations(read as u64, read as u64);
    StepCost {
        parameters: cost.parameters * work.models,
        tokens: work.sides * read,
        examples,
        operations,
        work,
    }
}

/// Estimated duration of updates of a recipe on this device, in seconds. The recipe's paths are
/// relative to `base`.
///
/// # Errors
/// The device cannot be opened, or a file of the recipe cannot be read.
pub fn seconds_of(ctx: &Context, recipe: &Recipe, base: &Path, updates: u64) -> Result<f64> {
    let step = step_cost(recipe, own_examples(recipe, base)?);
    Ok(updates as f64 * step.operations / (measured_speed(&ctx.open_device()?) * ASSUMED_EFFICIENCY))
}

/// Number of updates of an arm.
struct Updates {
    most: u64,
    examples_assumed: bool,
}

fn updates(resolved: &Resolved, step: &StepCost, own: Option<f64>) -> Updates {
    let (train, data) = (&resolved.recipe.train, resolved.recipe.data());
    let mut examples_assumed = false;
    let by_epochs = train.max_epochs.map(|epochs| {
        let examples = step.work.examples.or(own).or_else(|| lines_of_corpus(data)).unwrap_or_else(|| {
            // Most corpora that do not state their size are larger.
            examples_assumed = true;
            1e6
        });
        let pairs = examples * step.work.copies as f64;
        // Each epoch may end with a batch that is not full. An assumed size gives a rate, not a
        // count.
        match examples_assumed {
            true => (epochs as f64 * pairs / step.examples).ceil() as u64,
            false => epochs * (pairs / step.examples).ceil() as u64,
        }
    });
    let given = train.max_updates.filter(|most| by_epochs.is_none_or(|by_epochs| *most <= by_epochs));
    let examples_assumed = examples_assumed && given.is_none();
    Updates { most: given.or(by_epochs).unwrap_or(0), examples_assumed }
}

/// Number of training examples in the user's own files; `None` if there are no such files.
fn own_examples(recipe: &Recipe, base: &Path) -> Result<Option<f64>> {
    let count = tasks::of(recipe).own_examples(base)?;
    let most = recipe.data().most_training_examples().unwrap_or(usize::MAX);
    Ok(count.map(|count| count.min(most) as f64))
}

/// Warning if the run passes over the user's examples so often that the schedule must be meant for
/// more data.
fn too_long_a_schedule(resolved: &Resolved, step: &StepCost, updates: u64, own: f64) -> Option<String> {
    let epochs = updates as f64 * step.examples / own.max(1.0);
    if epochs < MANY_EPOCHS {
        return None;
    }
    let of_epochs = |epochs: f64| (epochs * own / step.examples).ceil();
    let fewer = of_epochs(USUAL_EPOCHS).max(100.0).min(of_epochs(MANY_EPOCHS - 1.0)).max(1.0);
    Some(format!(
        "{} training examples, each used about {} times: the schedule is made for more data.\n          \
         `--set train.max_updates={fewer}` makes it shorter{}",
        grouped(own as u64),
        grouped(epochs as u64),
        match warmup(&resolved.recipe.train.schedule) {
            Some(warmup) if warmup as f64 > fewer / 2.0 => format!(
                "; its warm-up of {} updates then needs\n          `--set train.schedule.warmup_updates={}`",
                grouped(warmup),
                (fewer / 10.0).ceil()
            ),
            _ => String::new(),
        }
    ))
}

/// Warm-up updates of a schedule; `None` if the schedule has no warm-up that can be set.
fn warmup(schedule: &ScheduleSpec) -> Option<u64> {
    match schedule {
        ScheduleSpec::TransformerPolicy { warmup_updates, .. }
        | ScheduleSpec::InverseSqrt { warmup_updates, .. }
        | ScheduleSpec::PolyDecay { warmup_updates, .. }
        | ScheduleSpec::CosineDecay { warmup_updates, .. }
        | ScheduleSpec::WarmupSteps { warmup_updates, .. } => Some(*warmup_updates),
        _ => None,
    }
}

/// Lines of the training split, if the corpus states them.
fn lines_of_corpus(data: &dyn DataBlock) -> Option<f64> {
    let corpus = CorpusDefinition::find(data.corpus()?).ok()?;
    let lines = corpus.splits.get(data.training())?.lines?;
    Some(data.most_training_examples().map_or(lines, |most| lines.min(most as u64)) as f64)
}

fn kept_weights(resolved: &Resolved) -> u64 {
    match resolved.recipe.train.checkpoint.evaluate {
        zoo_recipes::EvaluatedWeights::MeanOfEpochs { epochs: kept }
        | zoo_recipes::EvaluatedWeights::MeanOfLast { checkpoints: kept, .. } => u64::from(kept),
        _ => 1,
    }
}

/// Speed of FP32 matrix products of a training step's size, in operations per second. Measures for
/// 0.2 to 0.4 s.
fn measured_speed(device: &Device) -> f64 {
    const SIZE: usize = 512;
    const MOST: u32 = 1 << 14;
    // Products of it have its values, so a product can depend on the one before.
    let a = Tensor::<2>::ones([SIZE, SIZE], device) / SIZE as f64;
    // A GPU computes while the next products are queued; a read after each would be most of the
    // time.
    let multiply = |products: u32| {
        let start = Instant::now();
        let mut product = a.clone();
        for _ in 0..products {
            product = a.clone().matmul(product);
        }
        host_values(product.narrow(0, 0, 1).narrow(1, 0, 1));
        start.elapsed().as_secs_f64()
    };
    // The first product may include compilation.
    multiply(1);
    let mut products = 2;
    loop {
        let seconds = multiply(products);
        if seconds >= 0.1 || products >= MOST {
            return 2.0 * (SIZE as f64).powi(3) * f64::from(products) / seconds;
        }
        products *= 2;
    }
}

fn operations(value: f64, unit: &str) -> String {
    let mut value = value;
    let mut prefix = "";
    for larger in ["k", "M", "G", "T", "P", "E", "Z"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        prefix = larger;
    }
    format!("{value:.1} {prefix}{unit}")
}
