//! Errors of fetching and verifying.

use std::io;
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted::{hint_line, shown};

use super::archive::UnpackError;
use super::digest::Mismatch;

/// One URL or path that was tried, and the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// URL or path.
    pub from: String,
    /// Why it did not give the file.
    pub reason: String,
}

/// Why a file could not be fetched or verified.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// `--offline`, and the file is neither in the home nor in a mirror folder.
    #[error(
        "{name} is not there and nothing may be downloaded (offline)\n\
         hint: fetch it without --offline, or put {} at {}{}",
        source_line(.urls, *.size), .place.display(), mirror_line(.mirror.as_deref())
    )]
    Missing {
        /// Name of the file.
        name: String,
        /// URLs of the file.
        urls: Vec<String>,
        /// Its size in bytes, where known.
        size: Option<u64>,
        /// Expected path in the home.
        place: PathBuf,
        /// Path in the mirror folder that was checked.
        mirror: Option<PathBuf>,
    },
    /// Every mirror and URL failed.
    #[error("{name} could not be fetched{}\nhint: {hint}", attempt_lines(.attempts))]
    AllFailed {
        /// Name of the file.
        name: String,
        /// Attempts, in order.
        attempts: Vec<Attempt>,
        /// Hint for the user.
        hint: String,
    },
    /// Every mirror and URL failed, and some were not tried because nothing could verify their
    /// file.
    #[error(
        "{name} could not be fetched{}\n\
         hint: use a mirror that is a folder or an https URL, or pass --yes to trust plain http",
        attempt_lines(.attempts)
    )]
    Unconfirmed {
        /// Name of the file.
        name: String,
        /// Attempts, in order.
        attempts: Vec<Attempt>,
    },
    /// A file under its final name does not match the expected one.
    #[error(
        "{} is damaged or is another file: {mismatch}\n\
         hint: remove it and fetch again (nothing is overwritten silently){}",
        .path.display(), pin_line(.mismatch)
    )]
    Corrupt {
        /// Path of the damaged file.
        path: PathBuf,
        /// Expected and actual values.
        mismatch: Mismatch,
    },
    /// The caller asked to stop.
    #[error("fetching {name} was interrupted\nhint: fetch again; downloaded bytes are kept")]
    Cancelled {
        /// Name of the file.
        name: String,
    },
    /// A URL that does not fit the `<host>/<path>` layout.
    #[error("unusable URL {url:?}: {reason}\nhint: give http://host/path or https://host/path")]
    Url {
        /// The URL.
        url: String,
        /// Why it does not fit.
        reason: String,
    },
    /// A record file that this crate keeps cannot be read.
    #[error("{}: {reason}\nhint: mend the file or remove it", .path.display())]
    Record {
        /// Path of the record.
        path: PathBuf,
        /// What is wrong with the record.
        reason: String,
    },
    /// The archive could not be read.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// An operation on the file system failed.
    #[error("cannot {doing} {}: {source}{}", .path.display(), hint_line(.source))]
    Io {
        /// The operation, e.g. `write`.
        doing: &'static str,
        /// File or folder of the operation.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl FetchError {
    /// Wraps an [`io::Error`] with the operation and the path; for `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }
}

fn source_line(urls: &[String], size: Option<u64>) -> String {
    let bytes = size.map(|n| format!(" ({n} bytes)")).unwrap_or_default();
    format!("{}{bytes}", urls.join(" or "))
}

fn mirror_line(mirror: Option<&Path>) -> String {
    mirror.map(|p| format!(", or into the mirror at {}", p.display())).unwrap_or_default()
}

fn attempt_lines(attempts: &[Attempt]) -> String {
    attempts.iter().map(|a| format!("\n  {}: {}", shown(&a.from), shown(&a.reason))).collect()
}

fn pin_line(mismatch: &Mismatch) -> &'static str {
    match mismatch {
        Mismatch::Pin { .. } => "; if its publisher really changed it, also remove its entry from pins.json",
        _ => "",
    }
}
