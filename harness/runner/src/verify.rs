//! Re-check of the levels of [`crate::evidence`]: recomputes what the ladder derives from existing
//! results.
//!
//! - `schema`: body, arms and tiers are resolved, written as TOML and read back to the same recipe.
//! - `parameters`: the model is built, and its parameters are compared with the arithmetic.
//! - `parity`: every fixture with the same kinds of parts is recomputed, tensor by tensor,
//!   including the fixtures of the searches.
//! - `traces`: schedule, loss scaling and update rule are followed value for value.
//! - `smoke`: the tier `smoke` is trained, decoded, scored and judged, and its ledger rechecked, in
//!   a temporary folder.
//! - `small-run`, `full-run`: scores and verdicts of the recorded runs are recomputed from their
//!   stored hypotheses.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use zoo_models::precision::Compute;
use zoo_recipes::{Document, LossScalingSpec, Recipe, Selection};
use zoo_results::exit::Exit;
use zoo_results::ledger::{Entry, Recheck, recheck};
use zoo_results::report::grouped;
use zoo_training::traces::{RuleTraces, ScalerTrace, ScheduleTrace};

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::rung::Rung;
use crate::evidence::{resolved_arms, same_rule};
use crate::records::{self, HYPOTHESES};
use crate::rescore::FromRecipes;
use crate::stages::{Request, reproduce};
use crate::task::aligner::{Aligner, Files, Found};
use crate::tasks;

/// Models with more parameters are built with one and with two layers per side instead of all
/// layers, if such a model is possible.
const BUILT_WHOLE: u64 = 20_000_000;

/// Result of checking a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Climbed {
    pub rung: Rung,
    /// Whether the level holds.
    pub holds: bool,
    /// Description of what was done and found.
    pub what: String,
    /// Duration of the check.
    pub seconds: f64,
}

/// Checks the levels of recipes. Fixtures that several recipes share are computed once.
pub struct Climber<'c> {
    context: &'c Context,
    aligner: Aligner,
    /// Records that the upper levels are derived from, with the folder of their hypotheses.
    ledgers: Vec<(Vec<Entry>, PathBuf)>,
}

impl<'c> Climber<'c> {
    /// Checks against the fixtures in `folder`, or the built-in ones, and against the ledgers at
    /// these paths.
    ///
    /// # Errors
    /// A ledger is damaged, the device cannot be opened, or it lacks the precision.
    pub fn new(
        context: &'c Context,
        compute: Compute,
        folder: Option<&Path>,
        ledgers: &[PathBuf],
    ) -> Result<Self> {
        let mut read = Vec::new();
        for path in ledgers {
            let ledger = records::ledger(context, Some(path));
            let folder = path.parent().unwrap_or(Path::new("")).join(HYPOTHESES);
            read.push((ledger.entries()?, folder));
        }
        let files = folder.map_or(Files::Carried, |folder| Files::Folder(folder.to_owned()));
        let device = context.open_device_for(compute)?;
        let aligner = Aligner::new(device, context.device.settled().to_string(), compute, files);
        Ok(Self { context, aligner, ledgers: read })
    }

    /// Checks the levels up to `to` and stops at the first failure, which is the last item of the
    /// result.
    ///
    /// # Errors
    /// The user pressed Ctrl-C.
    pub fn climb(&mut self, document: &Document, to: Rung) -> Result<Vec<Climbed>> {
        let mut climbed: Vec<Climbed> = Vec::new();
        for rung in Rung::ALL.into_iter().filter(|rung| *rung <= to) {
            self.context.check_stop()?;
            let start = Instant::now();
            let found = match rung {
                Rung::Schema => schema(document),
                Rung::Parameters => self.arms(document, |_, recipe| built(recipe)),
                Rung::Parity => {
                    self.arms(document, |climber, recipe| tasks::of(recipe).align(&mut climber.aligner))
                }
                Rung::Traces => self.arms(document, Self::traces),
                Rung::Smoke => self.smoke(document)?,
                Rung::SmallRun => self.recorded(document, false),
                Rung::FullRun => self.recorded(document, true),
            };
            let holds = found.is_ok();
            let what = found.unwrap_or_else(|broken| broken);
            climbed.push(Climbed { rung, holds, what, seconds: start.elapsed().as_secs_f64() });
            if !holds {
                break;
            }
        }
        Ok(climbed)
    }

    /// Runs a check on every arm. Equal results are listed once.
    fn arms(&mut self, document: &Document, check: fn(&mut Self, &Recipe) -> Found) -> Found {
        let mut said: Vec<String> = Vec::new();
        for recipe in resolved_arms(document) {
            let found = check(self, &recipe)?;
            if !said.contains(&found) {
                said.push(found);
            }
        }
        Ok(said.join("; "))
    }

    fn traces(&mut self, recipe: &Recipe) -> Found {
        let schedules = ScheduleTrace::read_all(&self.aligner.bytes("schedules.json")?)?;
        let mut values = 0;
        let mut of = schedules.iter().filter(|trace| trace.schedule == recipe.train.schedule).peekable();
        if of.peek().is_none() {
            return Err("its schedule is not among tests/fixtures/schedules.json".to_owned());
        }
        for trace in of {
            values += trace.follow()?;
        }
        let scaling = &recipe.precision.loss_scaling;
        let mut followed = vec!["schedule"];
        if *scaling != LossScalingSpec::None {
            let scalers = ScalerTrace::read_all(&self.aligner.bytes("scalers.json")?)?;
            let mut of = scalers.iter().filter(|trace| trace.scaler == *scaling).peekable();
            if of.peek().is_none() {
                return Err("its loss scaling is not among tests/fixtures/scalers.json".to_owned());
            }
            for trace in of {
                values += trace.follow()?;
            }
            followed.push("loss scaling");
        }
        let rules = RuleTraces::read(&self.aligner.bytes("optimizers.safetensors")?)?;
        let alike: Vec<&String> = (rules.rules.iter())
            .filter(|(_, rule)| same_rule(&recipe.train.optimizer, rule))
            .map(|(name, _)| name)
            .collect();
        if alike.is_empty() {
            return Err("its optimizer is not among tests/fixtures/optimizers.safetensors".to_owned());
        }
        for name in alike {
            values += rules.follow(name)?;
        }
        followed.push("update rule");
        Ok(format!("{}: {} values", followed.join(", "), grouped(values as u64)))
    }

    /// Trains the smallest tier in a temporary home.
    fn smoke(&self, document: &Document) -> Result<Found> {
        if !document.tiers().contains(&"smoke") {
            return Ok(Err("the recipe has no tier smoke".to_owned()));
        }
        let home = tempfile::tempdir()
            .map_err(|error| Failure::new(Exit::Internal, format!("cannot make a folder: {error}")))?;
        let context = self.context.quiet_within(home.path());
        let request = Request::of(document, Some("smoke"), 1)?;
        let outcome = match reproduce(&context, &request) {
            Ok(outcome) => outcome,
            Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
            Err(failure) => return Ok(Err(failure.to_string())),
        };
        let entries = records::ledger(&context, None).entries()?;
        let folder = context.home.join(HYPOTHESES);
        let found = recheck(&entries, &folder, &mut FromRecipes::new(&context, &folder));
        Ok(agreed(&found).map(|scores| format!("{} runs, {scores}", outcome.runs.len())))
    }

    /// Recomputes the recorded runs of a recipe.
    fn recorded(&self, document: &Document, published: bool) -> Found {
        let mut said = Vec::new();
        for (entries, folder) in &self.ledgers {
            let of: Vec<Entry> = (entries.iter())
                .filter(|entry| {
                    let record = &entry.record;
                    let tier = record.tier.as_deref();
                    let of = record.recipe == document.name() && records::is_own_run(record);
                    of && match published {
                        true => {
                            tier.is_none()
                                && document.is_what_ran(tier, &record.changes(), &record.recipe_hash)
                        }
                        false => tier != Some("smoke"),
                    }
                })
                .cloned()
                .collect();
            if !of.is_empty() {
                let found = recheck(&of, folder, &mut FromRecipes::new(self.context, folder));
                said.push(format!("{} recorded, {}", of.len(), agreed(&found)?));
            }
        }
        if said.is_empty() { Err("none recorded".to_owned()) } else { Ok(said.join("; ")) }
    }
}

/// Result of a recheck.
fn agreed(found: &Recheck) -> Found {
    match found.disagreements.first() {
        None => Ok(format!("{} scores and {} verdicts derived again", found.scores, found.verdicts)),
        Some(one) => Err(format!("record {}: {}: {}", one.sequence, one.what, one.how)),
    }
}

fn schema(document: &Document) -> Found {
    document.check().map_err(|found| found.to_string())?;
    let (arms, tiers) = (document.arms(), document.tiers());
    let with_none = |names: &[&str]| -> Vec<Option<String>> {
        std::iter::once(None).chain(names.iter().map(|name| Some((*name).to_owned()))).collect()
    };
    let mut resolutions = 0;
    for tier in with_none(&tiers) {
        for arm in with_none(&arms) {
            let selection = Selection { arm: arm.clone(), tier: tier.clone(), overrides: Vec::new() };
            let resolved = document.resolve(&selection).map_err(|found| found.to_string())?;
            let again = Recipe::from_toml(&resolved.toml).map_err(|error| error.to_string())?;
            if again.hash() != resolved.hash {
                let name = |part: Option<String>| part.unwrap_or_else(|| "none".to_owned());
                return Err(format!(
                    "tier {}, arm {}: its TOML reads back as another",
                    name(tier),
                    name(arm)
                ));
            }
            resolutions += 1;
        }
    }
    let (arms, tiers) = (arms.len(), tiers.len());
    Ok(format!("{arms} arms, {tiers} tiers: {resolutions} resolutions read back alike"))
}

/// Builds a model and compares its number of parameters with the arithmetic.
fn built(recipe: &Recipe) -> Found {
    let (whole, words) = tasks::of(recipe).counted()?;
    if whole > BUILT_WHOLE {
        let cut = [with_layers(recipe, 1)?, with_layers(recipe, 2)?];
        // A chain of layers does not fit without its last ones: it is built whole.
        if cut.iter().all(|recipe| tasks::of(recipe).fits()) {
            let [one, two] = [count(&cut[0])?, count(&cut[1])?].map(grouped);
            return Ok(format!("{one} and {two} built with {words} and 1 and 2 layers, as counted"));
        }
    }
    Ok(format!("{} built with {words}, as counted", grouped(count(recipe)?)))
}

/// Number of parameters of the built model. Fails if it differs from the arithmetic.
fn count(recipe: &Recipe) -> std::result::Result<u64, String> {
    let task = tasks::of(recipe);
    let ((expected, _), found) = (task.counted()?, task.built()?);
    match found == expected {
        true => Ok(found),
        false => Err(format!("built, it has {} parameters, not {}", grouped(found), grouped(expected))),
    }
}

/// The recipe with at most `most` layers of each kind in its model.
fn with_layers(recipe: &Recipe, most: u64) -> std::result::Result<Recipe, String> {
    fn cut(value: &mut serde_json::Value, most: u64) {
        let Some(members) = value.as_object_mut() else { return };
        for (key, value) in members {
            match value.as_u64() {
                Some(layers) if key == "layers" || key == "asking_layer" => *value = layers.min(most).into(),
                _ => match value.as_array_mut().filter(|_| key == "layer") {
                    Some(layers) => {
                        layers.truncate(most as usize);
                        for repeat in layers.iter_mut().filter_map(|layer| layer.get_mut("repeat")) {
                            *repeat = repeat.as_u64().unwrap_or(1).min(most).into();
                        }
                    }
                    None => cut(value, most),
                },
            }
        }
    }
    let mut json = serde_json::to_value(recipe).map_err(|error| error.to_string())?;
    cut(&mut json["model"], most);
    Recipe::from_json(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(recipe: &Recipe) -> u64 {
        tasks::of(recipe).counted().unwrap().0
    }

    #[test]
    fn a_chain_of_layers_is_built_whole() {
        let document = Document::load("imdb-fasttext-bigrams-keras").unwrap();
        let recipe = document.resolve(&Selection::default()).unwrap().recipe;
        assert!(!tasks::of(&with_layers(&recipe, 2).unwrap()).fits());
        assert_eq!(built(&recipe).unwrap(), "60,272,201 built with 1,205,443 words, as counted");
    }

    #[test]
    fn layers_are_cut_on_both_sides() {
        let recipe =
            Document::load("transformer-big").unwrap().resolve(&Selection::default()).unwrap().recipe;
        let small = with_layers(&recipe, 2).unwrap();
        let width = |recipe: &Recipe| recipe.block("model")["width"].as_u64().unwrap();
        assert_eq!(width(&small), width(&recipe));
        // Each side has six layers. Two of them are a third of all parameters outside tables and
        // last norms.
        let rest = 68 * width(&recipe);
        assert_eq!(3 * (counted(&small) - rest), counted(&recipe) - rest);
        let recipe = Document::load("convs2s").unwrap().resolve(&Selection::default()).unwrap().recipe;
        let json = with_layers(&recipe, 2).unwrap().block("model");
        for side in ["encoder", "decoder"] {
            let repeats: Vec<_> =
                json[side]["layer"].as_array().unwrap().iter().map(|l| &l["repeat"]).collect();
            assert_eq!(repeats, [2, 2]);
        }
    }
}
