//! Progress reports and the log of a run.

use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};
use zoo_recipes::atomic::write_whole;

use crate::state::{Counters, Ending, RunState, Sums};
use crate::update::{PhaseReport, TermSum};

/// Report of one update, successful or skipped.
#[derive(Debug, Clone)]
pub struct UpdateReport {
    /// Counts after the update.
    pub counters: Counters,
    /// Loss of the first phase; not finite if that is why the update was skipped.
    pub loss: f64,
    /// Learning rate of the first phase.
    pub lr: f64,
    /// Loss scale of the first phase.
    pub scale: f64,
    /// Global norm of the first phase's gradients before clipping.
    pub grad_norm: f64,
    /// Tokens (or another unit of the speed) of all workers.
    pub tokens: u64,
    /// Time in seconds, including the time to fetch the batches.
    pub seconds: f64,
    /// Whether every phase skipped the update.
    pub skipped: bool,
    /// Reports of all phases.
    pub phases: Vec<PhaseReport>,
}

/// Report of a validation, at the end of an epoch or of the run.
#[derive(Debug, Clone)]
pub struct EpochReport {
    /// Counts at the time. `counters.epoch` epochs are complete.
    pub counters: Counters,
    /// Training loss over the epoch; `None` within an epoch.
    pub train_loss: Option<f64>,
    /// Terms of the training loss over the epoch; empty within an epoch.
    pub train_terms: Vec<TermSum>,
    /// Validation loss; `None` without validation.
    pub valid_loss: Option<f64>,
    /// Validation score, where a score selects the best weights.
    pub valid_score: Option<f64>,
    /// Terms of the validation loss.
    pub terms: Vec<TermSum>,
    /// Whether it is the best so far.
    pub best: bool,
    /// Validations since the best one.
    pub since_best: u32,
}

/// Observer of a run.
pub trait Progress {
    /// Called after each update, including skipped ones.
    fn on_update(&mut self, _: &UpdateReport) {}
    /// Called after each validation, and at the end of each epoch.
    fn on_epoch(&mut self, _: &EpochReport) {}
    /// Called after a state to resume from was written.
    fn on_checkpoint(&mut self, _: &Path, _: Counters) {}
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// JSON line of the updates since the last line. Losses are divided by their counts over all those
/// updates.
pub(crate) fn train_line(report: &UpdateReport, since: &Sums) -> Value {
    let mut line = Map::new();
    let c = &report.counters;
    line.insert("event".into(), json!("train"));
    for (name, value) in [
        ("update", c.update),
        ("epoch", c.epoch),
        ("batch", c.batch),
        ("micro_step", c.micro_step),
        ("updates", since.updates),
        ("skipped", since.skipped),
        ("tokens", since.tokens),
    ] {
        line.insert(name.into(), json!(value));
    }
    line.insert("loss".into(), json!(since.loss()));
    line.insert("terms".into(), terms_value(&since.term_sums()));
    for (name, value) in [
        ("lr", report.lr),
        ("scale", report.scale),
        ("grad_norm", report.grad_norm),
        ("seconds", since.seconds),
    ] {
        line.insert(name.into(), json!(value));
    }
    Value::Object(line)
}

/// JSON line of a validation.
pub(crate) fn epoch_line(report: &EpochReport) -> Value {
    let mut line = json!({
        "event": "epoch",
        "update": report.counters.update,
        "epoch": report.counters.epoch,
        "batch": report.counters.batch,
        "train_loss": report.train_loss,
        "train_terms": terms_value(&report.train_terms),
        "valid_loss": report.valid_loss,
        "terms": terms_value(&report.terms),
        "best": report.best,
        "since_best": report.since_best,
    });
    if let Some(score) = report.valid_score {
        line["valid_score"] = json!(score);
    }
    line
}

/// JSON line of the end of a run, with the loss since the last training line.
pub(crate) fn end_line(state: &RunState, ending: &Ending) -> Value {
    let since = &state.since_log;
    json!({
        "event": "end",
        "update": state.counters.update,
        "epoch": state.counters.epoch,
        "batch": state.counters.batch,
        "ending": ending,
        "updates": since.updates,
        "loss": (since.updates > 0).then(|| since.loss()),
        "seconds": state.seconds,
    })
}

fn terms_value(terms: &[TermSum]) -> Value {
    let value =
        |t: &TermSum| json!({ "sum": t.sum, "count": t.count, "mean": t.sum / t.count, "weight": t.weight });
    Value::Object(terms.iter().map(|t| (t.name.clone(), value(t))).collect())
}

/// A log file with one JSON object a line, each with `event`, `update`, `epoch` and `batch`.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: fs::File,
}

impl LogFile {
    /// Opens the log of a run that resumes after `batch` batches. Lines of later batches, and an
    /// incomplete last line, come from a session that continued past its last checkpoint. They are
    /// removed, because they will be written again.
    pub fn open(path: &Path, batch: u64) -> std::io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::File::open(path) {
            Ok(file) => {
                let mut kept = Vec::new();
                for line in std::io::BufReader::new(file).split(b'\n') {
                    let line = line?;
                    let value: Option<Value> = serde_json::from_slice(&line).ok();
                    let of = value.as_ref().and_then(|value| value.get("batch")).and_then(Value::as_u64);
                    if of.is_some_and(|of| of <= batch) {
                        kept.extend_from_slice(&line);
                        kept.push(b'\n');
                    }
                }
                write_whole(path, &kept)?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let file = fs::File::options().create(true).append(true).open(path)?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one line.
    pub fn write(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(value).map_err(std::io::Error::other)?;
        line.push(b'\n');
        // A single call, so that a killed run leaves complete lines.
        self.file.write_all(&line)
    }
}
