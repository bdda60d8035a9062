//! `zoo replay`: an update of a run, computed again as it was recorded, or in two types.

use std::fmt;
use std::path::PathBuf;

use burn::tensor::FloatDType;
use serde::Serialize;
use zoo_models::precision::Compute;
use zoo_results::exit::Exit;
use zoo_results::replay::{Limits, Reference, TensorDifferences};
use zoo_training::checkpoint::{Checkpoint, read_state};
use zoo_training::state::Ending;

use super::opened::opened_run;
use super::profile::consent;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::run::data::Sets;
use crate::run::folder::Run;
use crate::run::log::{LoggedUpdates, of_update};
use crate::run::replay::{Computed, Question, Replayed, Replaying};
use crate::tasks;

/// What to replay.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayRequest {
    /// The run's folder, or a file in it.
    pub run: PathBuf,
    /// Number of the update.
    pub update: u64,
    /// The other type, if the update is computed in two types.
    pub compute: Option<Compute>,
    /// Largest relative error of a tensor; `None` for that of the types.
    pub limit: Option<f64>,
}

/// A replayed update.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayReport {
    /// Name of the recipe.
    pub recipe: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Name of the arm.
    pub arm: String,
    /// Seed of weights and batches.
    pub seed: u64,
    /// Folder of the run.
    pub run: PathBuf,
    /// The run's own type of matrix products.
    pub compute: String,
    /// Number of the update.
    pub update: u64,
    /// Updates of the state that the replay began with; 0 for the start of the recipe.
    pub begun: u64,
    /// The update in the run's own type.
    pub computed: Computed,
    /// Comparison with the log. `None` if the log has no line on the update, and with two types.
    pub logged: Option<Logged>,
    /// Comparison with the other type.
    pub compared: Option<Compared>,
    /// Program and machine of the replay.
    pub environment: Environment,
    /// What differs between the sessions that made the update and the replay. `None` if the log does
    /// not state their programs and machines.
    pub changed: Option<Vec<Changed>>,
}

/// Comparison with a line of the log.
#[derive(Debug, Clone, Serialize)]
pub struct Logged {
    /// The first update that the line covers.
    pub first: u64,
    /// The last update that the line covers.
    pub last: u64,
    /// Whether all numbers have the same bits.
    pub same: bool,
    /// The numbers.
    pub numbers: Vec<LoggedNumber>,
}

/// A number of a line of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoggedNumber {
    /// Name of the number.
    pub name: &'static str,
    /// The recorded value; `None` if it was not finite.
    pub recorded: Option<f64>,
    /// The replayed value; `None` if it is not finite.
    pub replayed: Option<f64>,
    /// Whether the values have the same bits.
    pub same: bool,
}

/// Comparison of an update in two types.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// The other type.
    pub compute: String,
    /// The type that the errors are relative to.
    pub reference: String,
    /// Largest relative errors.
    pub limits: Limits,
    /// Whether every tensor is within the limit, and both computations made the update.
    pub within: bool,
    /// The update in the other type.
    pub computed: Computed,
    /// The tensors.
    #[serde(flatten)]
    pub differences: TensorDifferences,
}

/// A property of program or machine that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Name of the property.
    pub what: &'static str,
    /// Its value when the update was recorded.
    pub recorded: String,
    /// Its value now.
    pub here: String,
}

impl Serialize for Changed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let [recorded, here] =
            [&self.recorded, &self.here].map(|text| Environment::value_of(self.what, text));
        serde_json::json!({ "what": self.what, "recorded": recorded, "here": here }).serialize(serializer)
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} when recorded, {} here", self.what, self.recorded, self.here)
    }
}

/// Replays an update.
///
/// # Errors
/// The device is not the CPU, the run does not have the update or cannot repeat it, or the plan was
/// refused.
pub fn replay(ctx: &Context, request: &ReplayRequest) -> Result<ReplayReport> {
    if !ctx.device.is_cpu() {
        let message =
            format!("zoo replay reads the values of an update on the CPU, not on {}", ctx.device.settled());
        return Err(Failure::new(Exit::Device, message).hint("--device cpu"));
    }
    let (run, recipe) = opened_run(&request.run, "zoo replay")?;
    let ctx = &ctx.for_run(&run.card.compute)?.reading(Some(run.folder.clone()));
    let update = request.update;
    let of_log = of_update(&run.folder.join("log.jsonl"), update)?;
    let states = states(ctx, &run);
    check_made(&run, request, of_log.made, &states)?;
    let state = state_before(ctx, &run, update, &states)?;
    let begun = state.map_or(0, |state| state.update);

    let own = Compute::of(&recipe.precision);
    let question = match request.compute {
        Some(other) => {
            let limits = request.limit.map_or_else(|| usual_limits(own, other), Limits::all);
            Question::Types { other, reference: reference(own, other), limits }
        }
        None => {
            let covered = of_log.line.as_ref().map_or((update, update), |line| (line.first, line.last));
            Question::Line { first: covered.0, last: covered.1 }
        }
    };
    let last = match question {
        Question::Line { last, .. } => last,
        // The update is computed twice.
        Question::Types { .. } => update.saturating_add(1),
    };
    consent(ctx, &recipe, &run.card.base, last.saturating_sub(begun))?;
    let data = tasks::of(&recipe).prepare(ctx, &run.card.base, Sets::All)?;
    data.check(&recipe, &run)?;
    let state = state.map(|state| state.path.as_path());
    let replayed = data.replay(ctx, &recipe, &Replaying { run: &run, update, state, question })?;
    let Replayed { update: computed, line, other } = replayed;

    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let compared = match (question, other) {
        (Question::Types { other, reference, limits }, Some((of_other, differences))) => {
            Some(compared(ctx, [own, other], reference, limits, of_other, differences))
        }
        _ => None,
    };
    Ok(ReplayReport {
        recipe: run.card.recipe.clone(),
        tier: run.card.tier.clone(),
        arm: run.card.arm.clone(),
        seed: run.card.seed,
        run: run.folder.clone(),
        compute: ctx.compute_name(own).to_owned(),
        update,
        begun,
        computed,
        logged: of_log.line.zip(line).map(|(line, computed)| logged(&line, &computed)),
        compared,
        changed: changed_of_all(&of_log.environments, &environment),
        environment,
    })
}

/// A state of the run.
struct State {
    path: PathBuf,
    update: u64,
    /// Whether training ended here because attempts at the next update stayed not finite.
    diverged: bool,
}

/// The states of a run whose heads can be read, newest first.
fn states(ctx: &Context, run: &Run) -> Vec<State> {
    let paths = run.checkpoints().states().unwrap_or_default();
    let read = |path: PathBuf| match read_state(&path) {
        Ok(state) => state.map(|state| State {
            path,
            update: state.counters.update,
            diverged: matches!(state.ending, Some(Ending::Diverged { .. })),
        }),
        Err(error) => {
            ctx.progress.note(&error.to_string());
            None
        }
    };
    paths.into_iter().filter_map(read).collect()
}

/// Checks that the run made the update. In two types, the last attempt at the update that a run never
/// made can be computed again, too.
fn check_made(run: &Run, request: &ReplayRequest, logged: u64, states: &[State]) -> Result<()> {
    let update = request.update;
    let made = states.iter().map(|state| state.update).fold(logged, u64::max);
    let failed = states.iter().any(|state| state.diverged) && update == made.saturating_add(1);
    if update <= made || failed && request.compute.is_some() {
        return Ok(());
    }
    let failure = Failure::usage(format!("the run never made update {update}: its last one is {made}"));
    Err(match made {
        _ if failed => {
            failure.hint("it diverged there: --compute fp32, or another type, compares the last attempt")
        }
        0 => failure.hint(format!("zoo log {} shows the updates of the run", run.folder.display())),
        _ => failure.hint(format!("--update {made}, or an earlier one")),
    })
}

/// The newest intact state before an update; `None` for the start of the recipe. Training does not go
/// on from where it diverged.
///
/// # Errors
/// There is none, and the run did not begin with fresh weights.
fn state_before<'s>(ctx: &Context, run: &Run, update: u64, states: &'s [State]) -> Result<Option<&'s State>> {
    let states: Vec<&State> = states.iter().filter(|state| !state.diverged).collect();
    for state in states.iter().copied().filter(|state| state.update < update) {
        match Checkpoint::read(&state.path) {
            Ok(_) => return Ok(Some(state)),
            Err(error) => ctx.progress.note(&error.to_string()),
        }
    }
    let given = run.card.overrides.iter().find(|change| change.starts_with("init-from="));
    let began = match (&run.card.transfer, given) {
        (Some(origin), _) => origin.to_string(),
        (None, Some(given)) => given.clone(),
        (None, None) => {
            let why = match states.last() {
                Some(state) => format!("its oldest state is of update {}", state.update),
                None => "it has no earlier state".to_owned(),
            };
            ctx.progress.note(&format!("{why}, so the replay begins with the start of the recipe"));
            return Ok(None);
        }
    };
    let message = format!(
        "no state of the run is before update {update}, and it did not begin with fresh weights: {began}"
    );
    Err(Failure::usage(message).hint(match states.last() {
        Some(state) => format!("--update {}, or a later one", state.update.saturating_add(1)),
        None => "no earlier state of the run is left; train it again".to_owned(),
    }))
}

/// Number of significant bits of a type.
fn precision(compute: Compute) -> u32 {
    match compute.0 {
        FloatDType::BF16 => 8,
        FloatDType::F16 => 11,
        _ => 24,
    }
}

/// The computation that the errors are relative to.
fn reference(own: Compute, other: Compute) -> Reference {
    if precision(other) > precision(own) { Reference::Second } else { Reference::First }
}

/// Limits of the relative errors between two types, in unit roundoffs of the less exact one: 2^-11 for
/// fp16, 2^-8 for bf16.
///
/// Outputs: 8. A rounding to nearest with p significant bits changes a value by at most the fraction
/// 2^-p. Independent roundings add up like a random walk, so 8 allow a chain of 64 roundings between
/// the input and the output. `zoo align` allows 10 (5e-3 and 4e-2), of the worst value.
///
/// Gradients and new weights: 64. The gradient of a softmax, p (g - sum p g), is a small difference of
/// large terms where attention is even: the errors of g grow by the factor of the cancellation. A
/// ReLU whose input is close to 0 may pass a gradient in one type only. In five updates of each arm of
/// the toy in docs/mixed-precision.md, in fp16 and fp32, outputs differ by up to 2 and gradients by up
/// to 39, but by 264 in the one update where the input of a ReLU changes its sign. `zoo align` allows
/// nine in ten elements 100 (5e-2) in fp16.
///
/// Within one type nothing may differ.
fn usual_limits(own: Compute, other: Compute) -> Limits {
    if own == other {
        return Limits::all(0.0);
    }
    let roundoff = (-f64::from(precision(own).min(precision(other)))).exp2();
    Limits { forward: 8.0 * roundoff, backward: 64.0 * roundoff }
}

fn compared(
    ctx: &Context,
    [own, other]: [Compute; 2],
    reference: Reference,
    limits: Limits,
    computed: Computed,
    differences: TensorDifferences,
) -> Compared {
    let exact = match reference {
        Reference::First => own,
        Reference::Second => other,
    };
    Compared {
        compute: ctx.compute_name(other).to_owned(),
        reference: ctx.compute_name(exact).to_owned(),
        limits,
        within: differences.is_within(),
        computed,
        differences,
    }
}

/// Compares the numbers that a line has.
fn logged(line: &LoggedUpdates, computed: &Computed) -> Logged {
    let Computed { loss, grad_norm, scale, lr, tokens, skipped, updates: _ } = *computed;
    let replayed = [
        ("loss", loss),
        ("grad_norm", grad_norm),
        ("scale", scale),
        ("skipped", skipped as f64),
        ("lr", lr),
        ("tokens", tokens as f64),
    ];
    let compare = |(name, replayed): (&'static str, f64)| {
        let recorded = line.number(name)?;
        // As in JSON, which has no infinities and no NaN.
        let replayed = Some(replayed).filter(|value| value.is_finite());
        let same = recorded.map(f64::to_bits) == replayed.map(f64::to_bits);
        Some(LoggedNumber { name, recorded, replayed, same })
    };
    let numbers: Vec<LoggedNumber> = replayed.into_iter().filter_map(compare).collect();
    let same = numbers.iter().all(|number| number.same);
    Logged { first: line.first, last: line.last, same, numbers }
}

/// What differs between the sessions of a line and the replay, each difference once; `None` if the log
/// does not state all of the sessions' environments.
fn changed_of_all(recorded: &[Option<Environment>], here: &Environment) -> Option<Vec<Changed>> {
    let recorded: Option<Vec<&Environment>> = recorded.iter().map(Option::as_ref).collect();
    let recorded = recorded.filter(|recorded| !recorded.is_empty())?;
    let mut found: Vec<Changed> = Vec::new();
    for one in recorded.into_iter().flat_map(|recorded| changed(recorded, here)) {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Some(found)
}

/// What a result depends on and differs between two environments.
fn changed(recorded: &Environment, here: &Environment) -> Vec<Changed> {
    let found = recorded.differences(here).into_iter();
    found.map(|(what, recorded, here)| Changed { what, recorded, here }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FP16: Compute = Compute(FloatDType::F16);
    const BF16: Compute = Compute(FloatDType::BF16);

    #[test]
    fn the_limit_is_that_of_the_less_exact_type_and_errors_are_relative_to_the_other_one() {
        for (own, other, forward, exact) in [
            (Compute::FP32, FP16, 1.0 / 256.0, Reference::First),
            (FP16, Compute::FP32, 1.0 / 256.0, Reference::Second),
            (FP16, BF16, 1.0 / 32.0, Reference::First),
            (BF16, Compute::FP32, 1.0 / 32.0, Reference::Second),
            (BF16, BF16, 0.0, Reference::First),
        ] {
            let limits = Limits { forward, backward: 8.0 * forward };
            assert_eq!((usual_limits(own, other), reference(own, other)), (limits, exact));
        }
    }

    #[test]
    fn what_differs_between_two_environments_is_named() {
        let here = Environment::current("cpu", 2);
        let other = Environment { threads: 1, commit: "abc".into(), ..here.clone() };
        let found = changed(&other, &here);
        assert_eq!(found.iter().map(|one| one.what).collect::<Vec<_>>(), ["program", "threads"]);
        assert_eq!(found[1].to_string(), "threads 1 when recorded, 2 here");
        assert!(changed(&here, &here).is_empty());
        let all = |recorded: &[Option<Environment>]| {
            changed_of_all(recorded, &here).map(|found| found.iter().map(|one| one.what).collect::<Vec<_>>())
        };
        let two = [Some(here.clone()), Some(other.clone()), Some(other)];
        assert_eq!(all(&two), Some(vec!["program", "threads"]));
        assert_eq!((all(&two[..1]), all(&[]), all(&[None])), (Some(Vec::new()), None, None));
    }
}
