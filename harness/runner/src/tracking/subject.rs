//! What a run is, as trackers show it: names, parameters and tags.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sha2::{Digest, Sha256};
use zoo_recipes::Recipe;
use zoo_results::exit::Exit;
use zoo_training::state::Ending;

use crate::error::{Failure, Result};
use crate::run::evaluate::{Evaluation, read_evaluation};
use crate::run::folder::{Run, evaluation_files};
use crate::runs::{State, state_of};
use crate::tracking::course::Points;

/// A run as trackers show it.
#[derive(Debug, Clone)]
pub struct Subject {
    pub run: Run,
    recipe: Recipe,
    /// `NAME/ARM-seedN-KEY`, as below the home's folder of runs.
    pub place: String,
    /// Time at which the run was created, by its file, in seconds since 1970.
    pub created: f64,
}

/// How a run is going, in the words of trackers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It trains, or may.
    Running,
    /// Training ended.
    Finished,
    /// Training ended because the loss was not finite.
    Failed,
    /// Training was stopped.
    Killed,
}

impl Subject {
    /// The run in a folder.
    ///
    /// # Errors
    /// The run cannot be opened.
    pub fn open(folder: &Path) -> Result<Self> {
        let (run, recipe) = Run::open(folder)?;
        let card = &run.card;
        let key = card.key.get(..12).unwrap_or(&card.key);
        let usual = format!("{}-seed{}-{key}", card.arm, card.seed);
        // Runs of other programs have a number behind the usual name.
        let own = run.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = own.filter(|own| own.starts_with(&usual)).unwrap_or(usual);
        // A run of someone else may state any name.
        let parts = [recipe_and_tier(&run), name];
        if let Some(part) = parts.iter().find(|part| !is_one_step(part)) {
            let message =
                format!("{}: `{part}` is not a name of a folder", run.folder.join("run.json").display());
            return Err(Failure::new(Exit::Damaged, message)
                .hint("the recipe, tier or arm in it was changed; restore the file"));
        }
        let place = parts.join("/");
        let card = run.folder.join("run.json");
        let written = card.metadata().and_then(|about| about.modified());
        let written = written.map_err(|error| Failure::io("read", &card, &error))?;
        let created = seconds_since_1970(written);
        Ok(Self { run, recipe, place, created })
    }

    /// `NAME` or `NAME.TIER`: what the runs of an experiment have in common.
    pub fn experiment(&self) -> String {
        recipe_and_tier(&self.run)
    }

    /// `NAME:ARM:SEED`, which commands take as the run's name.
    pub fn name(&self) -> String {
        format!("{}:{}:{}", self.experiment(), self.run.card.arm, self.run.card.seed)
    }

    /// Hexadecimal digest of the run's identity, with 64 digits. A run has it in every home.
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(format!("zoo run\n{}\n{}\n", self.place, self.run.card.key)))
    }

    /// The keys of the resolved recipe with their values, without its description and claims.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for block in ["data", "model", "loss", "train", "precision", "decode"] {
            leaves(&self.recipe.block(block), block, &mut found);
        }
        let seed = self.run.card.seed.to_string();
        match found.iter_mut().find(|(key, _)| key == "train.seed") {
            Some((_, value)) => *value = seed,
            None => found.push(("train.seed".to_owned(), seed)),
        }
        found
    }

    /// The identity of the run, its program and its machine.
    pub fn tags(&self) -> Vec<(String, String)> {
        let card = &self.run.card;
        let tier = card.tier.as_deref().unwrap_or("full");
        let mut tags = vec![
            ("recipe", card.recipe.clone()),
            ("recipe_hash", card.recipe_hash.clone()),
            ("tier", tier.to_owned()),
            ("arm", card.arm.clone()),
            ("seed", card.seed.to_string()),
            ("compute", card.compute.clone()),
            ("overrides", card.overrides.join(" ")),
            ("initial_weights", card.transfer.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("key", card.key.clone()),
            ("version", card.environment.version.clone()),
            ("commit", card.environment.sources()),
            ("platform", card.environment.platform.clone()),
            ("processor", card.environment.processor.clone()),
            ("threads", card.environment.threads.to_string()),
            ("device", card.environment.device.clone()),
        ];
        tags.retain(|(_, value)| !value.is_empty());
        tags.into_iter().map(|(key, value)| (format!("zoo.{key}"), value)).collect()
    }

    /// The run in Markdown: its identity, and its recipe as TOML.
    pub fn texts(&self) -> [(&'static str, String); 2] {
        let mut identity = format!("# {}\n\n| | |\n|---|---|\n", self.name());
        for (key, value) in self.tags() {
            let value = value.replace('|', "\\|");
            identity.push_str(&format!("| {} | {value} |\n", key.trim_start_matches("zoo.")));
        }
        let mut recipe = "| parameter | value |\n|---|---|\n".to_owned();
        for (key, value) in self.parameters() {
            recipe.push_str(&format!("| {key} | {} |\n", value.replace('|', "\\|").replace('\n', " ")));
        }
        [("run", identity), ("hyperparameters", recipe)]
    }

    /// The status of the run now, and how training ended.
    pub fn status(&self) -> Status {
        match state_of(&self.run.folder) {
            State::Training | State::Unfinished => Status::Running,
            State::Diverged | State::Damaged => Status::Failed,
            State::Interrupted => Status::Killed,
            State::Evaluating | State::Trained | State::Evaluated | State::OffCourse => Status::Finished,
        }
    }

    /// Scores of the evaluation sets: at points of the training, in their order, then at its end.
    /// What cannot be read is described in `missing`.
    ///
    /// # Errors
    /// The result of the training cannot be read.
    pub fn scores(&self, time: f64, missing: &mut Vec<String>) -> Result<Vec<Points>> {
        let eval = self.run.folder.join("eval");
        let mut points: Vec<Points> = Vec::new();
        let folders = std::fs::read_dir(&eval).into_iter().flatten().flatten().map(|entry| entry.path());
        for folder in folders.filter(|path| path.is_dir()) {
            // Evaluations of checkpoints and in other types are not results of the run.
            let of_moments = evaluations(&folder, missing).into_iter();
            let of_moments = of_moments.filter(|_| is_moment(&folder));
            points.extend(of_moments.filter_map(|one| Some(scores(&one, one.update?, time))));
        }
        points.sort_by(|one, other| {
            let names = |points: &Points| points.values.first().map(|(name, _)| name.clone());
            one.step.cmp(&other.step).then_with(|| names(one).cmp(&names(other)))
        });
        // Two clocks may name one update.
        points.dedup_by(|one, other| one.step == other.step && one.values == other.values);
        if self.run.trained_file().is_file() {
            let trained = self.run.trained()?;
            if !matches!(trained.ending, Ending::OffCourse { .. }) {
                let at_end = evaluations(&eval, missing);
                points.extend(at_end.iter().map(|one| scores(one, trained.updates, time)));
            }
        }
        Ok(points)
    }
}

/// Seconds since 1970; 0 before.
fn seconds_since_1970(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Whether a text is one step of a path on every system.
fn is_one_step(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '\\', ':', '\0'])
}

fn recipe_and_tier(run: &Run) -> String {
    match &run.card.tier {
        Some(tier) => format!("{}.{tier}", run.card.recipe),
        None => run.card.recipe.clone(),
    }
}

/// Whether a folder of evaluations is that of a point of a trajectory, such as `epoch-3`.
fn is_moment(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("epoch-").or_else(|| name.strip_prefix("update-"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn evaluations(folder: &Path, missing: &mut Vec<String>) -> Vec<Evaluation> {
    let mut found = Vec::new();
    for file in evaluation_files(folder) {
        match read_evaluation(folder, &file) {
            Ok(evaluation) => found.push(evaluation),
            Err(failure) => missing.push(format!("an evaluation is left out: {}", failure.parts().0)),
        }
    }
    found
}

/// The scores of an evaluation: `EVAL/SEARCH/METRIC`, with a number for further conventions of a
/// metric.
fn scores(evaluation: &Evaluation, step: u64, time: f64) -> Points {
    let mut values: Vec<(String, f64)> = Vec::new();
    for score in &evaluation.scores {
        let name = format!("{}/{}/{}", evaluation.eval, evaluation.decode, score.metric);
        let same = |name: &str| values.iter().any(|(known, _)| known == name);
        let further = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(further).find(|name| !same(name));
        values.extend(free.map(|name| (name, score.value)));
    }
    Points { step, time, values }
}

/// The leaves of a JSON value. A list is one leaf.
fn leaves(json: &Value, key: &str, found: &mut Vec<(String, String)>) {
    match json {
        Value::Object(members) => {
            for (name, value) in members {
                leaves(value, &format!("{key}.{name}"), found);
            }
        }
        Value::Null => {}
        Value::String(text) => found.push((key.to_owned(), text.clone())),
        other => found.push((key.to_owned(), other.to_string())),
    }
}
