//! Types shared by all steps of unpacking an archive: limits, members, errors.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted::{escaped, hint, shown};

/// Limits on the unpacked size of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Maximum number of unpacked bytes in total.
    pub bytes: u64,
    /// Maximum ratio of unpacked to packed bytes; applies after the first 16 MiB of output. Text
    /// has a ratio of 3 to 10.
    pub ratio: u64,
    /// Maximum number of entries.
    pub entries: u64,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self { bytes: 256 << 30, ratio: 100, entries: 2_000_000 }
    }
}

/// Why an archive was not unpacked. Nothing that was unpacked is left behind.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}\nhint: {hint}", .archive.display())]
pub struct UnpackError {
    /// Path of the archive.
    pub archive: PathBuf,
    reason: String,
    hint: &'static str,
}

impl UnpackError {
    /// The reason, without the archive's name.
    pub fn reason(&self) -> String {
        self.reason.clone()
    }

    pub(super) fn unreadable(archive: &Path, error: &io::Error) -> Self {
        io_failure(archive, "", error)
    }
}

/// One regular file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Path inside the archive, with `/` between the parts and without a leading `./`.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// The error for an archive that is refused. `reason` is escaped because it may contain bytes of
/// the archive.
pub(super) fn refused(archive: &Path, reason: String) -> UnpackError {
    let hint = if reason.contains("more than") {
        "if you trust the archive, unpack it manually"
    } else {
        "nothing of it was kept; fetch the archive again, or report it to its publisher"
    };
    UnpackError { archive: archive.into(), reason: escaped(&reason).into_owned(), hint }
}

/// Converts an error of reading or writing; `what` goes before it in the message.
pub(super) fn io_failure(archive: &Path, what: &str, e: &io::Error) -> UnpackError {
    let text = shown(&e.to_string());
    // The error comes from the system (full disk, missing permission, device), not from the
    // archive.
    let of_system = hint(e);
    let reason = match e.kind() {
        _ if of_system.is_some() => text,
        io::ErrorKind::UnexpectedEof => format!("it ends early ({text})"),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => format!("it is damaged ({text})"),
        _ => text,
    };
    let failure = refused(archive, format!("{what}{reason}"));
    UnpackError { hint: of_system.unwrap_or(failure.hint), ..failure }
}
