//! Checkpoints on disk.
//!
//! A checkpoint is one safetensors file. Its arrays are `weights/<path>`,
//! `optimizer/<phase>/<moment>/<path>` and, if the run keeps a mean of its weights,
//! `average/<path>`, all FP32. Its metadata holds a JSON text, preceded by the SHA-256 of the text.
//! The text contains the run's state and a SHA-256 of every array (over name, shape and bytes), so
//! a flipped byte is detected and located. A file is written under a temporary name, flushed to
//! disk and renamed.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_models::parameters::ParameterValues;
use zoo_recipes::atomic::write_whole;
use zoo_recipes::untrusted;

use crate::optimizer::Moment;
use crate::state::RunState;

const KEY: &str = "zoo";
const FORMAT: &str = "zoo-checkpoint-1";

/// Error of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error(
        "{path}: {source}\nhint: {}",
        untrusted::hint_or(source, "is the folder there, and may it be written?")
    )]
    Io {
        /// Path of the file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The content differs from what was written.
    #[error(
        "checkpoint {path} is damaged: {what}\nhint: the run resumes from the previous checkpoint, if it is intact"
    )]
    Damaged {
        path: PathBuf,
        /// Description of the damage, with the array's name.
        what: String,
    },
    /// The file is intact but is not a checkpoint, or has another version.
    #[error("{path} is not a checkpoint of this version: {what}\nhint: start the run anew in another folder")]
    Foreign {
        path: PathBuf,
        /// Description of the content.
        what: String,
    },
    /// There are checkpoints, but all are damaged.
    #[error("{folder} has no intact checkpoint:\n{reports}\nhint: delete them to start again")]
    NoneWhole {
        folder: PathBuf,
        /// Problem of each checkpoint.
        reports: String,
    },
    /// There is nothing to evaluate.
    #[error(
        "{folder} has no {what}\nhint: train first (a run keeps them as `train.checkpoint.evaluate` says)"
    )]
    Absent {
        folder: PathBuf,
        /// Description of the missing checkpoint.
        what: String,
    },
    /// The newest state of an ended run is missing. An older state would count as its result.
    #[error(
        "{path} is missing: the run ended after {updates} updates, and the newest checkpoint that is left has {left}\nhint: put the file \
         back, or train the run again"
    )]
    Missing {
        /// Path of the file, or a pattern in the folder if its name was not recorded.
        path: PathBuf,
        /// Updates of the missing state.
        updates: u64,
        /// Updates of the newest state that exists.
        left: u64,
    },
    /// The run's folder contains a checkpoint of another run.
    #[error(
        "{path} does not belong to this run: {what}\nhint: put the run's own file back, or train the run again"
    )]
    OtherRun {
        path: PathBuf,
        /// Description of the mismatch.
        what: String,
    },
    /// Weights that cannot be averaged.
    #[error(
        "{path}: parameter `{parameter}` is not in the first checkpoint with this shape\nhint: average checkpoints of one run"
    )]
    Unlike {
        path: PathBuf,
        /// Path of the parameter.
        parameter: String,
    },
}

/// Optimizer arrays of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseMoments {
    pub phase: String,
    /// Arrays of the optimizer.
    pub moments: Vec<Moment>,
}

/// A checkpoint to resume from (with `state`), or weights only (without).
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    pub state: Option<RunState>,
    /// Parameter values.
    pub weights: Vec<ParameterValues>,
    /// Exponential mean of the weights of a run with `train.checkpoint.ema`; empty in others.
    pub average: Vec<ParameterValues>,
    /// Optimizer arrays, by phase.
    pub moments: Vec<PhaseMoments>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    state: Option<RunState>,
    digests: BTreeMap<String, String>,
}

impl Checkpoint {
    /// A checkpoint of weights only.
    pub fn of_weights(weights: Vec<ParameterValues>) -> Self {
        Self { state: None, weights, average: Vec::new(), moments: Vec::new() }
    }

    /// The weights to validate and evaluate: the exponential mean where the run keeps one.
    pub fn into_evaluated(self) -> Vec<ParameterValues> {
        if self.average.is_empty() { self.weights } else { self.average }
    }

    /// Writes the file and returns its SHA-256. Only a file of the same name is replaced,
    /// atomically.
    pub fn write(&self, path: &Path) -> Result<String, CheckpointError> {
        let mut arrays: BTreeMap<String, (Vec<usize>, &[f32])> = BTreeMap::new();
        for (kind, values) in [("weights", &self.weights), ("average", &self.average)] {
            for p in values {
                arrays.insert(format!("{kind}/{}", p.path), (p.shape.clone(), &p.values));
            }
        }
        for phase in &self.moments {
            for m in &phase.moments {
                let name = format!("optimizer/{}/{}/{}", phase.phase, m.name, m.path);
                arrays.insert(name, (vec![m.values.len()], &m.values));
            }
        }
        let arrays: Vec<(String, Vec<usize>, Vec<u8>)> =
            arrays.into_iter().map(|(name, (shape, values))| (name, shape, bytes_of(values))).collect();
        let digests = arrays
            .iter()
            .map(|(name, shape, bytes)| (name.clone(), array_digest(name, shape, bytes)))
            .collect();
        let header = Header { format: FORMAT.to_string(), state: self.state.clone(), digests };
        let json =
            serde_json::to_string(&header).expect("a state of strings and finite numbers becomes JSON");
        let text = format!("{} {json}", hex::encode(Sha256::digest(json.as_bytes())));
        let foreign = |e: safetensors::SafeTensorError| CheckpointError::Foreign {
            path: path.into(),
            what: e.to_string(),
        };
        let mut views = Vec::with_capacity(arrays.len());
        for (name, shape, bytes) in &arrays {
            views.push((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(foreign)?));
        }
        let metadata = HashMap::from([(KEY.to_string(), text)]);
        let bytes = safetensors::serialize(views, Some(metadata)).map_err(foreign)?;
        write_whole(path, &bytes).map_err(|source| CheckpointError::Io { path: path.into(), source })?;
        Ok(hex::encode(Sha256::digest(&bytes)))
    }

    /// Reads a file and verifies every byte of it.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let bytes =
            untrusted::read(path).map_err(|source| CheckpointError::Io { path: path.into(), source })?;
        Self::parse(path, &bytes)
    }

    /// Reads a file like [`Checkpoint::read`], and checks the SHA-256 of the whole file.
    pub fn read_checked(path: &Path, sha256: &str) -> Result<Self, CheckpointError> {
        let bytes =
            untrusted::read(path).map_err(|source| CheckpointError::Io { path: path.into(), source })?;
        let parsed = Self::parse(path, &bytes)?;
        let found = hex::encode(Sha256::digest(&bytes));
        if found != sha256 {
            let what = format!("its SHA-256 is {found}, the run noted {sha256}");
            return Err(CheckpointError::Damaged { path: path.into(), what });
        }
        Ok(parsed)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |what: String| CheckpointError::Damaged { path: path.into(), what };
        let (_, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|e| damaged(format!("its header cannot be read ({e})")))?;
        let header = header_of(path, metadata.metadata())?;
        let file =
            SafeTensors::deserialize(bytes).map_err(|e| damaged(format!("it cannot be read ({e})")))?;
        let mut checkpoint = Self { state: header.state, ..Self::of_weights(Vec::new()) };
        let mut missing = header.digests.clone();
        let mut names: Vec<&str> = file.names();
        names.sort_unstable();
        for name in names {
            let view = file.tensor(name).map_err(|e| damaged(format!("array `{name}`: {e}")))?;
            let expected =
                missing.remove(name).ok_or_else(|| damaged(format!("array `{name}` has no digest")))?;
            if view.dtype() != Dtype::F32 || array_digest(name, view.shape(), view.data()) != expected {
                return Err(damaged(format!("array `{name}` does not have its SHA-256")));
            }
            let values = values_of(view.data());
            match name.split_once('/') {
                Some((kind @ ("weights" | "average"), path)) => {
                    let to =
                        if kind == "weights" { &mut checkpoint.weights } else { &mut checkpoint.average };
                    to.push(ParameterValues { path: path.to_string(), shape: view.shape().to_vec(), values });
                }
                Some(("optimizer", rest)) => {
                    let mut parts = rest.splitn(3, '/');
                    let (Some(phase), Some(moment), Some(path)) = (parts.next(), parts.next(), parts.next())
                    else {
                        return Err(damaged(format!("array `{name}` has no place")));
                    };
                    let moment = Moment { name: moment.to_string(), path: path.to_string(), values };
                    match checkpoint.moments.iter_mut().find(|known| known.phase == phase) {
                        Some(known) => known.moments.push(moment),
                        None => checkpoint
                            .moments
                            .push(PhaseMoments { phase: phase.to_string(), moments: vec![moment] }),
                    }
                }
                _ => return Err(damaged(format!("array `{name}` has no place"))),
            }
        }
        match missing.keys().next() {
            Some(name) => Err(damaged(format!("array `{name}` is missing"))),
            None => Ok(checkpoint),
        }
    }
}

/// Reads the state of a checkpoint without its arrays (whose digests are not checked).
pub fn read_state(path: &Path) -> Result<Option<RunState>, CheckpointError> {
    let io = |source| CheckpointError::Io { path: path.into(), source };
    let mut file = untrusted::open(path).map_err(io)?;
    let mut length = [0u8; 8];
    file.read_exact(&mut length).map_err(io)?;
    let n = u64::from_le_bytes(length);
    let size = file.metadata().map_err(io)?.len();
    if n > size {
        let what = format!("its header says it is {n} bytes long, the file has {size}");
        return Err(CheckpointError::Damaged { path: path.into(), what });
    }
    let mut text = vec![0u8; n as usize];
    file.read_exact(&mut text).map_err(io)?;
    #[derive(Deserialize)]
    struct OnlyMetadata {
        #[serde(rename = "__metadata__")]
        metadata: Option<HashMap<String, String>>,
    }
    let only: OnlyMetadata = serde_json::from_slice(&text).map_err(|e| CheckpointError::Damaged {
        path: path.into(),
        what: format!("its header cannot be read ({e})"),
    })?;
    Ok(header_of(path, &only.metadata)?.state)
}

fn header_of(path: &Path, metadata: &Option<HashMap<String, String>>) -> Result<Header, CheckpointError> {
    let damaged = |what: &str| CheckpointError::Damaged { path: path.into(), what: what.to_string() };
    let foreign = |what: String| CheckpointError::Foreign { path: path.into(), what };
    let text = metadata
        .as_ref()
        .and_then(|metadata| metadata.get(KEY))
        .ok_or_else(|| foreign(format!("its metadata has no `{KEY}`")))?;
    let (digest, json) = text.split_once(' ').ok_or_else(|| damaged("its state has no SHA-256"))?;
    if digest != hex::encode(Sha256::digest(json.as_bytes())) {
        return Err(damaged("the run's state does not have its SHA-256"));
    }
    let header: Header = serde_json::from_str(json).map_err(|e| foreign(e.to_string()))?;
    if header.format != FORMAT {
        return Err(foreign(format!("its format is `{}`", header.format)));
    }
    Ok(header)
}

fn array_digest(name: &str, shape: &[usize], bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{name} {shape:?} "));
    hasher.update(bytes);
    hex::encode(hasher.finalize())
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0u8; 4 * values.len()];
    bytes.chunks_exact_mut(4).zip(values).for_each(|(to, x)| to.copy_from_slice(&x.to_le_bytes()));
    bytes
}

fn values_of(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}
