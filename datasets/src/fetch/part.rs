//! An unfinished download: `NAME.part` and its sidecar.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::FetchError;
use super::record::{beside, read_json, write_json};

/// Headers of the server for the file whose first bytes are in the part file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartState {
    /// The URL of the bytes. Another URL may have a different file.
    pub url: String,
    /// `ETag`, if it is strong.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// Length of the whole file in bytes.
    pub length: Option<u64>,
}

impl PartState {
    /// Value of `If-Range`: a strong `ETag`, or else the date.
    pub(crate) fn validator(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }
}

/// Paths of a part file and its sidecar.
#[derive(Debug)]
pub(crate) struct Part {
    pub path: PathBuf,
    sidecar: PathBuf,
}

impl Part {
    /// The part file of `target`, which is the final name.
    pub(crate) fn of(target: &Path) -> Self {
        Self { path: beside(target, ".part"), sidecar: beside(target, ".part.json") }
    }

    /// Length of the part file, and where its bytes came from. Anything unusable, for any reason,
    /// counts as zero bytes.
    pub(crate) fn state(&self) -> (u64, Option<PartState>) {
        let bytes = fs::metadata(&self.path).map_or(0, |m| m.len());
        match read_json::<PartState>(&self.sidecar) {
            Ok(Some(state)) if bytes > 0 => (bytes, Some(state)),
            _ => (0, None),
        }
    }

    /// Writes the sidecar. Call this before the first byte is written.
    pub(crate) fn note(&self, state: &PartState) -> Result<(), FetchError> {
        write_json(&self.sidecar, state)
    }

    /// Removes the sidecar: the file is complete, or its bytes are useless.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(&self.sidecar);
    }

    /// Removes both files.
    pub(crate) fn discard(&self) {
        let _ = fs::remove_file(&self.path);
        self.forget();
    }
}
