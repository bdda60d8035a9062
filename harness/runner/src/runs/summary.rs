//! A run in a few numbers: state, updates, score, size. Only small files are read, the end of the
//! log, and the sizes of the other files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use zoo_training::state::Ending;

use super::found::{Found, small, small_json};
use crate::run::activity::Activity;
use crate::run::folder::is_evaluation;
use crate::run::from_end::FromEnd;

/// Maximum bytes that are read from the end of a log. A line of training has less than 1 kB.
const MOST_LOG: u64 = 1 << 20;

/// Depth of the folders whose sizes are summed.
const DEEPEST: usize = 8;

/// What is happening to a run, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum State {
    /// A process trains it
    Training,
    /// Training stopped before its end: Ctrl-C, an error, a killed process
    Interrupted,
    /// Training or interrupted: the file system has no locks to tell which
    Unfinished,
    /// Training ended, and a process decodes evaluation sets
    Evaluating,
    /// Training ended, without an evaluation yet
    Trained,
    /// An evaluation set was decoded and scored
    Evaluated,
    /// Training ended because the loss was not finite
    Diverged,
    /// Stopped because of --stop-early
    OffCourse,
    /// A file of the run cannot be read
    Damaged,
}

impl State {
    /// The word in tables and options.
    pub fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether the state follows from files alone, and not from what processes do.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Evaluated | Self::Diverged)
    }

    /// Whether lines may still be added to the log.
    pub fn may_be_training(self) -> bool {
        matches!(self, Self::Training | Self::Unfinished)
    }

    fn of(ending: Option<&Ending>, evaluated: bool, activity: impl Fn() -> Activity) -> Self {
        match ending {
            None => match activity() {
                Activity::Working => Self::Training,
                Activity::Idle => Self::Interrupted,
                Activity::Unknown => Self::Unfinished,
            },
            Some(Ending::OffCourse { .. }) if activity() == Activity::Working => Self::Training,
            Some(Ending::OffCourse { .. }) => Self::OffCourse,
            Some(Ending::Diverged { .. }) => Self::Diverged,
            Some(_) if evaluated => Self::Evaluated,
            Some(_) if activity() == Activity::Working => Self::Evaluating,
            Some(_) => Self::Trained,
        }
    }
}

/// The fields of `trained.json` that a summary needs.
#[derive(Debug, Clone, Deserialize)]
struct End {
    ending: Ending,
    updates: u64,
    seconds: f64,
}

/// A score of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Name of the evaluation set.
    pub eval: String,
    /// Name of the search.
    pub decode: String,
    pub metric: String,
    pub value: f64,
}

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub state: State,
    /// Number of updates.
    pub updates: u64,
    /// Number of updates at the end, if the recipe states it or the run has ended.
    pub of: Option<u64>,
    /// The first score of the evaluation that was written first: the one of the first claim.
    pub score: Option<Score>,
    /// Sum of the sizes of all files.
    pub bytes: u64,
    /// Duration of training, if it ended.
    pub seconds: Option<f64>,
}

impl Summary {
    /// The remembered summary of a run, else that of its folder.
    pub fn of(found: &Found) -> Self {
        found.remembered.clone().unwrap_or_else(|| Self::read(found))
    }

    fn read(found: &Found) -> Self {
        let mut files = Files::default();
        files.add(&found.folder, 0);
        let (end, damaged) = end_of(&found.folder);
        let score = files.score();
        let ending = end.as_ref().map(|end| &end.ending);
        let state = match damaged || found.identity.is_none() {
            true => State::Damaged,
            false => State::of(ending, !files.evaluations.is_empty(), || Activity::of(&found.folder)),
        };
        let (updates, of) = match &end {
            Some(End { ending: Ending::MaxUpdates, updates, .. }) => (*updates, Some(*updates)),
            Some(End { ending, updates, .. }) if ending.is_scored() => (*updates, None),
            Some(End { updates, .. }) => (*updates, planned_updates(&found.folder)),
            None => (logged_updates(&found.folder), planned_updates(&found.folder)),
        };
        Self { state, updates, of, score, bytes: files.bytes, seconds: end.map(|end| end.seconds) }
    }
}

/// State of the run in a folder.
pub fn state_of(folder: &Path) -> State {
    let mut files = Files::default();
    files.add(&folder.join(EVALUATIONS), 1);
    match end_of(folder) {
        (_, true) => State::Damaged,
        (end, false) => {
            let ending = end.as_ref().map(|end| &end.ending);
            State::of(ending, !files.evaluations.is_empty(), || Activity::of(folder))
        }
    }
}

/// The end of training, and whether its file is damaged.
fn end_of(folder: &Path) -> (Option<End>, bool) {
    match small_json(&folder.join("trained.json")) {
        Ok(end) => (Some(end), false),
        Err(error) => (None, error.kind() != std::io::ErrorKind::NotFound),
    }
}

/// Update of the newest line of the log that has one; 0 if none has.
fn logged_updates(folder: &Path) -> u64 {
    #[derive(Deserialize)]
    struct Line {
        update: Option<u64>,
    }
    let lines = FromEnd::open(&folder.join("log.jsonl"), MOST_LOG).ok();
    let update = |line: Vec<u8>| serde_json::from_slice::<Line>(&line).ok()?.update;
    lines.and_then(|lines| lines.map_while(|line| line.ok()).find_map(update)).unwrap_or(0)
}

/// `train.max_updates` of the run's recipe.
fn planned_updates(folder: &Path) -> Option<u64> {
    #[derive(Deserialize)]
    struct Recipe {
        train: Train,
    }
    #[derive(Deserialize)]
    struct Train {
        max_updates: Option<u64>,
    }
    let text = String::from_utf8(small(&folder.join("recipe.toml")).ok()?).ok()?;
    toml::from_str::<Recipe>(&text).ok()?.train.max_updates
}

/// Paths of the folders and evaluations of a run, below its folder. A file that is added, replaced or
/// removed changes a time of its folder. `None` if the folder does not have what the summary says: it
/// has changed since, or something could not be read.
pub(super) fn folders_and_evaluations(folder: &Path, summary: &Summary) -> Option<Vec<PathBuf>> {
    let mut files = Files::default();
    files.add(folder, 0);
    let has_score = summary.score.is_some() || files.evaluations.is_empty();
    if files.is_partial || files.bytes != summary.bytes || !has_score {
        return None;
    }
    let evaluations = files.evaluations.into_iter().map(|(_, file)| file);
    let paths = files.folders.into_iter().chain(evaluations);
    paths.map(|path| Some(path.strip_prefix(folder).ok()?.to_owned())).collect()
}

/// Folder of the evaluations in a run's folder.
const EVALUATIONS: &str = "eval";

/// Files of a run's folder, from their metadata. Links are not followed.
#[derive(Debug, Default)]
struct Files {
    bytes: u64,
    folders: Vec<PathBuf>,
    /// Whether a folder or file could not be looked at.
    is_partial: bool,
    /// Evaluations with the times at which they were written.
    evaluations: Vec<(SystemTime, PathBuf)>,
}

impl Files {
    fn add(&mut self, folder: &Path, depth: usize) {
        let holds_evaluations = depth == 1 && folder.ends_with(EVALUATIONS);
        self.folders.push(folder.to_owned());
        let Ok(entries) = fs::read_dir(folder) else {
            self.is_partial = true;
            return;
        };
        for entry in entries {
            let Ok((entry, about)) = entry.and_then(|entry| entry.metadata().map(|about| (entry, about)))
            else {
                self.is_partial = true;
                continue;
            };
            if about.is_dir() {
                if depth < DEEPEST {
                    self.add(&entry.path(), depth + 1);
                }
                continue;
            }
            self.bytes = self.bytes.saturating_add(about.len());
            if holds_evaluations && about.is_file() && is_evaluation(&entry.file_name().to_string_lossy()) {
                let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                self.evaluations.push((written, entry.path()));
            }
        }
    }

    fn score(&mut self) -> Option<Score> {
        self.evaluations.sort_unstable();
        self.evaluations.iter().find_map(|(_, file)| score_in(file))
    }
}

/// The first score of an evaluation.
fn score_in(file: &Path) -> Option<Score> {
    #[derive(Deserialize)]
    struct Evaluation {
        eval: String,
        decode: String,
        scores: Vec<Value>,
    }
    #[derive(Deserialize)]
    struct Value {
        metric: String,
        value: f64,
    }
    let Evaluation { eval, decode, scores } = small_json(file).ok()?;
    let Value { metric, value } = scores.into_iter().next()?;
    Some(Score { eval, decode, metric, value })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::found::all;
    use super::super::found::tests::{dated, made};
    use super::*;
    use crate::run::activity::LOCK;

    fn summary(home: &Path) -> Summary {
        Summary::of(&all(home)[0])
    }

    fn ended(folder: &Path, ending: &serde_json::Value) {
        let trained = json!({ "ending": ending, "updates": 7, "seconds": 1.5 });
        fs::write(folder.join("trained.json"), trained.to_string()).unwrap();
    }

    #[test]
    fn the_state_follows_from_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let folder = made(home.path(), "toy", "fp32", 1, "aaa", 10);
        let state = || summary(home.path()).state;
        assert_eq!(state(), State::Interrupted);
        let lock = fs::File::create(folder.join(LOCK)).unwrap();
        lock.try_lock().unwrap();
        assert_eq!((state(), state_of(&folder)), (State::Training, State::Training));
        ended(&folder, &json!({ "kind": "off-course", "at": { "clock": "epochs", "at": 1 } }));
        assert_eq!(state(), State::Training, "it goes on");
        ended(&folder, &json!({ "kind": "max-epochs" }));
        assert_eq!(state(), State::Evaluating);
        lock.unlock().unwrap();
        assert_eq!(state(), State::Trained);
        fs::create_dir_all(folder.join("eval/epoch-1")).unwrap();
        fs::write(folder.join("eval/epoch-1/test.beam.json"), "{}").unwrap();
        fs::write(folder.join("eval/test.beam.samples.json"), "[]").unwrap();
        assert_eq!(state(), State::Trained, "neither is an evaluation of the end");
        fs::write(folder.join("eval/test.beam.json"), "{}").unwrap();
        assert_eq!((state(), state_of(&folder)), (State::Evaluated, State::Evaluated));
        ended(&folder, &json!({ "kind": "diverged", "phase": "model" }));
        assert_eq!(state(), State::Diverged);
        ended(&folder, &json!({ "kind": "off-course", "at": { "clock": "epochs", "at": 1 } }));
        assert_eq!(state(), State::OffCourse);
        fs::write(folder.join("trained.json"), "{").unwrap();
        assert_eq!((state(), state_of(&folder)), (State::Damaged, State::Damaged));
        fs::remove_file(folder.join("trained.json")).unwrap();
        fs::write(folder.join("run.json"), "{").unwrap();
        assert_eq!(state(), State::Damaged);
    }

    #[test]
    fn updates_come_from_the_end_of_a_long_log() {
        let home = tempfile::tempdir().unwrap();
        let folder = made(home.path(), "toy", "fp32", 1, "aaa", 10);
        assert_eq!((summary(home.path()).updates, summary(home.path()).of), (0, None));
        let train = |update: u64| format!("{{\"event\":\"train\",\"update\":{update},\"loss\":1.0}}\n");
        let mut log: String = (1..=20_000).map(train).collect();
        log.push_str("{\"event\":\"session\",\"batch\":20000}\n{\"event\":\"train\",\"upda");
        fs::write(folder.join("log.jsonl"), log).unwrap();
        fs::write(folder.join("recipe.toml"), "[train]\nmax_updates = 50000\nseed = 1\n").unwrap();
        let found = summary(home.path());
        assert_eq!((found.updates, found.of, found.seconds), (20_000, Some(50_000), None));
        ended(&folder, &json!({ "kind": "max-updates" }));
        let found = summary(home.path());
        assert_eq!((found.updates, found.of, found.seconds), (7, Some(7), Some(1.5)));
    }

    #[test]
    fn the_score_is_the_first_one_of_the_evaluation_that_was_written_first() {
        let home = tempfile::tempdir().unwrap();
        let folder = made(home.path(), "toy", "fp32", 1, "aaa", 10);
        fs::create_dir_all(folder.join("eval")).unwrap();
        for (name, value, written) in [("a", 1.0, 30), ("b", 2.0, 20)] {
            let scores = json!([{ "metric": "bleu", "value": value }, { "metric": "chrf", "value": 9.0 }]);
            let file = folder.join(format!("eval/{name}.beam.json"));
            fs::write(&file, json!({ "eval": name, "decode": "beam", "scores": scores }).to_string())
                .unwrap();
            dated(&file, written);
        }
        let found = summary(home.path()).score.unwrap();
        assert_eq!((found.eval.as_str(), found.metric.as_str(), found.value), ("b", "bleu", 2.0));
    }

    #[test]
    fn sizes_are_summed_over_all_folders() {
        let home = tempfile::tempdir().unwrap();
        let folder = made(home.path(), "toy", "fp32", 1, "aaa", 10);
        let card = fs::metadata(folder.join("run.json")).unwrap().len();
        fs::create_dir_all(folder.join("eval/epoch-1")).unwrap();
        fs::write(folder.join("eval/epoch-1/x"), [0; 100]).unwrap();
        fs::write(folder.join("weights"), [0; 1000]).unwrap();
        assert_eq!(summary(home.path()).bytes, card + 1100);
    }
}
