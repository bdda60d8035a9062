//! What can be wrong with a ledger.

use std::io::ErrorKind;
use std::path::PathBuf;

/// What to do about an error of the file system.
fn mend(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space there and run the command again; the ledger is as it was before"
        }
        _ => "check the path and its permissions",
    }
}

/// Why a ledger cannot be read, verified or added to.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file system refused.
    #[error("{}: {source}\nhint: {}", path.display(), mend(source))]
    Io {
        /// The ledger.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line does not hold what was written.
    #[error(
        "{}:{line}: {what}\nhint: the ledger is append-only; compare with `git log -p` of the file and restore it",
        path.display()
    )]
    Damaged {
        /// The ledger.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Field that was changed, where it can be told.
        field: Option<String>,
        /// What was found.
        what: String,
    },
    /// The last line is not whole: the machine stopped while it was written.
    #[error(
        "{}:{line}: the last line is cut off after {} bytes\nhint: it was never whole; drop it with `truncate -s {whole} {}`",
        path.display(), length - whole, path.display()
    )]
    Torn {
        /// The ledger.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Bytes of the whole lines before.
        whole: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// The last record is not the one expected: lines were taken from the end.
    #[error(
        "{}: the last record is {found}, not {expected}\nhint: records were removed from the end or the whole was rewritten; \
         restore the file from version control",
        path.display()
    )]
    OtherHead {
        /// The ledger.
        path: PathBuf,
        /// Hash that was expected.
        expected: String,
        /// Hash that was found.
        found: String,
    },
    /// A record cannot be written as JSON.
    #[error("a record cannot be written: {0}\nhint: this is a fault of the program")]
    Encode(#[from] serde_json::Error),
}
