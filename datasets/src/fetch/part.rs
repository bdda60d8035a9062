//! `NAME.part` and its sidecar: a download that is not finished.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::FetchError;
use super::record::{beside, read_json, write_json};

/// What the server said about the file whose first bytes lie in the part file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartState {
    /// The URL that the bytes came from. Another URL may have another file.
    pub url: String,
    /// `ETag`, if strong.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// Length of the whole file.
    pub length: Option<u64>,
}

impl PartState {
    /// What goes into `If-Range`: a strong `ETag`, else the date.
    pub(crate) fn validator(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }
}

/// A part file and its sidecar.
#[derive(Debug)]
pub(crate) struct Part {
    pub path: PathBuf,
    sidecar: PathBuf,
}

impl Part {
    /// The part of the file that will be called `target`.
    pub(crate) fn of(target: &Path) -> Self {
        Self { path: beside(target, ".part"), sidecar: beside(target, ".part.json") }
    }

    /// Bytes there, and where they came from. Nothing usable, for whatever reason, is zero bytes.
    pub(crate) fn state(&self) -> (u64, Option<PartState>) {
        let bytes = fs::metadata(&self.path).map_or(0, |m| m.len());
        match read_json::<PartState>(&self.sidecar) {
            Ok(Some(state)) if bytes > 0 => (bytes, Some(state)),
            _ => (0, None),
        }
    }

    /// Notes where the bytes come from; to be done before the first byte is written.
    pub(crate) fn note(&self, state: &PartState) -> Result<(), FetchError> {
        write_json(&self.sidecar, state)
    }

    /// Forgets the sidecar: the bytes are whole, or no longer of use.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(&self.sidecar);
    }

    /// Removes both files.
    pub(crate) fn discard(&self) {
        let _ = fs::remove_file(&self.path);
        self.forget();
    }
}
