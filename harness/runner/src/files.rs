//! Files of the program's own folders, written whole or not at all.

use std::fs;
use std::path::{Component, Path};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zoo_recipes::atomic;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// Size and times of a file or folder. It counts as unchanged while all are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    bytes: u64,
    /// Time of the last change of the content, in nanoseconds since 1970.
    written: u64,
    /// Time of the last change of content, name or permissions, where the system has it. Programs that
    /// copy folders set the former time back, and cannot set this one.
    changed: u64,
}

impl Stamp {
    /// The present stamp. `None` if the file does not exist or its metadata cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        let written = about.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let written = u64::try_from(written.as_nanos()).ok()?;
        Some(Self { bytes: about.len(), written, changed: changed(&about).unwrap_or(written) })
    }

    /// The stamp of this program's file.
    pub fn of_program() -> Option<Self> {
        Self::of(&std::env::current_exe().ok()?)
    }

    /// Whether the last change was before a time. Another one within the same tick of the file
    /// system's clock would not show.
    pub fn is_before(self, time: SystemTime) -> bool {
        let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u128::from(self.written.max(self.changed)) < time.as_nanos()
    }
}

#[cfg(unix)]
fn changed(about: &fs::Metadata) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let seconds = u64::try_from(about.ctime()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(about.ctime_nsec()).ok()?)
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> Option<u64> {
    None
}

/// Whether a path stays below any folder that it is joined to: it has names of folders and files, no
/// `..`, and no root.
pub fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|step| matches!(step, Component::Normal(_)))
}

/// Reads a JSON file of ours.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|e| Failure::io("read", path, &e))?;
    serde_json::from_slice(&text).map_err(|e| {
        Failure::new(Exit::Damaged, format!("{}: {e}", path.display()))
            .hint("the file was changed or is of another version; move the folder away to start again")
    })
}

/// The content of a JSON file of ours.
pub fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot write JSON: {error}")))
}

/// Writes a JSON file under a temporary name, then renames it.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    write_whole(path, &json(value)?)
}

/// Writes a file under a temporary name and renames it.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    atomic::write_whole(file, bytes).map_err(|error| Failure::io("write", file, &error))
}
