//! Errors of fetching and verifying.

use std::io;
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted::{hint_line, shown};

use super::archive::UnpackError;
use super::digest::Mismatch;

/// One place that was tried and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// URL or path.
    pub from: String,
    /// Why it gave no file.
    pub reason: String,
}

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// `--offline`, and the file is neither in the home nor in a mirror folder.
    #[error(
        "{name} is not there and nothing may be downloaded (offline)\n\
         hint: fetch it without --offline, or put {} at {}{}",
        source_line(.urls, *.size), .place.display(), mirror_line(.mirror.as_deref())
    )]
    Missing {
        /// The file.
        name: String,
        /// Where it can be had.
        urls: Vec<String>,
        /// Its size in bytes, where known.
        size: Option<u64>,
        /// Where it should be.
        place: PathBuf,
        /// Where it was looked for in the mirror.
        mirror: Option<PathBuf>,
    },
    /// Every mirror and URL failed.
    #[error("{name} could not be fetched{}\nhint: {hint}", attempt_lines(.attempts))]
    AllFailed {
        /// The file.
        name: String,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
        /// What to do.
        hint: String,
    },
    /// Every mirror and URL failed, and some were not asked: nothing would tell whether the file is the right one.
    #[error(
        "{name} could not be fetched{}\n\
         hint: use a mirror that is a folder or an https URL, or pass --yes to trust plain http",
        attempt_lines(.attempts)
    )]
    Unconfirmed {
        /// The file.
        name: String,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
    },
    /// A file under its final name is not the file that it should be.
    #[error(
        "{} is damaged or is another file: {mismatch}\n\
         hint: remove it and fetch again (nothing is overwritten silently){}",
        .path.display(), pin_line(.mismatch)
    )]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Expected and actual.
        mismatch: Mismatch,
    },
    /// The caller asked to stop.
    #[error("fetching {name} was interrupted\nhint: fetch again; downloaded bytes are kept")]
    Cancelled {
        /// The file.
        name: String,
    },
    /// A URL that has no place in the `<host>/<path>` layout.
    #[error("unusable URL {url:?}: {reason}\nhint: give http://host/path or https://host/path")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A record that this crate keeps cannot be read.
    #[error("{}: {reason}\nhint: mend the file or remove it", .path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The archive could not be read.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// The file system said no.
    #[error("cannot {doing} {}: {source}{}", .path.display(), hint_line(.source))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl FetchError {
    /// An [`io::Error`] with what was being done to which path; for `map_err`.
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
