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
        different(&found)?;
        let mut taken = TakenScores::default();
        let several = self.tensorboard.len() + self.mlflow.len() > 1;
        for (folder, series) in found {
            let run = if several { format!("{folder}: {}", series.run) } else { series.run.clone() };
            let Some(point) = series.score(self.at, direction) else {
                let why = if series.points.is_empty() { "it has no values" } else { "it is not finite" };
                return Err(Failure::new(
                    Exit::Data,
                    format!("the run {run} in {folder} has no score: {why}"),
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

/// Fails if a run was found twice: by folders that overlap, or as a copy with the same values. Runs are
/// independent, so that counting one twice makes a verdict look surer than it is.
fn different(found: &[(String, Series)]) -> Result<()> {
    let place = |series: &Series| series.folder.canonicalize().unwrap_or_else(|_| series.folder.clone());
    let same = |one: &Series, other: &Series| {
        let bits = |series: &Series| -> Vec<(i64, u64)> {
            series.points.iter().map(|point| (point.step, point.value.to_bits())).collect()
        };
        // A single value can be equal by chance.
        place(one) == place(other) || one.points.len() > 1 && bits(one) == bits(other)
    };
    for (at, (folder, series)) in found.iter().enumerate() {
        if let Some((_, other)) = found[..at].iter().find(|(_, other)| same(other, series)) {
            let message = format!("the runs {} and {} in {folder} are the same", other.run, series.run);
            return Err(Failure::usage(message).hint("name each folder once; runs must have different seeds"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracking::series::Point;

    #[test]
    fn a_run_is_not_counted_twice() {
        let root = tempfile::tempdir().unwrap();
        let series = |folder: &str, values: &[f64]| {
            let points = (1..).zip(values).map(|(step, &value)| Point { step, value }).collect();
            let folder = root.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            ("T".to_owned(), Series { run: "r".into(), folder, points, notes: Vec::new() })
        };
        assert!(different(&[series("a", &[1.0, 2.0]), series("b", &[1.0, 2.5])]).is_ok());
        assert!(different(&[series("a", &[1.0]), series("b", &[1.0])]).is_ok(), "equal by chance");
        for twice in [
            [series("a", &[1.0]), series("./a", &[1.0])],
            [series("a", &[1.0, 2.0]), series("copy", &[1.0, 2.0])],
        ] {
            let error = different(&twice).unwrap_err().to_string();
            assert!(error.contains("are the same"), "{error}");
        }
    }
}
