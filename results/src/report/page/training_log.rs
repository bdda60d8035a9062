//! Reads a run's `log.jsonl` line by line into the data that a page shows.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::{Deserialize, Serialize};

use super::series::Series;

/// Maximum length of a reason; longer reasons are cut off before they are compared.
const LONGEST_REASON: usize = 200;

/// Content of a log. Memory does not grow with the length of the log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainingLog {
    /// Training loss by update.
    pub loss: Series,
    /// Learning rate by update.
    pub lr: Series,
    /// Loss scale by update.
    pub scale: Series,
    /// Global norm of the gradients before clipping.
    pub grad_norm: Series,
    /// Tokens, frames, … per second.
    pub speed: Series,
    /// The loss scale at updates that were skipped because of overflow.
    pub overflows: Series,
    /// Number of skipped updates.
    pub skipped: u64,
    /// Validation loss by update.
    pub valid_loss: Series,
    /// Exponential of the plain cross-entropy in training, if logged.
    pub train_perplexity: Series,
    /// Exponential of the plain cross-entropy on the validation set, if logged.
    pub valid_perplexity: Series,
    /// Updates at which epochs ended, (epoch, update).
    pub epochs: Series,
    /// The last update that the log mentions.
    pub updates: u64,
    /// Seconds of the logged updates.
    pub seconds: f64,
    /// Number of sessions in which the run was trained.
    pub sessions: u64,
    /// Unit of the speed.
    pub unit: Option<String>,
    /// Number of parameters of the model.
    pub parameters: Option<u64>,
    /// Share of padding in the first epoch's batches.
    pub padding: Option<f64>,
    /// Counts of the data's splits.
    pub splits: BTreeMap<String, SplitCounts>,
    /// Examples that could not be used in batches, by reason: their number, and one example.
    pub left_out: BTreeMap<String, (u64, String)>,
    /// Number of lines that could not be read.
    pub unreadable: u64,
}

/// Counts of a split, from a session's line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SplitCounts {
    /// Number of examples that were read.
    pub read: u64,
    /// Number of examples that are used.
    pub kept: u64,
    /// Number of examples that are not used, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Further counts of the used examples: tokens, seconds, …
    pub amounts: BTreeMap<String, f64>,
}

/// The fields of a line that a page needs.
#[derive(Deserialize)]
struct Line<'l> {
    event: &'l str,
    #[serde(default)]
    update: u64,
    #[serde(default)]
    epoch: u64,
    loss: Option<f64>,
    lr: Option<f64>,
    scale: Option<f64>,
    grad_norm: Option<f64>,
    seconds: Option<f64>,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    skipped: u64,
    valid_loss: Option<f64>,
    terms: Option<Terms>,
    unit: Option<String>,
    parameters: Option<u64>,
    padding: Option<f64>,
    splits: Option<BTreeMap<String, SplitCounts>>,
    examples: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Terms {
    nll: Option<Mean>,
}

#[derive(Deserialize)]
struct Mean {
    mean: Option<f64>,
}

impl TrainingLog {
    /// Reads a log to its end. A line that is not valid is counted and skipped: the last line of a
    /// killed run may be incomplete.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn read(mut log: impl BufRead) -> std::io::Result<Self> {
        let (mut found, mut bytes, mut left_out) = (Self::default(), Vec::new(), BTreeMap::new());
        while log.read_until(b'\n', &mut bytes)? > 0 {
            match serde_json::from_slice(&bytes) {
                Ok(line) => found.add(line, &mut left_out),
                Err(_) => found.unreadable += 1,
            }
            bytes.clear();
        }
        for (name, why) in left_out {
            let why: String = why.chars().take(LONGEST_REASON).collect();
            found.left_out.entry(why).or_insert((0, name)).0 += 1;
        }
        Ok(found)
    }

    fn add(&mut self, line: Line<'_>, left_out: &mut BTreeMap<String, String>) {
        let update = line.update as f64;
        self.updates = self.updates.max(line.update);
        match line.event {
            "train" => {
                // JSON has neither NaN nor infinity; they are written as null.
                let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
                self.loss.push(update, number(line.loss));
                if let Some(nll) = line.terms.and_then(|terms| terms.nll) {
                    self.train_perplexity.push(update, number(nll.mean).exp());
                }
                self.lr.push(update, number(line.lr));
                self.scale.push(update, number(line.scale));
                self.grad_norm.push(update, number(line.grad_norm));
                if let Some(seconds) = line.seconds.filter(|seconds| *seconds > 0.0) {
                    self.speed.push(update, line.tokens as f64 / seconds);
                    self.seconds += seconds;
                }
                if line.skipped > 0 {
                    self.overflows.push(update, number(line.scale));
                    self.skipped += line.skipped;
                }
            }
            "epoch" => {
                self.epochs.push(line.epoch as f64, update);
                if let Some(loss) = line.valid_loss {
                    self.valid_loss.push(update, loss);
                }
                if let Some(mean) = line.terms.and_then(|terms| terms.nll?.mean) {
                    self.valid_perplexity.push(update, mean.exp());
                }
            }
            "session" => {
                self.sessions += 1;
                self.unit = line.unit.or(self.unit.take());
                self.parameters = line.parameters.or(self.parameters);
                self.padding = line.padding.or(self.padding);
                self.splits = line.splits.unwrap_or(std::mem::take(&mut self.splits));
            }
            // The updates since the last line of training.
            "end" => {
                if let Some(loss) = line.loss {
                    self.loss.push(update, loss);
                }
            }
            "left-out" => left_out.extend(line.examples.unwrap_or_default()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_as_it_is_written() {
        let log = r#"{"event":"session","batch":0,"environment":{},"padding":0.25,"unit":"frames","parameters":12,"splits":{"train":{"read":5,"kept":3,"left_out":{"silent":2},"amounts":{"seconds":1.5}}}}
{"event":"train","update":5,"epoch":0,"batch":5,"micro_step":5,"updates":5,"skipped":0,"tokens":100,"loss":2.5,"terms":{"loss":{"sum":1.0,"count":1.0,"mean":1.0,"weight":1.0},"nll":{"sum":0.0,"count":1.0,"mean":0.0,"weight":0.0}},"lr":0.1,"scale":128.0,"grad_norm":3.0,"seconds":0.5}
{"event":"train","update":6,"epoch":0,"batch":8,"micro_step":8,"updates":1,"skipped":2,"tokens":100,"loss":null,"terms":{"nll":{"sum":null,"count":1.0,"mean":null,"weight":0.0}},"lr":0.2,"scale":32.0,"grad_norm":null,"seconds":0.5}
{"event":"epoch","update":6,"epoch":1,"batch":8,"train_loss":2.5,"valid_loss":2.0,"terms":{"loss":{"mean":2.0},"nll":{"sum":1.0,"count":1.0,"mean":1.0,"weight":0.0}},"best":true,"since_best":0}
{"event":"left-out","batch":8,"examples":{"a":"too few frames","b":"too few frames","c":"unreadable"}}
{"event":"left-out","batch":8,"examples":{"a":"too few frames"}}
{"event":"end","update":6,"epoch":1,"batch":8,"ending":"max-epochs","updates":0,"loss":null,"seconds":1.0}
{"event":"train","upd"#;
        let found = TrainingLog::read(log.as_bytes()).unwrap();
        assert_eq!(
            (found.loss.points(), found.loss.not_finite(), found.loss.last()),
            (1, 1, Some((5.0, 2.5)))
        );
        assert_eq!((found.overflows.last(), found.skipped), (Some((6.0, 32.0)), 2));
        assert_eq!(found.speed.last(), Some((6.0, 200.0)));
        assert_eq!(found.valid_loss.last(), Some((6.0, 2.0)));
        let perplexity = &found.train_perplexity;
        assert_eq!(
            (perplexity.points(), perplexity.not_finite(), perplexity.last()),
            (1, 1, Some((5.0, 1.0)))
        );
        assert_eq!(found.valid_perplexity.last(), Some((6.0, std::f64::consts::E)));
        assert_eq!((found.epochs.last(), found.updates, found.seconds), (Some((1.0, 6.0)), 6, 1.0));
        assert_eq!((found.sessions, found.unit.as_deref(), found.parameters), (1, Some("frames"), Some(12)));
        assert_eq!(found.splits["train"].left_out["silent"], 2);
        let left_out = [("too few frames", 2, "a"), ("unreadable", 1, "c")];
        assert_eq!(
            found.left_out.iter().map(|(why, (n, one))| (why.as_str(), *n, one.as_str())).collect::<Vec<_>>(),
            left_out
        );
        assert_eq!(found.unreadable, 1);
        assert_eq!(TrainingLog::read(&b""[..]).unwrap(), TrainingLog::default());
    }
}
