//! One writer per file, across processes and threads.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::error::FetchError;
use super::progress::{Event, Progress};

/// An exclusive lock, released when dropped or when the process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock at `path` that guards `name`. The wait is reported once and can be
    /// cancelled.
    pub(crate) fn take_with(path: &Path, name: &str, progress: &dyn Progress) -> Result<Self, FetchError> {
        let mut told = false;
        Self::take(path, || {
            if !std::mem::replace(&mut told, true) {
                progress.event(Event::Waiting { name });
            }
            match progress.cancelled() {
                true => Err(FetchError::Cancelled { name: name.into() }),
                false => Ok(()),
            }
        })
    }

    /// The lock at `path`; `None` if another owner holds it.
    pub(crate) fn take_free(path: &Path) -> Result<Option<Self>, FetchError> {
        let mut held = false;
        let taken = Self::take(path, || {
            held = true;
            Err(FetchError::Cancelled { name: path.display().to_string() })
        });
        match taken {
            Err(FetchError::Cancelled { .. }) if held => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Waits for the lock at `path`. While another owner holds it, `waiting` is called ten times a
    /// second and can end the wait with an error. On a file system without locks (some network file
    /// systems) this returns without one: renames keep readers safe there, but work may be done
    /// twice.
    pub(crate) fn take(
        path: &Path,
        mut waiting: impl FnMut() -> Result<(), FetchError>,
    ) -> Result<Self, FetchError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FetchError::io("create", folder))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(FetchError::io("open the lock", path))?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    waiting()?;
                    thread::sleep(Duration::from_millis(100));
                }
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => break,
                Err(TryLockError::Error(e)) => return Err(FetchError::io("lock", path)(e)),
            }
        }
        Ok(Self { _file: file })
    }
}
