//! Whether a process works on a run at the moment.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

/// File in a run's folder that is locked while a process trains or evaluates the run.
pub const LOCK: &str = "lock";

/// Whether a process works on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A process trains the run, or decodes with it after the training.
    Working,
    /// No process does.
    Idle,
    /// The lock cannot be read, or the file system has no locks.
    Unknown,
}

impl Activity {
    /// Reads the lock of a run's folder. It takes a shared lock for an instant, which
    /// [`Run::lock`](super::folder::Run::lock) waits for.
    pub fn of(folder: &Path) -> Self {
        let file = match File::open(folder.join(LOCK)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::Idle,
            Err(_) => return Self::Unknown,
        };
        match file.try_lock_shared() {
            Ok(()) => Self::Idle,
            Err(TryLockError::WouldBlock) => Self::Working,
            Err(TryLockError::Error(_)) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_worked_on_while_its_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Activity::of(folder.path()), Activity::Idle, "no lock, as in a copied folder");
        let lock = File::create(folder.path().join(LOCK)).unwrap();
        assert_eq!(Activity::of(folder.path()), Activity::Idle);
        lock.try_lock().unwrap();
        assert_eq!(Activity::of(folder.path()), Activity::Working);
        drop(lock);
        assert_eq!(Activity::of(folder.path()), Activity::Idle);
    }
}
