//! `zoo reproduce`: every stage for every seed and arm, then a verdict on each claim.

use std::path::Path;

use serde::Serialize;
use zoo_models::ops::bf16_instruction;
use zoo_models::ops::{Products, probe};
use zoo_models::precision::Compute;
use zoo_recipes::{Document, Resolved};
use zoo_results::exit::Exit;
use zoo_results::ledger::Record;
use zoo_results::metrics::MetricValue;
use zoo_results::verdict::{Outcome as VerdictOutcome, Precision};

use super::course::off_course;
use super::judge::{Conditions, JudgedClaim, Measured, cases, evidence, verdict};
use super::reevaluate::wanted;
use super::side_by_side::{self, Missing};
use super::spending::Earlier;
use super::timing::{Timing, time_arms, untimed};
use super::{Request, plan, record};
use crate::claim_metrics::check_metrics;
use crate::context::Context;
use crate::environment::{Environment, Program};
use crate::error::{Failure, Result};
use crate::fp32::Fp32;
use crate::run::conventions::Conventions;
use crate::run::data::Sets;
use crate::run::evaluate::{evaluated_weights, evaluation_file, stored};
use crate::run::folder::{Made, Run};
use crate::run::initial::InitialWeights;
use crate::run::own_files;
use crate::run::train::Training;
use crate::run::trajectory;
use crate::signatures::check_signatures;
use crate::tasks;
use crate::tracking::{Folders, Live, track};

/// What `zoo reproduce` ends with.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The runs, in the order in which they were made.
    pub runs: Vec<RunMade>,
    /// Verdicts in the order of the claims.
    pub judged: Vec<JudgedClaim>,
    /// All scores, including those without a claim.
    pub scores: Vec<RunScores>,
    /// Ledger record of the result.
    #[serde(skip)]
    pub record: Record,
    /// Hash of the ledger's last record.
    pub head: String,
    /// Exit code of the command.
    #[serde(skip)]
    pub exit: Exit,
}

/// A run, and how it came to be.
#[derive(Debug, Clone, Serialize)]
pub struct RunMade {
    pub arm: String,
    pub seed: u64,
    /// Folder of the run.
    pub folder: std::path::PathBuf,
    /// Whether it was reused, and which programs made it.
    #[serde(flatten)]
    pub made: Made,
}

/// The scores of one run on one evaluation set.
#[derive(Debug, Clone, Serialize)]
pub struct RunScores {
    pub arm: String,
    pub seed: u64,
    /// Name of the evaluation set.
    pub eval: String,
    /// Name of the search.
    pub decode: String,
    /// One score for each convention.
    pub scores: Vec<MetricValue>,
}

impl RunScores {
    fn of(measured: &Measured) -> impl Iterator<Item = Self> + '_ {
        measured.evaluations.iter().map(|evaluation| Self {
            arm: measured.run.card.arm.clone(),
            seed: measured.run.card.seed,
            eval: evaluation.eval.clone(),
            decode: evaluation.decode.clone(),
            scores: evaluation.scores.clone(),
        })
    }
}

/// Runs what is missing and judges all claims, one look after another, until every claim is settled
/// or the last look is done.
pub fn reproduce(ctx: &Context, request: &Request) -> Result<Outcome> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    if let Some(arm) = arms.first() {
        check_metrics(&request.document, &arm.recipe)?;
        check_signatures(&request.document, &arm.recipe.claim)?;
    }
    let (ctx, request) = &request.sourced(ctx, &arms, true)?;
    let mut measured = Vec::new();
    let mut judged = Vec::new();
    let mut recorded = Record::default();
    let mut timings = None;
    let mut gated = false;
    let (mut before, mut head) = (0, String::new());
    for &seeds in request.looks.seeds() {
        let seen = request.seeds.get(..seeds as usize).unwrap_or(&request.seeds);
        let new = &seen[before..];
        let there = all_there(ctx, request, &arms, new)?;
        let timed = timings.is_some() || untimed(ctx, request, &arms)? == 0;
        if !gated && (!there || !timed) {
            let plan = plan(ctx, request)?;
            ctx.progress.note(&plan.to_string());
            match plan.gate(ctx) {
                // Complete runs are judged even if their speeds are not timed.
                Err(failure) if there => {
                    ctx.progress.note(&format!("speeds are not timed: {failure}"));
                    timings = Some(Vec::new());
                }
                passed => passed?,
            }
            gated = true;
        }
        let missing = match request.jobs {
            ..=1 => Vec::new(),
            _ => missing(ctx, request, &arms, new)?,
        };
        side_by_side::train(ctx, request, &missing)?;
        for &seed in new {
            for resolved in &arms {
                ctx.check_stop()?;
                let mut one = measure(ctx, request, resolved, seed)?;
                one.made.reused &= !missing.iter().any(|other| other.trains(resolved, seed));
                measured.push(one);
            }
        }
        let timings = match &timings {
            Some(timings) => timings,
            None => timings.insert(speeds(ctx, request, &arms)?),
        };
        judged = judge_all(ctx, request, &arms, &measured, timings)?;
        (recorded, head) = record::judged(ctx, request, &arms, seen, &measured, timings, &judged)?;
        let open = judged.iter().filter(|one| one.verdict.outcome == VerdictOutcome::Inconclusive).count();
        if open == 0 {
            break;
        }
        if seen.len() < request.seeds.len() {
            ctx.progress.note(&format!(
                "look at {} of at most {} seeds: {open} of {} claims inconclusive",
                seen.len(),
                request.seeds.len(),
                judged.len()
            ));
        }
        before = seen.len();
    }
    let exit = exit(ctx, request, &measured, &judged);
    let scores = measured.iter().flat_map(RunScores::of).collect();
    ctx.progress.note(&format!(
        "the ledger's last hash is {head}; store it elsewhere to verify later that nothing was removed \
         (zoo ledger verify --holds {})",
        &head[..12.min(head.len())]
    ));
    let runs = measured.into_iter().map(|Measured { run, made, .. }| RunMade {
        arm: run.card.arm,
        seed: run.card.seed,
        folder: run.folder,
        made,
    });
    Ok(Outcome { runs: runs.collect(), judged, scores, record: recorded, head, exit })
}

/// The exit code. A tier is not the published size, so its claims are NOT COMPARABLE by design. If
/// all runs of a tier have scores, the tier succeeds.
fn exit(ctx: &Context, request: &Request, measured: &[Measured], judged: &[JudgedClaim]) -> Exit {
    let exit = match judged.is_empty() {
        // Without a claim, nothing can fail.
        true => Exit::Ok,
        false => Exit::of_verdicts(judged.iter().map(|judged| &judged.verdict)),
    };
    let scored = measured.iter().all(|one| one.trained.ending.is_scored());
    match &request.tier {
        Some(tier) if scored && (judged.is_empty() || exit == Exit::NothingComparable) => {
            let recipe = called(&request.document);
            ctx.progress.note(&format!(
                "the {tier} tier of {recipe} works from data to scores; its scores are not comparable with those of a full \
                 run\nnext: `zoo reproduce {recipe} --plan` shows what the full run costs; without --plan it runs"
            ));
            Exit::Ok
        }
        _ => exit,
    }
}

/// Name of a recipe on the command line: a built-in recipe's name, else the path.
pub(super) fn called(document: &Document) -> &str {
    match zoo_recipes::find(document.name()) {
        Ok(built_in) if built_in.file == document.file() => document.name(),
        _ => document.file(),
    }
}

/// Trains, decodes and scores one run of a request without a verdict: the process of
/// [`side_by_side`].
pub fn one_run(ctx: &Context, request: &Request, arm: &str, seed: u64) -> Result<()> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let (ctx, request) = &request.sourced(ctx, &arms, true)?;
    let resolved = arms.iter().find(|resolved| resolved.arm.as_deref() == Some(arm));
    let resolved = resolved.ok_or_else(|| Failure::usage(format!("no arm {arm} among those of --arms")))?;
    measure(ctx, request, resolved, seed).map(drop)
}

/// Trains, decodes and scores one arm with one seed, as far as results are missing, and writes the
/// run to the trackers of the request.
fn measure(ctx: &Context, request: &Request, resolved: &Resolved, seed: u64) -> Result<Measured> {
    let ctx = &request.reading(ctx, &resolved.recipe);
    let run = request.run(ctx, resolved, seed)?;
    let folder = run.folder.clone();
    let measured = measure_untracked(ctx, request, resolved, run);
    // After an interruption too, with what there is.
    if !request.track.is_empty() && folder.join("run.json").is_file() {
        tracked(ctx, &request.track, &folder);
    }
    measured
}

/// Writes a run to trackers. A failure is reported and does not fail the run.
fn tracked(ctx: &Context, folders: &Folders, run: &Path) {
    match track(folders, run) {
        Ok(tracked) => {
            for note in &tracked.missing {
                ctx.progress.note(note);
            }
            for (tracker, folder, _) in &tracked.places {
                ctx.progress.note(&format!("{tracker}: {}", ctx.shown(folder)));
            }
        }
        Err(failure) => ctx.progress.note(&format!("{} is not tracked: {failure}", ctx.shown(run))),
    }
}

fn measure_untracked(
    ctx: &Context,
    request: &Request,
    resolved: &Resolved,
    mut run: Run,
) -> Result<Measured> {
    let recipe = &resolved.recipe;
    let reused = run.is_trained(request.stop_early)?;
    if reused {
        // The card names the program and the threads that trained, not those of this process.
        run.create(recipe)?;
    }
    let made = Made { reused, other_programs: run.other_programs()? };
    if made.reused && !made.other_programs.is_empty() {
        ctx.progress.note(&format!(
            "{} is reused; it was made by another program, {} (this one: {})",
            ctx.shown(&run.folder),
            made.other_programs.join(", "),
            Program::current().sources()
        ));
    }
    let precision = Some(proved(ctx, Compute::of(&recipe.precision), recipe)?);
    let wanted = all_wanted(request, recipe)?;
    let folder = run.folder.join("eval");
    let mut evaluations = Vec::new();
    for (eval, decode) in &wanted {
        evaluations.extend(stored(&folder, recipe, eval, decode)?);
    }
    let trained = run.is_trained(request.stop_early)?;
    let unscored = || Ok::<_, Failure>(!run.trained()?.ending.is_scored());
    if !(trained && (evaluations.len() == wanted.len() || unscored()?)) {
        let task = tasks::of(recipe);
        let data = task.prepare(ctx, &resolved.folder, Sets::All)?;
        if trained {
            data.check(recipe, &run)?;
        }
        let conventions = Conventions {
            signatures: &|eval, decode| task.signatures(eval, decode),
            sources: &|eval| task.sources_at_hand(ctx, &resolved.folder, eval).ok().flatten(),
        };
        let folder_of_run = run.folder.clone();
        let live = Live::new(ctx, &request.track, &folder_of_run);
        let training = Training {
            initial: request.initial_of(recipe),
            stop_early: request.stop_early,
            conventions,
            off_course: &|run, so_far| off_course(run, recipe, so_far),
            logged: &|| live.logged(),
        };
        let _alone = run.lock()?;
        if !run.exists() {
            record::started(ctx, request, &run.card, data.fingerprints())?;
        }
        let done = data.train(ctx, &training, recipe, &mut run).and_then(|trained| {
            if !trained.ending.is_scored() {
                return Ok(Vec::new());
            }
            let weights = evaluated_weights(&run, recipe)?;
            data.evaluate(ctx, recipe, &folder, weights, &wanted, conventions)
        });
        evaluations = match done {
            Ok(evaluations) => evaluations,
            Err(failure) => {
                record::broken_off(ctx, request, &run.card, &failure)?;
                return Err(failure);
            }
        };
    }
    own_files::keep(ctx, &run, recipe, &evaluations);
    let trained = run.trained()?;
    let (data, on_the_way) = (trained.data.clone(), trajectory::kept(&run, recipe)?);
    Ok(Measured { run, made, trained, evaluations, on_the_way, precision, data })
}

/// The timings that claims need. If the data is no longer available, scores are judged without
/// timings.
fn speeds(ctx: &Context, request: &Request, arms: &[Resolved]) -> Result<Vec<Timing>> {
    match time_arms(ctx, request, arms) {
        Err(failure) if failure.exit == Exit::Data => {
            ctx.progress.note(&format!("speeds were not timed: {failure}"));
            Ok(Vec::new())
        }
        other => other,
    }
}

fn judge_all(
    ctx: &Context,
    request: &Request,
    arms: &[Resolved],
    measured: &[Measured],
    timings: &[Timing],
) -> Result<Vec<JudgedClaim>> {
    let hardware = Environment::current(&ctx.device.settled().to_string(), ctx.threads).hardware();
    let claims = arms.first().map(|arm| arm.recipe.claim.clone()).unwrap_or_default();
    let mut overrides = arms.first().map(|arm| arm.binding_overrides.clone()).unwrap_or_default();
    overrides.extend(request.initial.as_ref().and_then(InitialWeights::change));
    let conditions = Conditions {
        recipe: request.document.name(),
        plan: &request.looks,
        hardware: &hardware,
        tier: request.tier.as_deref(),
        overrides: &overrides,
    };
    let earlier = Earlier::of(ctx, request)?;
    let judge = |case: super::judge::Case| {
        let mut evidence = evidence(&case, measured, timings, &conditions)?;
        evidence.spent = earlier.spent(case.claim, &evidence);
        let number = claims.iter().position(|claim| std::ptr::eq(claim, case.claim)).map_or(0, |i| i + 1);
        let verdict = verdict(&case, &evidence);
        Ok(JudgedClaim { number, arm: case.arm, verdict, evidence })
    };
    cases(&claims, &request.arms).into_iter().map(judge).collect()
}

fn all_wanted(request: &Request, recipe: &zoo_recipes::Recipe) -> Result<Vec<(String, String)>> {
    let mut pairs = wanted(recipe, None, None)?;
    for eval in &request.evals {
        pairs.extend(
            wanted(recipe, Some(eval), None)?
                .into_iter()
                .filter(|pair| !pairs.contains(pair))
                .collect::<Vec<_>>(),
        );
    }
    Ok(pairs)
}

/// Whether all runs and evaluations of these seeds exist.
fn all_there(ctx: &Context, request: &Request, arms: &[Resolved], seeds: &[u64]) -> Result<bool> {
    Ok(missing(ctx, request, arms, seeds)?.is_empty())
}

/// The runs that are not trained, or lack an evaluation, in the order in which they run.
fn missing<'a>(
    ctx: &Context,
    request: &Request,
    arms: &'a [Resolved],
    seeds: &[u64],
) -> Result<Vec<Missing<'a>>> {
    let mut missing = Vec::new();
    for &seed in seeds {
        for resolved in arms {
            if !is_there(ctx, request, resolved, seed)? {
                let is_trained = request.run(ctx, resolved, seed)?.is_trained(request.stop_early)?;
                missing.push(Missing { resolved, seed, is_trained });
            }
        }
    }
    Ok(missing)
}

/// Whether a run and all its evaluations exist.
fn is_there(ctx: &Context, request: &Request, resolved: &Resolved, seed: u64) -> Result<bool> {
    let run = request.run(ctx, resolved, seed)?;
    if !run.is_trained(request.stop_early)? {
        return Ok(false);
    }
    if !run.trained()?.ending.is_scored() {
        return Ok(true);
    }
    for (eval, decode) in all_wanted(request, &resolved.recipe)? {
        let folder = run.folder.join("eval");
        if !evaluation_file(&folder, &resolved.recipe, &eval, &decode)?.is_file() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Precision of matrix products on this device, by a probe with the run's own width.
///
/// # Errors
/// The products are TF32 although FP32 is required. Training is refused, because its name would be
/// wrong.
fn proved(ctx: &Context, compute: Compute, recipe: &zoo_recipes::Recipe) -> Result<Precision> {
    let device = ctx.open_device()?;
    let found = probe(&device, compute, tasks::of(recipe).width());
    if found == Products::Tf32 && ctx.fp32 == Some(Fp32::Strict) {
        let message =
            format!("{} rounds FP32 operands to TF32 in spite of --fp32 strict", ctx.device.settled());
        return Err(Failure::new(Exit::Device, message).hint("pass --fp32 tf32 to compute and record TF32"));
    }
    Ok(match found {
        Products::Other => {
            let message = format!(
                "{} multiplies in none of the known types where {} is asked for",
                ctx.device.settled(),
                compute.name()
            );
            let hint = "another --device, or an arm of another type; please report this with `zoo doctor`";
            return Err(Failure::new(Exit::Device, message).hint(hint));
        }
        Products::Fp32 => Precision::Fp32,
        Products::Tf32 => Precision::Tf32,
        Products::Fp16 => Precision::Fp16,
        // Without a BF16 instruction the CPU rounds operands to BF16 and multiplies in FP32.
        Products::Bf16 if ctx.device.is_cpu() && bf16_instruction().is_none() => Precision::Bf16Emulated,
        Products::Bf16 => Precision::Bf16,
    })
}
