//! Contents of the log of a run: the programs that took part, and the losses.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use zoo_recipes::{Clock, Moment};

use super::log_reader::LogReader;
use crate::environment::Environment;
use crate::error::{Failure, Result};

/// The end of an epoch.
#[derive(Debug, Clone, Deserialize)]
pub struct LoggedEpoch {
    /// Complete epochs.
    pub epoch: u64,
    /// Updates so far.
    pub update: u64,
    /// Terms of the training loss over the epoch.
    #[serde(rename = "train_terms")]
    pub terms: BTreeMap<String, LoggedTerm>,
}

impl LoggedEpoch {
    /// Whether it ends at a point of a trajectory.
    pub fn is_at(&self, moment: Moment) -> bool {
        match moment.clock {
            Clock::Epochs => self.epoch == moment.at,
            Clock::Updates => self.update == moment.at,
        }
    }
}

/// A term of the training loss.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct LoggedTerm {
    pub sum: f64,
    /// Denominator of the sum.
    pub count: f64,
    /// Weight in the loss.
    pub weight: f64,
}

/// The complete epochs of a run, in order, each once. Logs of earlier programs have none.
pub fn epochs(log: &Path) -> Vec<LoggedEpoch> {
    let lines = log_values(log, "epoch").into_iter();
    let all = lines.filter_map(|line| serde_json::from_value::<LoggedEpoch>(line).ok());
    // A resumed run may have logged an epoch before, which counts no more.
    let by_number: BTreeMap<u64, LoggedEpoch> =
        all.filter(|epoch| !epoch.terms.is_empty()).map(|epoch| (epoch.epoch, epoch)).collect();
    by_number.into_values().collect()
}

/// What each session of a run was made with; `None` where its log does not say.
pub fn sessions(log: &Path) -> Vec<Option<Environment>> {
    let environment =
        |mut session: serde_json::Value| serde_json::from_value(session["environment"].take()).ok();
    log_values(log, "session").into_iter().map(environment).collect()
}

fn log_values(path: &Path, event: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|line| line["event"] == event).collect()
}

/// Training losses of the logged steps, and of what was left at the end.
pub fn logged_losses(path: &Path) -> Vec<f64> {
    let lines = ["train", "end"].into_iter().flat_map(|event| log_values(path, event));
    lines.filter_map(|line| line["loss"].as_f64()).collect()
}

/// Training losses of the logged lines, by the last update of each line.
pub fn losses_by_update(path: &Path) -> BTreeMap<u64, f64> {
    let lines = ["train", "end"].into_iter().flat_map(|event| log_values(path, event));
    let of = |line: Value| Some((line["update"].as_u64()?, line["loss"].as_f64()?));
    lines.filter_map(of).collect()
}

/// Commits of all sessions of a run, each once, in order.
pub fn commits(path: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for environment in sessions(path) {
        let commit = environment.map_or_else(|| "unknown".to_string(), |environment| environment.sources());
        if found.last() != Some(&commit) {
            found.push(commit);
        }
    }
    found
}

/// A line of the log on one or several updates: a line of training, or the end of a run with the
/// updates since the last line of training.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedUpdates {
    /// Number of the first update that the line covers.
    pub first: u64,
    /// Number of the last update that the line covers.
    pub last: u64,
    line: Value,
}

impl LoggedUpdates {
    fn of(line: Value) -> Option<Self> {
        let (last, updates) = (line["update"].as_u64()?, line["updates"].as_u64()?);
        let first = last.checked_sub(updates.checked_sub(1)?)?;
        // JSON has null for a loss that is not finite.
        let loss = line.get("loss").is_some_and(|loss| loss.is_number() || loss.is_null());
        loss.then_some(Self { first, last, line })
    }

    /// A number of the line. `None` if the line does not have it; the inner one, if it was not finite.
    pub fn number(&self, key: &str) -> Option<Option<f64>> {
        self.line.get(key).map(Value::as_f64)
    }
}

/// What the log says of one update.
#[derive(Debug, Clone, Default)]
pub struct OfUpdate {
    /// The line that covers the update.
    pub line: Option<LoggedUpdates>,
    /// Programs and machines of the sessions that made the updates of the line; `None` where the log
    /// does not state them.
    pub environments: Vec<Option<Environment>>,
    /// Number of the last update in the log.
    pub made: u64,
}

/// What the log of a run says of an update.
///
/// # Errors
/// The log cannot be read.
pub fn of_update(log: &Path, update: u64) -> Result<OfUpdate> {
    let mut found = OfUpdate::default();
    // Batch of the last line of training.
    let mut batch = 0;
    let read = LogReader::new(log).read(|line| {
        let Ok(mut line) = serde_json::from_slice::<Value>(line) else { return };
        let at = line["update"].as_u64().unwrap_or(0);
        match line["event"].as_str() {
            Some("session") if found.line.is_none() && found.made < update => {
                // The session before made nothing of the next line if this one begins at its start.
                if line["batch"].as_u64().unwrap_or(0) <= batch {
                    found.environments.clear();
                }
                found.environments.push(serde_json::from_value(line["environment"].take()).ok());
            }
            Some("train" | "end") if at >= update && found.line.is_none() => {
                found.line = LoggedUpdates::of(line).filter(|line| line.first <= update);
            }
            Some("train") if found.line.is_none() => {
                batch = line["batch"].as_u64().unwrap_or(0);
                found.environments.drain(..found.environments.len().saturating_sub(1));
            }
            _ => {}
        }
        found.made = found.made.max(at);
    });
    read.map_err(|error| Failure::io("read", log, &error))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_of_an_update_is_the_one_that_covers_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        let session = |threads: usize| {
            let environment = Environment { threads, ..Environment::current("cpu", 1) };
            json!({ "event": "session", "batch": 0, "environment": environment })
        };
        let lines = [
            session(1),
            json!({ "event": "train", "update": 5, "updates": 5, "loss": 0.1 }),
            json!({ "event": "epoch", "update": 6 }),
            json!({ "event": "train", "update": 7, "updates": 2, "loss": null }),
            session(2),
            json!({ "event": "train", "update": 10, "updates": 3, "loss": 0.3 }),
            json!({ "event": "end", "update": 12, "updates": 2, "loss": 0.4 }),
            json!({ "event": "left-out", "batch": 12 }),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&log, text).unwrap();
        let of = |update: u64| {
            let OfUpdate { line, environments, made } = of_update(&log, update).unwrap();
            assert_eq!(made, 12);
            let line = line.map(|line| (line.first, line.last, line.number("loss")));
            let [environment] = environments.as_slice() else { return (line, None) };
            (line, environment.as_ref().map(|environment| environment.threads))
        };
        assert_eq!(of(1), (Some((1, 5, Some(Some(0.1)))), Some(1)));
        assert_eq!(of(5), of(1));
        assert_eq!(of(7), (Some((6, 7, Some(None))), Some(1)));
        assert_eq!(of(8), (Some((8, 10, Some(Some(0.3)))), Some(2)));
        assert_eq!(of(12), (Some((11, 12, Some(Some(0.4)))), Some(2)));
        assert_eq!(of(13), (None, Some(2)));
        let of_line = of_update(&log, 1).unwrap().line.unwrap();
        assert_eq!(of_line.number("scale"), None);
        // A run that ended with a line of training has none at its end.
        std::fs::write(&log, "{\"event\":\"end\",\"update\":12,\"updates\":0}\n").unwrap();
        assert_eq!(of(12), (None, None));
    }

    /// A session that begins between two lines made a part of the second one.
    #[test]
    fn all_sessions_that_made_a_line_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        let session = |threads: usize, batch: u64| {
            let environment = Environment { threads, ..Environment::current("cpu", 1) };
            json!({ "event": "session", "batch": batch, "environment": environment })
        };
        let train = |update: u64| json!({ "event": "train", "update": update, "batch": update, "updates": 5, "loss": 0.1 });
        let lines = [session(1, 0), train(5), session(2, 5), train(10), session(3, 12), train(15)];
        fs::write(&log, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let threads = |update: u64| -> Vec<usize> {
            let of = of_update(&log, update).unwrap().environments;
            of.into_iter().map(|environment| environment.unwrap().threads).collect()
        };
        assert_eq!(
            [threads(3), threads(8), threads(11), threads(14)],
            [vec![1], vec![2], vec![2, 3], vec![2, 3]]
        );
    }

    #[test]
    fn a_damaged_line_covers_no_update() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        for line in [
            "{\"event\":\"train\",\"update\":20,\"updates\":5}",
            "{\"event\":\"train\",\"update\":20,\"updates\":5,\"loss\":\"x\"}",
            "{\"event\":\"train\",\"update\":-20,\"updates\":5,\"loss\":1.0}",
            "{\"event\":\"train\",\"update\":20,\"updates\":22,\"loss\":1.0}",
            "[20]",
            "not JSON",
        ] {
            fs::write(&log, format!("{line}\n")).unwrap();
            assert_eq!(of_update(&log, 20).unwrap().line, None, "{line}");
        }
    }
}
