//! The checkpoints of a run: which are kept, which one to go on from, which weights are evaluated.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use zoo_models::parameters::ParameterValues;
use zoo_recipes::EvaluatedWeights;

use crate::checkpoint::{Checkpoint, CheckpointError, read_state};
use crate::state::{KeptWeights, RunState};

/// States to resume from that are kept: the newest, and one in case that is damaged.
const STATES: usize = 2;

/// A folder of checkpoints.
#[derive(Debug, Clone)]
pub struct CheckpointFolder {
    path: PathBuf,
}

/// The checkpoint that a run goes on from.
#[derive(Debug)]
pub struct Latest {
    /// Its file.
    pub path: PathBuf,
    /// Its state.
    pub state: RunState,
    /// Weights and moments; `state` has been taken out.
    pub checkpoint: Checkpoint,
    /// What was wrong with newer ones.
    pub warnings: Vec<String>,
    /// Their files.
    pub damaged: Vec<PathBuf>,
}

/// The weights that a recipe evaluates.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// Weights.
    pub weights: Vec<ParameterValues>,
    /// Updates after which they were taken; several where they are a mean.
    pub updates: Vec<u64>,
    /// Files that they came from.
    pub files: Vec<PathBuf>,
}

impl CheckpointFolder {
    /// A folder, which is made when the first checkpoint is written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// States to resume from, newest first.
    pub fn states(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let mut found = self.files("state-")?;
        found.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }

    /// The newest whole checkpoint; `None` if there is none at all. Damaged ones are skipped and named in the warnings.
    pub fn latest(&self) -> Result<Option<Latest>, CheckpointError> {
        let (mut warnings, mut damaged) = (Vec::new(), Vec::new());
        for path in self.states()? {
            let read = Checkpoint::read(&path).and_then(|mut checkpoint| match checkpoint.state.take() {
                Some(state) => Ok((state, checkpoint)),
                None => {
                    Err(CheckpointError::Foreign { path: path.clone(), what: "it has no state".to_string() })
                }
            });
            match read {
                Ok((state, checkpoint)) => {
                    return Ok(Some(Latest { path, state, checkpoint, warnings, damaged }));
                }
                Err(error @ CheckpointError::Io { .. }) => return Err(error),
                Err(error) => {
                    warnings.push(error.to_string());
                    damaged.push(path);
                }
            }
        }
        match warnings.is_empty() {
            true => Ok(None),
            false => {
                Err(CheckpointError::NoneWhole { folder: self.path.clone(), reports: warnings.join("\n") })
            }
        }
    }

    /// Renames damaged states to `*.damaged`, so that the run's next ones are not taken for older than these.
    pub fn set_aside(&self, damaged: &[PathBuf]) -> Result<(), CheckpointError> {
        for path in damaged {
            let mut name = path.clone().into_os_string();
            name.push(".damaged");
            fs::rename(path, name).map_err(|source| CheckpointError::Io { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Writes a state to resume from, then deletes what is no longer needed. Its name carries the number of batches gone through.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let batch = checkpoint.state.as_ref().map_or(0, |state| state.counters.batch);
        let path = self.path.join(format!("state-{batch:010}.safetensors"));
        checkpoint.write(&path)?;
        self.prune()?;
        Ok(path)
    }

    /// Writes weights alone, as they are after `update` updates and `epoch` epochs.
    pub fn save_weights(
        &self,
        weights: Vec<ParameterValues>,
        epoch: u64,
        update: u64,
    ) -> Result<KeptWeights, CheckpointError> {
        let file = format!("weights-{update:08}.safetensors");
        let checkpoint = Checkpoint::of_weights(weights);
        let sha256 = checkpoint.write(&self.path.join(&file))?;
        Ok(KeptWeights { file, sha256, epoch, update })
    }

    /// The weights that a recipe evaluates, of the run as its newest checkpoint has it. That one must be whole: scores of older
    /// weights would pass for the run's. The last ones are their mean where the run keeps one (`train.checkpoint.ema`). A mean over the last `n` epochs or checkpoints is over those there are if the run was
    /// shorter.
    pub fn evaluated(&self, which: &EvaluatedWeights) -> Result<Evaluated, CheckpointError> {
        let absent =
            |what: &str| CheckpointError::Absent { folder: self.path.clone(), what: what.to_string() };
        let latest = self.latest()?.ok_or_else(|| absent("checkpoint"))?;
        if let Some(newer) = latest.damaged.first() {
            // Says again what is wrong with it, as an error.
            Checkpoint::read(newer)?;
        }
        match which {
            EvaluatedWeights::Last => Ok(Evaluated {
                weights: latest.checkpoint.into_evaluated(),
                updates: vec![latest.state.counters.update],
                files: vec![latest.path],
            }),
            EvaluatedWeights::Best { .. } => {
                let kept = latest.state.best_weights.ok_or_else(|| absent("weights of a best validation"))?;
                self.mean(std::slice::from_ref(&kept))
            }
            EvaluatedWeights::MeanOfEpochs { epochs: most }
            | EvaluatedWeights::MeanOfLast { checkpoints: most, every_updates: _ } => {
                let kept = &latest.state.kept_weights;
                let first = kept.len().saturating_sub(*most as usize);
                match which {
                    _ if !kept.is_empty() => self.mean(&kept[first..]),
                    EvaluatedWeights::MeanOfEpochs { .. } => Err(absent("weights of a finished epoch")),
                    _ => Err(absent("weights of `train.checkpoint.evaluate.every_updates` updates")),
                }
            }
        }
    }

    /// The mean of kept weights, added up in FP64 and rounded once.
    fn mean(&self, kept: &[KeptWeights]) -> Result<Evaluated, CheckpointError> {
        let mut sums: Vec<(ParameterValues, Vec<f64>)> = Vec::new();
        let mut files = Vec::new();
        for one in kept {
            let path = self.path.join(&one.file);
            let read = Checkpoint::read_checked(&path, &one.sha256)?;
            if files.is_empty() {
                let sum = |p: &ParameterValues| p.values.iter().map(|x| f64::from(*x)).collect();
                sums = read.weights.into_iter().map(|p| (sum(&p), p)).map(|(sum, p)| (p, sum)).collect();
            } else {
                if read.weights.len() != sums.len() {
                    let parameter = format!("({} instead of {} parameters)", read.weights.len(), sums.len());
                    return Err(CheckpointError::Unlike { path, parameter });
                }
                for (p, (first, sum)) in read.weights.iter().zip(&mut sums) {
                    if p.path != first.path || p.shape != first.shape {
                        return Err(CheckpointError::Unlike { path, parameter: p.path.clone() });
                    }
                    sum.iter_mut().zip(&p.values).for_each(|(sum, x)| *sum += f64::from(*x));
                }
            }
            files.push(path);
        }
        let n = kept.len() as f64;
        let mean = |(mut p, sum): (ParameterValues, Vec<f64>)| {
            p.values = sum.into_iter().map(|sum| (sum / n) as f32).collect();
            p
        };
        Ok(Evaluated {
            weights: sums.into_iter().map(mean).collect(),
            updates: kept.iter().map(|one| one.update).collect(),
            files,
        })
    }

    /// Deletes states beyond the last two, and weights that neither of the two refers to. Where a state cannot be read nothing is
    /// known about what it needs, and no weights are deleted.
    fn prune(&self) -> Result<(), CheckpointError> {
        let states = self.states()?;
        let (kept, old) = states.split_at(states.len().min(STATES));
        for path in old {
            self.remove(path)?;
        }
        let mut needed = BTreeSet::new();
        for path in kept {
            match read_state(path) {
                Ok(Some(state)) => needed.extend(state.weight_files().map(str::to_string)),
                _ => return Ok(()),
            }
        }
        for path in self.files("weights-")? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !needed.contains(name) {
                self.remove(&path)?;
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), CheckpointError> {
        fs::remove_file(path).map_err(|source| CheckpointError::Io { path: path.into(), source })
    }

    fn files(&self, prefix: &str) -> Result<Vec<PathBuf>, CheckpointError> {
        let io = |source| CheckpointError::Io { path: self.path.clone(), source };
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(io(e)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(prefix) && name.ends_with(".safetensors") {
                found.push(path);
            }
        }
        Ok(found)
    }
}
