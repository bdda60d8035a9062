//! The checkpoints of a run: which ones to keep, which one to resume from, which weights to
//! evaluate.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_models::parameters::ParameterValues;
use zoo_recipes::EvaluatedWeights;

use crate::checkpoint::{Checkpoint, CheckpointError, read_state};
use crate::state::{KeptWeights, RunState};

/// Number of states that are kept to resume from: the newest, and one more in case the newest is
/// damaged.
const STATES: usize = 2;

/// A folder of checkpoints.
#[derive(Debug, Clone)]
pub struct CheckpointFolder {
    path: PathBuf,
}

/// The checkpoint from which a run resumes.
#[derive(Debug)]
pub struct Latest {
    /// Path of its file.
    pub path: PathBuf,
    pub state: RunState,
    /// Weights and moments. Its `state` has been moved out.
    pub checkpoint: Checkpoint,
    /// Problems of newer checkpoints.
    pub warnings: Vec<String>,
    /// Files of the newer, damaged checkpoints.
    pub damaged: Vec<PathBuf>,
}

/// The weights that a recipe evaluates.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// Parameter values.
    pub weights: Vec<ParameterValues>,
    /// Numbers of updates after which the weights were saved; several for a mean.
    pub updates: Vec<u64>,
    /// Files that the weights were read from.
    pub files: Vec<PathBuf>,
}

/// Name and digest of a file of the folder, as a run records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotedFile {
    /// Name of the file in the folder.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// End of a run, as the record of the run states it.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// Number of updates.
    pub updates: u64,
    /// The last saved state. Earlier versions of the program did not record it.
    pub last_state: Option<&'a NotedFile>,
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn digest_of(path: &Path) -> Result<String, CheckpointError> {
    let io = |source| CheckpointError::Io { path: path.to_owned(), source };
    let (mut file, mut hasher) = (fs::File::open(path).map_err(io)?, Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => return Ok(hex::encode(hasher.finalize())),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Checks the key of the run, which is the first word of a state's fingerprint.
fn check_key(path: &Path, state: &RunState, key: &str) -> Result<(), CheckpointError> {
    let found = state.identity.fingerprint.split(' ').next().unwrap_or_default();
    if found == key {
        return Ok(());
    }
    let what = format!("it was saved by the run {}, this one is {}", short(found), short(key));
    Err(CheckpointError::OtherRun { path: path.to_owned(), what })
}

/// The part of a key that is used in folder names.
fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}

impl CheckpointFolder {
    /// Opens a folder. It is created when the first checkpoint is written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// States to resume from, newest first.
    pub fn states(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let mut found = self.files("state-")?;
        found.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }

    /// The newest intact checkpoint; `None` if there is no checkpoint at all. Damaged ones are
    /// skipped and listed in the warnings.
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

    /// Name and digest of the newest state's file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn note_newest(&self) -> Result<Option<NotedFile>, CheckpointError> {
        let Some(path) = self.states()?.into_iter().next() else { return Ok(None) };
        let file = name_of(&path).to_owned();
        Ok(Some(NotedFile { file, sha256: digest_of(&path)? }))
    }

    /// Checks the newest state. For an ended run with the fingerprint `key …`, it must be the state
    /// with which the run ended; for a running one, it must belong to the run. Otherwise an older
    /// state, or one of another arm, would be evaluated as the run's result.
    ///
    /// # Errors
    /// The file that is missing or does not belong to the run.
    pub fn check_newest(&self, key: &str, ended: Option<Ended<'_>>) -> Result<(), CheckpointError> {
        let Some(path) = self.states()?.into_iter().next() else { return Ok(()) };
        let Some(state) = read_state(&path)? else {
            return Err(CheckpointError::Foreign { path, what: "it has no state".to_owned() });
        };
        check_key(&path, &state, key)?;
        let Some(Ended { updates, last_state }) = ended else { return Ok(()) };
        let left = state.counters.update;
        if let Some(last) = last_state.filter(|last| last.file != name_of(&path)) {
            return Err(CheckpointError::Missing { path: self.path.join(&last.file), updates, left });
        }
        if left != updates {
            return Err(CheckpointError::Missing {
                path: self.path.join("state-*.safetensors"),
                updates,
                left,
            });
        }
        match last_state {
            Some(last) if digest_of(&path)? != last.sha256 => {
                let what = "it does not have the SHA-256 that was noted when the run ended".to_owned();
                Err(CheckpointError::OtherRun { path, what })
            }
            _ => Ok(()),
        }
    }

    /// Reads a checkpoint that the user named: a state of the run with the fingerprint `key …`, or
    /// weights that one of its states refers to.
    ///
    /// # Errors
    /// If the file is damaged or does not belong to the run.
    pub fn read_named(&self, path: &Path, key: &str) -> Result<Checkpoint, CheckpointError> {
        if let Some(state) = read_state(path)? {
            check_key(path, &state, key)?;
            return Checkpoint::read(path);
        }
        for file in self.states()? {
            let state = read_state(&file)?.filter(|state| check_key(&file, state, key).is_ok());
            let named = state.iter().flat_map(|state| state.kept_weights.iter().chain(&state.best_weights));
            if let Some(kept) = named.into_iter().find(|kept| kept.file == name_of(path)) {
                return Checkpoint::read_checked(path, &kept.sha256);
            }
        }
        let what = "none of the run's states names it".to_owned();
        Err(CheckpointError::OtherRun { path: path.to_owned(), what })
    }

    /// Renames damaged states to `*.damaged`, so that they do not count as newer than the run's
    /// next states.
    pub fn set_aside(&self, damaged: &[PathBuf]) -> Result<(), CheckpointError> {
        for path in damaged {
            let mut name = path.clone().into_os_string();
            name.push(".damaged");
            fs::rename(path, name).map_err(|source| CheckpointError::Io { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Writes a state to resume from, then deletes files that are no longer needed. The file name
    /// contains the number of batches processed.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let batch = checkpoint.state.as_ref().map_or(0, |state| state.counters.batch);
        let path = self.path.join(format!("state-{batch:010}.safetensors"));
        checkpoint.write(&path)?;
        self.prune()?;
        Ok(path)
    }

    /// Writes weights only, as they are after `update` updates and `epoch` epochs.
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

    /// The weights that a recipe evaluates, according to the run's newest checkpoint. The newest
    /// checkpoint must be intact, because scores of older weights would count as the run's. `Last`
    /// returns the exponential mean of the weights where the run keeps one
    /// (`train.checkpoint.ema`). A mean over `n` epochs or checkpoints uses fewer if the run was
    /// shorter.
    pub fn evaluated(&self, which: &EvaluatedWeights) -> Result<Evaluated, CheckpointError> {
        let absent =
            |what: &str| CheckpointError::Absent { folder: self.path.clone(), what: what.to_string() };
        let latest = self.latest()?.ok_or_else(|| absent("checkpoint"))?;
        if let Some(newer) = latest.damaged.first() {
            // Returns the problem of the damaged checkpoint as an error.
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

    /// The mean of kept weights, summed in FP64 and rounded once.
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

    /// Deletes states beyond the last two, and weights that neither of the two refers to. If a
    /// state cannot be read, its weights are unknown, and no weights are deleted.
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
