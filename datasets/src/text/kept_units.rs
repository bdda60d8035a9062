//! The units of a language model, kept as one file, which a model of another task may read.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::{atomic, untrusted};

/// File of [`Kept`].
const KEPT: &str = "kept.json";

/// Content of `kept.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// SHA-256 of the units as JSON.
    sha256: String,
    /// The units in the order of their numbers.
    units: Vec<String>,
}

/// The file cannot be written or read, or was changed.
#[derive(Debug)]
pub struct KeptUnitsError {
    /// Path of the file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

fn failed(path: &Path, reason: &dyn Display) -> KeptUnitsError {
    KeptUnitsError { path: path.into(), reason: reason.to_string() }
}

fn digest(units: &[String]) -> String {
    hex::encode(Sha256::digest(serde_json::json!(units).to_string().as_bytes()))
}

/// Writes units into a folder.
///
/// # Errors
/// The file cannot be written.
pub fn write(folder: &Path, units: &[String]) -> Result<(), KeptUnitsError> {
    let path = folder.join(KEPT);
    let kept = Kept { sha256: digest(units), units: units.to_vec() };
    let json = serde_json::to_vec_pretty(&kept).map_err(|error| failed(&path, &error))?;
    atomic::write_whole(&path, &json).map_err(|error| failed(&path, &error))
}

/// Reads the units of a folder; `None` if nothing was kept.
///
/// # Errors
/// The file cannot be read, or was changed.
pub fn read(folder: &Path) -> Result<Option<Vec<String>>, KeptUnitsError> {
    let path = folder.join(KEPT);
    if !path.is_file() {
        return Ok(None);
    }
    let json = untrusted::read(&path).map_err(|error| failed(&path, &error))?;
    let Kept { sha256, units } = serde_json::from_slice(&json).map_err(|error| failed(&path, &error))?;
    match digest(&units) == sha256 {
        true => Ok(Some(units)),
        false => Err(failed(&path, &"it was changed: the SHA-256 of the units is another")),
    }
}
