//! Scores of runs that another program wrote for TensorBoard or MLflow.

use std::path::PathBuf;

use serde::Serialize;
use zoo_recipes::{ClaimSpec, Direction};
use zoo_results::exit::Exit;
use zoo_results::verdict::direction_of;

use crate::error::{Failure, Result};
use crate::tracking::series::{At, Series};
use crate::tracking::{mlflow, tensorboard};

/// Folders of trackers, and what in them is a score.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Folders of TensorBoard with the tag of the score.
    pub tensorboard: &'a [PathBuf],
    pub tag: Option<&'a str>,
    /// Folders of MLflow's file store with the name of the metric.
    pub mlflow: &'a [PathBuf],
    pub metric: Option<&'a str>,
    pub at: At,
    /// Factor from the tracked values to the metric's unit.
    pub times: f64,
}

/// A score with its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Taken {
    /// Name of the run, as its tracker shows it.
    pub run: String,
    /// Step of the value that is the score.
    pub step: i64,
    /// The score, in the metric's unit.
    pub score: f64,
}

/// Scores of all runs, and what a reader should know of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TakenScores {
    /// One score for each run, by name.
    pub scores: Vec<Taken>,
    pub notes: Vec<String>,
}

impl Source<'_> {
    /// Whether no folder is named.
    pub fn is_empty(&self) -> bool {
        self.tensorboard.is_empty() && self.mlflow.is_empty()
    }

    /// The score of each run. The metric of the claims determines which value is the best one.
    ///
    /// # Errors
    /// A folder cannot be read or has no such values, a run has no score, or the direction of the
    /// metric is not known.
    pub fn scores(&self, claims: &[(usize, &ClaimSpec)]) -> Result<TakenScores> {
        let direction = match (self.at, claims.iter().find_map(|(_, claim)| direction_of(claim))) {
            (_, Some(direction)) => direction,
            (At::Last, None) => Direction::Higher,
            (At::Best, None) => {
                return Err(Failure::usage("--at best: the claims do not state whether higher is better")
                    .hint("--at last"));
            }
        };
        let mut found: Vec<(String, Series)> = Vec::new();
        for folder in self.tensorboard {
            let all = tensorboard::read::tag(folder, self.tag.unwrap_or_default())?;
            found.extend(all.into_iter().map(|series| (folder.display().to_string(), series)));
        }
        for folder in self.mlflow {
            let name = self.metric.unwrap_or_default();
            let all = mlflow::read::metric(folder, name)?;
            if all.is_empty() {
                let message = format!("no run in {} has the metric `{name}`", folder.display());
                return Err(Failure::new(Exit::Data, message)
                    .hint("the folder metrics of each run has one file for each metric"));
            }
            found.extend(all.into_iter().map(|series| (folder.display().to_string(), series)));
        }
        let mut taken = TakenScores::default();
        let several = self.tensorboard.len() + self.mlflow.len() > 1;
        for (folder, series) in found {
            let run = if several { format!("{folder}: {}", series.run) } else { series.run.clone() };
            let Some(point) = series.score(self.at, direction) else {
                return Err(Failure::new(
                    Exit::Data,
                    format!("the run {run} in {folder} has no score: it is not finite"),
                )
                .hint("name the folders of the other runs; a run that diverged has no score to judge"));
            };
            taken.notes.extend(series.notes);
            taken.scores.push(Taken { run, step: point.step, score: point.value * self.times });
        }
        if self.at == At::Best {
            taken.notes.push(
                "--at best: each score is the best of its run on this set, which is optimistic; \
                 published scores are often of a checkpoint that was chosen on other data"
                    .to_owned(),
            );
        }
        Ok(taken)
    }

    /// How the scores were taken, for a record: `tag val/acc, last`.
    pub fn words(&self) -> String {
        let what = match (self.tag, self.metric) {
            (Some(tag), _) => format!("tag {tag} of TensorBoard"),
            (None, metric) => format!("metric {} of MLflow", metric.unwrap_or_default()),
        };
        let at = if self.at == At::Best { "best" } else { "last" };
        let times = if self.times == 1.0 { String::new() } else { format!(", times {}", self.times) };
        format!("{what}, {at} value of each run{times}")
    }
}
