//! What every step of unpacking an archive shares: its limits, its members, its errors.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted::{escaped, hint, shown};

/// What an archive may grow to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes in all, unpacked.
    pub bytes: u64,
    /// Unpacked bytes for each packed one, once more than 16 MiB came out. Text packs 3 to 10 times.
    pub ratio: u64,
    /// Number of entries.
    pub entries: u64,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self { bytes: 256 << 30, ratio: 100, entries: 2_000_000 }
    }
}

/// Why an archive was not unpacked. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}\nhint: {hint}", .archive.display())]
pub struct UnpackError {
    /// The archive.
    pub archive: PathBuf,
    reason: String,
    hint: &'static str,
}

impl UnpackError {
    /// What happened, without the archive's name.
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
    /// Path inside the archive, `/` between the parts, no leading `./`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// The error of an archive that is refused. Bytes of the archive in `reason` are escaped.
pub(super) fn refused(archive: &Path, reason: String) -> UnpackError {
    let hint = if reason.contains("more than") {
        "if you trust the archive, unpack it manually"
    } else {
        "nothing of it was kept; fetch the archive again, or report it to its publisher"
    };
    UnpackError { archive: archive.into(), reason: escaped(&reason).into_owned(), hint }
}

/// What a reading or writing error means, with `what` before it.
pub(super) fn io_failure(archive: &Path, what: &str, e: &io::Error) -> UnpackError {
    let text = shown(&e.to_string());
    // Of the system, not of the archive: a full disk, a missing right, a device.
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
