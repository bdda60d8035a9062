//! Stages from a recipe to a verdict:
//! `plan -> prepare -> train(arm, seed) -> evaluate(arm, seed) -> time(arms) -> judge -> record`.
//!
//! The output of a stage has a key: a hash of the recipe blocks that it depends on and of the
//! stage's version. Complete outputs are reused. New outputs are written under a temporary name and
//! renamed when complete.

pub mod bench;
mod course;
mod diff;
pub mod infer;
mod judge;
mod opened;
mod own_process;
mod plan;
mod profile;
mod record;
mod reevaluate;
mod replay;
mod reproduce;
mod side_by_side;
mod spending;
mod timing;
mod trained_terms;
mod transfer;

pub use bench::{
    ArmKernels, Bench, BenchOptions, Bound, DataMargin, Decoding, DecodingOptions, Kernels, MaxBatch,
    MaxBatchOptions, Spread, bench, decoding, kernels, max_batch, probe,
};
pub use diff::{Different, Losses, RunDifferences, ScoreDifference, diff};
pub use infer::{InferRequest, inference};
pub use judge::{Found, JudgedClaim, judge_found};
pub use opened::{opened, opened_run};
pub use plan::plan;
pub use profile::{ProfileReport, Subject, profile};
pub use reevaluate::{EvaluateRequest, evaluate, sweep};
pub use replay::{Compared, Logged, ReplayReport, ReplayRequest, replay};
pub use reproduce::{Outcome, RunScores, one_run, reproduce};

use std::collections::BTreeMap;

use zoo_recipes::{Document, Recipe, Resolved, Selection};
use zoo_results::exit::Exit;
use zoo_results::statistics::LookPlan;

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::folder::Run;
use crate::run::initial::InitialWeights;
use crate::tasks;
use crate::tracking::Folders;

/// Arguments of `zoo reproduce`.
#[derive(Debug, Clone)]
pub struct Request {
    pub document: Document,
    /// Names of the arms in the order in which they run.
    pub arms: Vec<String>,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Overrides `KEY=VALUE` of `--set`.
    pub overrides: Vec<String>,
    /// Seeds of the last look, fixed before the first run.
    pub seeds: Vec<u64>,
    /// Numbers of seeds at which claims are judged.
    pub looks: LookPlan,
    /// Evaluation sets to decode in addition to those of the claims.
    pub evals: Vec<String>,
    /// Weights that the user named, to start from instead of fresh ones.
    pub initial: Option<InitialWeights>,
    /// Weights of the runs that the arms' `train.transfer` names, by the arm of the other recipe.
    /// [`Self::sourced`] adds them.
    pub sources: BTreeMap<String, InitialWeights>,
    /// Whether to stop runs that leave the published course.
    pub stop_early: bool,
    /// Whether to train again what another program trained.
    pub own_runs: bool,
    /// Number of runs that are trained at the same time.
    pub jobs: u16,
    /// Folders of trackers that the runs are written to.
    pub track: Folders,
}

impl Request {
    /// Request for all arms with the first `seeds` seeds in one look, without changes.
    pub fn of(document: &Document, tier: Option<&str>, seeds: u32) -> Result<Self> {
        let tier = tier.map(str::to_owned);
        let first =
            document.resolve(&Selection { tier: tier.clone(), ..Selection::default() })?.recipe.train.seed;
        Ok(Self {
            document: document.clone(),
            arms: document.arms().into_iter().map(str::to_owned).collect(),
            tier,
            overrides: Vec::new(),
            seeds: (first..first.saturating_add(u64::from(seeds))).collect(),
            looks: LookPlan::fixed(seeds),
            evals: Vec::new(),
            initial: None,
            sources: BTreeMap::new(),
            stop_early: false,
            own_runs: false,
            jobs: 1,
            track: Folders::default(),
        })
    }

    /// The weights that training of an arm starts from instead of fresh ones.
    pub fn initial_of(&self, recipe: &Recipe) -> Option<&InitialWeights> {
        let named = || recipe.train.transfer.as_ref().and_then(|spec| self.sources.get(&spec.arm));
        self.initial.as_ref().or_else(named)
    }

    /// The run of an arm and seed, whether it exists or not.
    pub fn run(&self, ctx: &Context, resolved: &Resolved, seed: u64) -> Result<Run> {
        let files = tasks::of(&resolved.recipe).own_files(&resolved.folder)?;
        let run = Run::locate(ctx, resolved, &files, seed, self.initial_of(&resolved.recipe));
        if self.own_runs { run.of_this_program() } else { Ok(run) }
    }

    /// Resolves the recipe for an arm.
    pub fn resolve(&self, arm: &str) -> Result<Resolved> {
        let selection = Selection {
            arm: Some(arm.to_string()),
            tier: self.tier.clone(),
            overrides: self.overrides.clone(),
        };
        Ok(self.document.resolve(&selection)?)
    }

    /// All changes as `key=value`, for records.
    pub fn changes(&self) -> Vec<String> {
        self.overrides.iter().cloned().chain(self.initial.as_ref().and_then(InitialWeights::change)).collect()
    }

    /// Resolves the recipe for all arms of the request.
    pub fn resolve_all(&self) -> Result<Vec<Resolved>> {
        self.arms.iter().map(|arm| self.resolve(arm)).collect()
    }
}

/// The requested arms without duplicates, in the given order; all arms if `given` is empty.
///
/// # Errors
/// The recipe lacks one of the arms, or has no arms.
pub fn chosen_arms(document: &Document, given: &[String]) -> Result<Vec<String>> {
    let known: Vec<String> = document.arms().into_iter().map(str::to_owned).collect();
    if let Some(arm) = given.iter().find(|arm| !known.contains(arm)) {
        return Err(Failure::usage(format!("{} has no arm {arm}", document.name()))
            .hint(format!("its arms are {}", known.join(", "))));
    }
    let mut arms = Vec::new();
    for arm in if given.is_empty() { &known } else { given } {
        if !arms.contains(arm) {
            arms.push(arm.clone());
        }
    }
    if arms.is_empty() {
        return Err(Failure::new(Exit::Recipe, format!("{} has no arm to run", document.name()))
            .hint("a recipe needs at least one, e.g. [arm.fp32.precision] compute = \"fp32\""));
    }
    Ok(arms)
}
