//! Evidence for a recipe: a ladder of levels, each derived from existing results.
//!
//! - `schema`: body, arms and tiers resolve without a finding.
//! - `parameters`: the parameters of every arm can be counted from the recipe alone. Tests compare
//!   the count with built models.
//! - `parity`: a committed fixture of another framework has the same kinds of parts in model, loss
//!   and searches. Tests compare every tensor.
//! - `traces`: schedule and loss scaling of every arm are among the committed traces, value for
//!   value, and its optimizer is among those of its kind. Files of the corpus without a published
//!   digest are named.
//! - `smoke`: a recorded run of the tier `smoke` of this version of the recipe.
//! - `small-run`: a recorded run on the recipe's own data, of another tier or with changed keys.
//! - `full-run`: a recorded run of this version of the recipe at its published size.
//!
//! A run also proves the lower levels among the last three. The first four levels are each derived
//! separately.

pub mod rung;
mod versions;

use std::collections::BTreeMap;

use serde::Serialize;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::{ClaimSpec, Document, LossScalingSpec, OptimizerSpec, Recipe};

use self::rung::Rung;
pub use self::versions::Versions;
use crate::task::fixtures::FIXTURES;
use crate::tasks;

/// One level of a recipe's ladder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub rung: Rung,
    /// Whether the level holds.
    pub holds: bool,
    /// What the result was derived from.
    pub because: String,
}

/// The properties of a recorded run that evidence depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRun {
    /// Name of the recipe.
    pub recipe: String,
    /// [`Document::hash`] of the recipe that was run.
    pub hash: String,
    /// Tier; `None` is the published size.
    pub tier: Option<String>,
    /// Changes as given by the user, `KEY=VALUE`.
    pub overrides: Vec<String>,
    /// The recipe's claims at the time of the run.
    pub claims: Vec<ClaimSpec>,
}

impl RecordedRun {
    /// Whether this is a run of the current version of the recipe, not considering claims.
    fn is_of(&self, versions: &mut Versions<'_>) -> bool {
        versions.has(self.tier.as_deref(), &self.overrides, &self.hash, || self.claims.clone())
    }
}

/// Whether two update rules are covered by the same traces: one kind, with epsilon in the same
/// place.
pub fn same_rule(one: &OptimizerSpec, other: &OptimizerSpec) -> bool {
    // Options that change the formula. All other options are numbers.
    match (one, other) {
        (
            OptimizerSpec::Adam { epsilon_place: one, .. },
            OptimizerSpec::Adam { epsilon_place: other, .. },
        )
        | (
            OptimizerSpec::LazyAdam { epsilon_place: one, .. },
            OptimizerSpec::LazyAdam { epsilon_place: other, .. },
        ) => one == other,
        (OptimizerSpec::Adamw { decayed: one, .. }, OptimizerSpec::Adamw { decayed: other, .. }) => {
            one == other
        }
        (
            OptimizerSpec::Novograd { variant: one, grad_averaging: averaging, .. },
            OptimizerSpec::Novograd { variant: other, grad_averaging: of_other, .. },
        ) => (one, averaging) == (other, of_other),
        (
            OptimizerSpec::Sgd { nesterov: one, velocity: of_one, .. },
            OptimizerSpec::Sgd { nesterov: other, velocity: of_other, .. },
        ) => (one, of_one) == (other, of_other),
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

/// Evidence levels of a recipe, lowest first.
pub fn ladder(document: &Document, runs: &[RecordedRun]) -> Vec<Step> {
    ladder_of(document, &mut Versions::new(document), runs)
}

/// As [`ladder`], with versions of the recipe that others use as well.
pub fn ladder_of(document: &Document, versions: &mut Versions<'_>, runs: &[RecordedRun]) -> Vec<Step> {
    let step = |rung, outcome: Result<String, String>| {
        let holds = outcome.is_ok();
        Step { rung, holds, because: outcome.unwrap_or_else(|why| why) }
    };
    let arms = versions.arms(None).map(|all| of_arms(document, all.clone())).unwrap_or_default();
    let sound = !arms.is_empty() && document.tiers().iter().all(|tier| versions.arms(Some(tier)).is_some());
    let mut steps = vec![step(
        Rung::Schema,
        match sound {
            true => Ok("body, arms and tiers resolve".to_owned()),
            false => {
                let findings = document.check().err().map_or(0, |found| found.len());
                Err(format!("{findings} findings: `zoo check` shows them"))
            }
        },
    )];
    let every = |check: &dyn Fn(&Recipe) -> Result<String, String>| {
        if !sound {
            return Err("the recipe does not resolve".to_owned());
        }
        let mut said = arms.iter().map(check).collect::<Result<Vec<_>, _>>()?;
        said.dedup();
        Ok(said.join("; "))
    };
    steps.push(step(Rung::Parameters, every(&parameters)));
    steps.push(step(Rung::Parity, every(&|recipe| tasks::of(recipe).parity())));
    steps.push(step(Rung::Traces, every(&traces)));
    steps.extend(run_rungs(document, versions, runs));
    steps
}

/// The highest level that holds together with all lower levels.
pub fn reached(ladder: &[Step]) -> Option<Rung> {
    ladder.iter().take_while(|step| step.holds).last().map(|step| step.rung)
}

/// The recipe resolved for each of its arms, or its body if it has no arms.
pub fn resolved_arms(document: &Document) -> Vec<Recipe> {
    document.resolve_arms(None, &[]).map(|all| of_arms(document, all)).unwrap_or_default()
}

fn of_arms(document: &Document, mut all: BTreeMap<String, Recipe>) -> Vec<Recipe> {
    match document.arms().as_slice() {
        [] => all.into_values().collect(),
        arms => arms.iter().filter_map(|arm| all.remove(*arm)).collect(),
    }
}

fn parameters(recipe: &Recipe) -> Result<String, String> {
    let size =
        tasks::of(recipe).size().ok_or("the vocabulary size is known only after preparing the data")?;
    Ok(format!("{} parameters", size.parameters()))
}

fn traces(recipe: &Recipe) -> Result<String, String> {
    if !FIXTURES.schedules.contains(&recipe.train.schedule) {
        return Err("its schedule is not among tests/fixtures/schedules.json".to_owned());
    }
    let scaling = &recipe.precision.loss_scaling;
    if *scaling != LossScalingSpec::None && !FIXTURES.scalers.contains(scaling) {
        return Err("its loss scaling is not among tests/fixtures/scalers.json".to_owned());
    }
    if !FIXTURES.optimizers.iter().any(|other| same_rule(&recipe.train.optimizer, other)) {
        return Err("its optimizer is not among tests/fixtures/optimizers.safetensors".to_owned());
    }
    let Some(corpus) = recipe.data().corpus() else {
        let data = if recipe.data().is_generated() { "is generated" } else { "is the user's to bring" };
        return Ok(format!("schedule, loss scaling and optimizer are traced; the data {data}"));
    };
    let definition = CorpusDefinition::find(corpus).map_err(|_| format!("there is no corpus {corpus}"))?;
    let unknown: Vec<&str> = definition
        .files
        .iter()
        .filter(|(_, file)| file.source.digest == zoo_datasets::fetch::Digest::Unknown)
        .map(|(name, _)| name.as_str())
        .collect();
    match unknown.as_slice() {
        [] => Ok("schedule, loss scaling and optimizer are traced; every file has a digest".to_owned()),
        files => Ok(format!(
            "schedule, loss scaling and optimizer are traced; no published digest of {}: pinned at the first fetch",
            files.join(", ")
        )),
    }
}

fn run_rungs(document: &Document, versions: &mut Versions<'_>, runs: &[RecordedRun]) -> Vec<Step> {
    let own: Vec<&RecordedRun> = runs.iter().filter(|run| run.recipe == document.name()).collect();
    let mut same = |tier: Option<&str>| {
        let of_tier = own.iter().filter(|run| run.tier.as_deref() == tier);
        of_tier.filter(|run| run.is_of(versions)).count()
    };
    let counted = |n: usize| format!("{n} in the ledgers");
    let full = match same(None) {
        0 if own.iter().any(|run| run.tier.is_none() && run.overrides.is_empty()) => {
            Err("recorded, but of another version of the recipe".to_owned())
        }
        0 => Err("none recorded".to_owned()),
        n => Ok(counted(n)),
    };
    let small = own
        .iter()
        .filter(|run| match run.tier.as_deref() {
            Some("smoke") => false,
            Some(_) => true,
            None => !run.overrides.is_empty(),
        })
        .count();
    let small = if small > 0 { Ok(counted(small)) } else { Err("none recorded".to_owned()) };
    let smoke = match same(Some("smoke")) {
        0 => Err("none recorded of this version".to_owned()),
        n => Ok(counted(n)),
    };
    let mut steps = Vec::new();
    let mut above: Option<&'static str> = None;
    for (rung, outcome) in [(Rung::FullRun, full), (Rung::SmallRun, small), (Rung::Smoke, smoke)] {
        let (holds, because) = match (outcome, above) {
            (Ok(because), _) => (true, because),
            (Err(_), Some(above)) => (true, format!("shown by the {above}")),
            (Err(because), None) => (false, because),
        };
        if holds && above.is_none() {
            above = Some(rung.name());
        }
        steps.push(Step { rung, holds, because });
    }
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use zoo_recipes::Selection;

    use super::*;

    fn document(name: &str) -> Document {
        Document::load(name).unwrap()
    }

    fn run(document: &Document, tier: Option<&str>) -> RecordedRun {
        RecordedRun {
            recipe: document.name().to_owned(),
            hash: document.hash(tier, &[]).unwrap(),
            tier: tier.map(str::to_owned),
            overrides: Vec::new(),
            claims: Vec::new(),
        }
    }

    #[test]
    fn fixtures_are_read_and_carry_the_toy_to_its_traces() {
        assert!(FIXTURES.schedules.len() >= 8 && FIXTURES.scalers.len() >= 3);
        let toy = document("reversal-transformer");
        let steps = ladder(&toy, &[]);
        assert_eq!(reached(&steps), Some(Rung::Traces), "{steps:#?}");
    }

    #[test]
    fn every_recipe_has_a_fixture_of_its_parts_and_traces_of_its_rules() {
        for name in zoo_recipes::names() {
            let steps = ladder(&document(name), &[]);
            assert!(reached(&steps) >= Some(Rung::Traces), "{name}: {steps:#?}");
        }
    }

    #[test]
    fn runs_climb_and_an_old_version_does_not_count() {
        let toy = document("reversal-transformer");
        let smoke = run(&toy, Some("smoke"));
        let full = run(&toy, None);
        assert_eq!(reached(&ladder(&toy, std::slice::from_ref(&smoke))), Some(Rung::Smoke));
        assert_eq!(reached(&ladder(&toy, &[smoke.clone(), full.clone()])), Some(Rung::FullRun));
        // A full run implies a smoke run.
        assert_eq!(reached(&ladder(&toy, std::slice::from_ref(&full))), Some(Rung::FullRun));
        let old = RecordedRun { hash: "0".repeat(64), ..full.clone() };
        assert_eq!(reached(&ladder(&toy, &[old])), Some(Rung::Traces));
        // A run of a version that differs only in its claims counts. A run of any other version
        // does not.
        let mut then: Vec<ClaimSpec> = toy.resolve(&Selection::default()).unwrap().recipe.claim.clone();
        then.iter_mut().for_each(|claim| claim.note = Some("another text".to_owned()));
        let mut arms = toy.resolve_arms(None, &[]).unwrap();
        arms.values_mut().for_each(|recipe| recipe.claim.clone_from(&then));
        let hash = zoo_recipes::hash_of_arms(&arms);
        let reworded = RecordedRun { hash, claims: then.clone(), ..full.clone() };
        assert_eq!(reached(&ladder(&toy, std::slice::from_ref(&reworded))), Some(Rung::FullRun));
        arms.values_mut().for_each(|recipe| recipe.train.seed += 1);
        let retrained = RecordedRun { hash: zoo_recipes::hash_of_arms(&arms), ..reworded };
        assert_eq!(reached(&ladder(&toy, &[retrained])), Some(Rung::Traces));
        let other = RecordedRun { recipe: "transformer-base".into(), ..full.clone() };
        assert_eq!(reached(&ladder(&toy, &[other])), Some(Rung::Traces));
        // Changing a free key gives the same recipe; changing any other key does not.
        for (change, rung) in
            [("train.log_every=7", Rung::FullRun), ("train.schedule.lr=0.5", Rung::SmallRun)]
        {
            let overrides = vec![change.to_owned()];
            let hash = toy.hash(None, &overrides).unwrap();
            let changed = RecordedRun { hash, overrides, ..full.clone() };
            assert_eq!(reached(&ladder(&toy, &[changed])), Some(rung), "{change}");
        }
    }

    #[test]
    fn a_part_without_a_fixture_stops_the_climb() {
        let changed = |recipe: &str, file: &str, old: &str, new: &str| {
            assert!(recipe.contains(old), "{file} has no {old}");
            let text = recipe.replace(old, new);
            let other = Document::parse(&text, file, std::path::Path::new("")).unwrap();
            reached(&ladder(&other, &[]))
        };
        let toy = include_str!("../../../../recipes/schema/tests/written-out/reversal-transformer.toml");
        let positions =
            ["sinusoid-tensor2tensor", "sinusoid-paper"].map(|kind| format!("positions = \"{kind}\""));
        let found = changed(toy, "reversal-transformer.toml", &positions[0], &positions[1]);
        assert_eq!(found, Some(Rung::Parameters));
        // The attention guide has a fixture with NVIDIA's system, but not with this one.
        let system = document("tacotron2");
        let plain = "kind = \"spectrogram\"\npadding = false";
        let guided = format!("{plain}\nguide = {{ width = 0.2, weight = 1.0 }}");
        let found = changed(system.text(), "tacotron2.toml", plain, &guided);
        assert_eq!(found, Some(Rung::Parameters));
    }
}
