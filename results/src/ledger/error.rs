//! Errors of a ledger.

use std::io::ErrorKind;
use std::path::PathBuf;

/// Hint for an error of the file system.
fn mend(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space there and run the command again; the ledger is as it was before"
        }
        _ => "check the path and its permissions",
    }
}

/// Why a ledger cannot be read, verified or extended.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A file system operation failed.
    #[error("{}: {source}\nhint: {}", path.display(), mend(source))]
    Io {
        /// Path of the ledger.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line does not contain what was written.
    #[error(
        "{}:{line}: {what}\nhint: the ledger is append-only; compare with `git log -p` of the file and restore it",
        path.display()
    )]
    Damaged {
        /// Path of the ledger.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Field that was changed, if it can be identified.
        field: Option<String>,
        /// What was found.
        what: String,
    },
    /// The last line is incomplete: the machine stopped while writing it.
    #[error(
        "{}:{line}: the last line is cut off after {} bytes\nhint: it was never complete; remove it with `truncate -s {whole} {}`",
        path.display(), length - whole, path.display()
    )]
    Torn {
        /// Path of the ledger.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Number of bytes of the complete lines before it.
        whole: u64,
        /// Size of the file in bytes.
        length: u64,
    },
    /// The last record is not the expected one: lines were removed from the end.
    #[error(
        "{}: the last record is {found}, not {expected}\nhint: records were removed from the end, or the file was rewritten; \
         restore the file from version control",
        path.display()
    )]
    OtherHead {
        /// Path of the ledger.
        path: PathBuf,
        /// Expected hash.
        expected: String,
        /// Hash that was found.
        found: String,
    },
    /// A record cannot be written as JSON.
    #[error("a record cannot be written: {0}\nhint: this is a defect of the program; please report it")]
    Encode(#[from] serde_json::Error),
}
