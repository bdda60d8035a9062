//! What the log of a run says: the programs that took part, and the losses.

use std::path::Path;

use crate::environment::Environment;

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
