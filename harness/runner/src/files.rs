//! Files of the program's own folders, written whole or not at all.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zoo_recipes::atomic;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// Reads a JSON file of ours.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|e| Failure::io("read", path, &e))?;
    serde_json::from_slice(&text).map_err(|e| {
        Failure::new(Exit::Damaged, format!("{}: {e}", path.display()))
            .hint("the file was changed or is of another version; move the folder away to start again")
    })
}

/// Writes a JSON file under a temporary name, then renames it.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|e| Failure::new(Exit::Internal, format!("cannot write {}: {e}", path.display())))?;
    write_whole(path, &text)
}

/// Writes a file under a temporary name and renames it.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    atomic::write_whole(file, bytes).map_err(|error| Failure::io("write", file, &error))
}
