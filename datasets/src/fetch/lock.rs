//! One writer a file, over processes and threads.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::error::FetchError;

/// An exclusive lock, released when dropped or when the process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock at `path`; `waiting` is called once if somebody else holds it. A file system without locks
    /// (some network ones) is used without: renames keep readers safe there, at the price of work done twice.
    pub(crate) fn take(path: &Path, waiting: impl FnOnce()) -> Result<Self, FetchError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FetchError::io("create", folder))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(FetchError::io("open the lock", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(FetchError::io("wait for the lock", path))?;
            }
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(FetchError::io("lock", path)(e)),
        }
        Ok(Self { _file: file })
    }
}
