//! What the log of a run says: the programs that took part, and the losses.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use zoo_recipes::{Clock, Moment};

use crate::environment::Environment;

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
