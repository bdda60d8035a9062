//! Small JSON records kept beside the data: what was fetched from where, and the pins of files
//! without a published digest.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zoo_recipes::atomic::write_whole;

use super::error::FetchError;
use super::layout::DataHome;
use super::lock::Lock;

/// Length and modification time of a file. Equal stamps mean that the file was not written since it
/// was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub bytes: u64,
    pub modified_ns: u64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified_ns: metadata.modified().map_or(0, nanoseconds) }
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// `NAME.fetched.json`, beside each fetched file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedRecord {
    /// URL or mirror path; `by hand` for a file that the user put there.
    pub from: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// The digest that it was checked against, in the format of [`super::Digest`]'s `Display`.
    pub checked: String,
    /// Time of verification, in seconds since 1970.
    pub verified: u64,
    /// The file's stamp at that time.
    pub stamp: Stamp,
}

/// `path` with `suffix` appended to its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    nanoseconds(SystemTime::now()) / 1_000_000_000
}

/// Reads a record; `None` if the file does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FetchError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(FetchError::io("read", path)(e)),
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|e| FetchError::Record { path: path.into(), reason: e.to_string() })
}

/// Writes a record under a temporary name and renames it.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), FetchError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|e| FetchError::Record { path: path.into(), reason: e.to_string() })?;
    text.push(b'\n');
    write_whole(path, &text).map_err(FetchError::io("write", path))
}

/// A digest pinned at the first fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// SHA-256 of the file at the first fetch.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// The URL or path it came from.
    pub from: String,
    /// Time of the pin, in seconds since 1970.
    pub pinned: u64,
}

/// The pins of a home, by `<host>/<path>`.
pub(crate) type Pins = BTreeMap<String, Pin>;

/// The pin of `place`, if there is one.
pub(crate) fn pin_of(home: &DataHome, place: &str) -> Result<Option<Pin>, FetchError> {
    let pins: Option<Pins> = read_json(&home.pins_path())?;
    Ok(pins.and_then(|mut pins| pins.remove(place)))
}

/// Pins `place` unless it is pinned already. Returns the pin that is in force.
pub(crate) fn pin(home: &DataHome, place: &str, new: Pin) -> Result<Pin, FetchError> {
    let path = home.pins_path();
    let _lock = Lock::take(&home.lock_path("pins.json"), || Ok(()))?;
    let mut pins: Pins = read_json(&path)?.unwrap_or_default();
    if let Some(pin) = pins.get(place) {
        return Ok(pin.clone());
    }
    pins.insert(place.to_owned(), new.clone());
    write_json(&path, &pins)?;
    Ok(new)
}
