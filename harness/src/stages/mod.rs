//! From a recipe to a verdict: `plan -> prepare -> train(arm, seed) -> evaluate(arm, seed) -> time(arms) -> judge -> record`.
//!
//! A stage's output has a key: a hash of the blocks of the recipe that it depends on and of the stage's own version. What is
//! there, and whole, is not made again; what is made goes to a temporary name first.

pub mod bench;
pub mod data;
pub mod evaluate;
pub mod infer;
mod initial;
mod judge;
mod plan;
pub mod ready;
mod record;
mod reproduce;
pub mod run;
mod run_log;
mod samples;
mod spending;
pub mod sweep;
pub mod timed_arm;
mod timing;
mod train;
mod trajectory;

pub use bench::{
    Bench, BenchOptions, Bound, DataMargin, Decoding, DecodingOptions, MaxBatch, MaxBatchOptions, Shape,
    Spread, bench, decoding, max_batch, probe,
};
pub use evaluate::{EvaluateRequest, Evaluation, evaluate, read_evaluation, stored, sweep};
pub use infer::{InferRequest, Inference};
pub use initial::{InitialWeights, run_weights};
pub use judge::{Found, JudgedClaim, judge_found};
pub use plan::plan;
pub use reproduce::{Outcome, RunScores, reproduce};
pub use run::{Card, Made, Run, Trained, evaluation_files};
pub use sweep::{Swept, SweptWeights};
pub use trajectory::kept as kept_points;

use zoo_recipes::{Document, Resolved, Selection};
use zoo_results::exit::Exit;
use zoo_results::statistics::LookPlan;

use crate::context::Context;
use crate::error::{Failure, Result};

/// What `zoo reproduce` was asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The recipe.
    pub document: Document,
    /// Arms, in the order in which they run.
    pub arms: Vec<String>,
    /// A size other than the published one.
    pub tier: Option<String>,
    /// `--set key=value`.
    pub overrides: Vec<String>,
    /// Seeds of the last look, fixed before the first run.
    pub seeds: Vec<u64>,
    /// At how many of them verdicts are sought.
    pub looks: LookPlan,
    /// Evaluation sets to decode besides those of the claims.
    pub evals: Vec<String>,
    /// Weights to start from instead of fresh ones.
    pub initial: Option<InitialWeights>,
    /// End runs that leave the published course.
    pub stop_early: bool,
    /// Train again what another program trained.
    pub own_runs: bool,
}

impl Request {
    /// All arms with this many seeds from the recipe's first on, in one look; nothing changed.
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
            stop_early: false,
            own_runs: false,
        })
    }

    /// SHA-256 of the weights that training starts from instead of fresh ones.
    fn initial_digest(&self) -> Option<&str> {
        self.initial.as_ref().map(|initial| initial.digest.as_str())
    }

    /// The run of an arm and seed, whether it exists or not.
    pub fn run(&self, ctx: &Context, resolved: &Resolved, seed: u64) -> Result<Run> {
        let run = Run::locate(ctx, resolved, seed, self.initial_digest())?;
        if self.own_runs { run.of_this_program() } else { Ok(run) }
    }

    /// The recipe as an arm has it.
    pub fn resolve(&self, arm: &str) -> Result<Resolved> {
        let selection = Selection {
            arm: Some(arm.to_string()),
            tier: self.tier.clone(),
            overrides: self.overrides.clone(),
        };
        Ok(self.document.resolve(&selection)?)
    }

    /// `key=value` of everything that was changed, for records.
    pub fn changes(&self) -> Vec<String> {
        self.overrides.iter().cloned().chain(self.initial_digest().map(run::initial_override)).collect()
    }

    /// All arms, resolved.
    pub fn resolve_all(&self) -> Result<Vec<Resolved>> {
        self.arms.iter().map(|arm| self.resolve(arm)).collect()
    }
}

/// The arms that were asked for, each once, in that order; all if none was named.
///
/// # Errors
/// An arm that the recipe does not have, or a recipe without arms.
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
