//! `zoo profile`: the exponents of the values of some updates.

use std::path::{Path, PathBuf};

use serde::Serialize;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_models::precision::Compute;
use zoo_recipes::Recipe;
use zoo_results::exit::Exit;
use zoo_results::profile::{Profile, SuggestedScale};
use zoo_results::statistics::median;

use super::Request;
use super::opened::opened_run;
use super::plan::seconds_of;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::gate::{self, Cost};
use crate::run::data::Sets;
use crate::run::profile::{Profiling, USUAL};
use crate::run::recorder::Recorded;
use crate::tasks;

/// What is profiled.
#[derive(Debug, Clone)]
pub enum Subject {
    /// The recipe of a request, from its start: the first arm with the first seed.
    Recipe(Box<Request>),
    /// A copy of a run, from its newest state. The path is the run's folder, or a file in it.
    Run(PathBuf),
}

/// Profiled updates of a training.
#[derive(Debug, Clone, Serialize)]
pub struct ProfileReport {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Name of the arm.
    pub arm: String,
    /// Seed of weights and batches.
    pub seed: u64,
    /// Precision of matrix products.
    pub compute: String,
    /// Folder of the run; `None` for a recipe's start.
    pub run: Option<PathBuf>,
    /// Description of the machine.
    pub hardware: String,
    /// Program and machine.
    pub environment: Environment,
    /// The static loss scale that suits all profiled updates.
    pub suggested: SuggestedScale,
    /// Median duration of the profiled updates, in seconds.
    pub profiled_seconds: f64,
    /// Median duration of the other updates, in seconds; `None` without other updates.
    pub other_seconds: Option<f64>,
    /// The profiled updates.
    pub updates: Profile,
    /// Numbers of the named updates that are not among them: training ended before.
    pub missing_updates: Vec<u64>,
    /// Why updates are missing.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

/// Profiles updates with these numbers; the usual ones if there are none.
///
/// # Errors
/// The device is not the CPU, the recipe has no such updates, or training reaches none of them.
pub fn profile(ctx: &Context, subject: &Subject, updates: &[u64]) -> Result<ProfileReport> {
    if !ctx.device.is_cpu() {
        let message =
            format!("zoo profile reads the values of an update on the CPU, not on {}", ctx.device.settled());
        return Err(Failure::new(Exit::Device, message).hint("--device cpu"));
    }
    match subject {
        Subject::Recipe(request) => of_recipe(ctx, request, updates),
        Subject::Run(path) => of_run(ctx, path, updates),
    }
}

fn of_recipe(ctx: &Context, request: &Request, updates: &[u64]) -> Result<ProfileReport> {
    let arms = request.resolve_all()?;
    let ctx = &ctx.for_arms(&arms)?;
    let (ctx, request) = &request.sourced(ctx, &arms, false)?;
    let arm = arms.first().ok_or_else(|| Failure::usage("no arm to profile"))?;
    let recipe = &arm.recipe;
    let usual = USUAL.into_iter().max().unwrap_or_default();
    let usual = recipe.train.max_updates.map_or(usual, |last| last.min(usual));
    consent(ctx, recipe, &arm.folder, updates.iter().copied().max().unwrap_or(usual))?;
    let data = tasks::of(recipe).prepare(ctx, &arm.folder, Sets::All)?;
    let seed = request.seeds.first().copied().unwrap_or(recipe.train.seed);
    let profiling = Profiling { seed, initial: request.initial_of(recipe), run: None, updates };
    let recorded = data.profile(ctx, recipe, &profiling)?;
    let arm = arm.arm.clone().unwrap_or_default();
    let of_recipe = ProfileReport { tier: request.tier.clone(), arm, seed, ..report(ctx, recipe, recorded) };
    Ok(of_recipe)
}

fn of_run(ctx: &Context, path: &Path, updates: &[u64]) -> Result<ProfileReport> {
    let (run, recipe) = opened_run(path, "zoo profile")?;
    let ctx = &ctx.for_run(&run.card.compute)?.reading(Some(run.folder.clone()));
    let begun = run.updates_made();
    let last = updates.iter().copied().max().unwrap_or(begun.saturating_add(1));
    consent(ctx, &recipe, &run.card.base, last.saturating_sub(begun))?;
    let data = tasks::of(&recipe).prepare(ctx, &run.card.base, Sets::All)?;
    data.check(&recipe, &run)?;
    let profiling = Profiling { seed: run.card.seed, initial: None, run: Some(&run), updates };
    let recorded = data.profile(ctx, &recipe, &profiling)?;
    let (tier, arm, seed) = (run.card.tier.clone(), run.card.arm.clone(), run.card.seed);
    let folder = Some(run.folder.clone());
    Ok(ProfileReport { tier, arm, seed, run: folder, ..report(ctx, &recipe, recorded) })
}

/// The report without tier, arm, seed and run.
fn report(ctx: &Context, recipe: &Recipe, recorded: Recorded) -> ProfileReport {
    let Recorded { profile, other_seconds, missing } = recorded;
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    if Compute::of(&recipe.precision) != Compute::FP32 {
        ctx.progress
            .note("this arm computes in a half type, so lost values are already zero; profile an FP32 arm");
    }
    if profile.updates.iter().any(|update| update.lr == 0.0) {
        ctx.progress.note("the learning rate of some of these updates is 0: no weight moves");
    }
    let (missing_updates, failure) =
        missing.map_or_else(Default::default, |missing| (missing.updates, Some(missing.failure)));
    let seconds: Vec<f64> = profile.updates.iter().map(|update| update.seconds).collect();
    ProfileReport {
        recipe: recipe.recipe.name.clone(),
        tier: None,
        arm: String::new(),
        seed: recipe.train.seed,
        compute: ctx.compute_name(Compute::of(&recipe.precision)).to_owned(),
        run: None,
        hardware: environment.hardware(),
        environment,
        suggested: profile.suggested(),
        profiled_seconds: median(&seconds),
        other_seconds: (!other_seconds.is_empty()).then(|| median(&other_seconds)),
        updates: profile,
        missing_updates,
        failure,
    }
}

/// Asks before more than an hour of training or a download of more than a gigabyte.
pub(super) fn consent(ctx: &Context, recipe: &Recipe, base: &Path, updates: u64) -> Result<()> {
    let seconds = Some(seconds_of(ctx, recipe, base, updates)?);
    let corpus = recipe.data().corpus_to_fetch().map(CorpusDefinition::find).transpose()?;
    let missing = corpus.map(|corpus| corpus.bytes_to_download(&ctx.data_home()));
    let bytes = missing.as_ref().map_or(0, |count| count.known);
    let unknown_sizes = missing.as_ref().map_or(0, |count| count.unknown);
    gate::pass(ctx, &Cost { seconds, bytes, unknown_sizes })
}
