//! Removal of entries. Everything is renamed into a temporary folder of the home first, and deleted
//! from there: after an interruption, each file or folder of an entry is complete or gone. A later call deletes what
//! is left in the folder.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::fetch::Lock;
use zoo_datasets::temporary::{REMOVING, TemporaryFolder};

use super::entries::{Entry, Subject};
use super::extent::is_folder;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::activity::LOCK;

/// What happened to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// It was left alone, for this reason.
    Kept(String),
}

/// Locks that are held while an entry is moved away.
enum Held {
    Free,
    Run { _lock: File },
    Downloads { _locks: Vec<Lock> },
}

/// Removes an entry, unless a process began to use it.
///
/// # Errors
/// A file cannot be moved away or deleted.
pub fn remove(context: &Context, entry: &Entry) -> Result<Removal> {
    if let Subject::Temporary(temporary) = &entry.subject {
        let removed = temporary.remove_dead();
        return match removed.map_err(|error| Failure::io("remove", &temporary.path, &error))? {
            true => Ok(Removal::Removed),
            // Another process removed it, or this one when it made a temporary folder beside it.
            false if temporary.paths().is_empty() => Ok(Removal::Removed),
            false => Ok(Removal::Kept("its process is alive".to_owned())),
        };
    }
    let held = match hold(context, &entry.subject)? {
        Ok(held) => held,
        Err(why) => return Ok(Removal::Kept(why)),
    };
    let trash = TemporaryFolder::new_in(&context.home, REMOVING)
        .map_err(|error| Failure::io("make a folder in", &context.home, &error))?;
    for (number, path) in entry.paths.iter().enumerate() {
        match fs::rename(path, trash.path().join(number.to_string())) {
            // Another process removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                // The entry stays complete: what was moved goes back.
                for (number, path) in entry.paths.iter().enumerate().take(number) {
                    let _ = fs::rename(trash.path().join(number.to_string()), path);
                }
                return Err(moved(path, &error));
            }
            Ok(()) => {}
        }
    }
    // The files have no name any more that another process would use.
    drop(held);
    for number in 0..entry.paths.len() {
        delete(&trash.path().join(number.to_string()))?;
    }
    entry.paths.iter().for_each(|path| remove_empty_folders(&context.home, path));
    Ok(Removal::Removed)
}

fn moved(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::io("move away", path, error);
    match error.kind() {
        ErrorKind::CrossesDevices => {
            failure.hint("it is on another file system than the home: remove it yourself")
        }
        _ => failure,
    }
}

fn delete(path: &Path) -> Result<()> {
    let deleted = if is_folder(path) { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match deleted {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::io("delete", path, &error)),
        _ => Ok(()),
    }
}

/// Removes the folders above a removed path that are empty now, up to the folder of its kind.
fn remove_empty_folders(home: &Path, path: &Path) {
    for folder in path.ancestors().skip(1) {
        let depth = folder.strip_prefix(home).map_or(0, |below| below.components().count());
        // A folder with files is not removed, and the folders above it have files.
        if depth < 2 || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Takes the locks of an entry; as an inner error, the reason why a process needs it.
fn hold(context: &Context, subject: &Subject) -> Result<std::result::Result<Held, String>> {
    let home = context.data_home();
    match subject {
        Subject::Run { folder, .. } => hold_run(folder),
        Subject::Download(place) => Ok(match home.hold_download(place)? {
            Some(lock) => Ok(Held::Downloads { _locks: vec![lock] }),
            None => Err("a process fetches it".to_owned()),
        }),
        Subject::Corpus(name) => {
            let mut locks = Vec::new();
            for archive in archives(&home.corpus_dir(name), name) {
                match home.hold_unpacked(name, &archive)? {
                    Some(lock) => locks.push(lock),
                    None => return Ok(Err(format!("a process unpacks {archive}"))),
                }
            }
            Ok(Ok(Held::Downloads { _locks: locks }))
        }
        Subject::Prepared { .. } | Subject::Temporary(_) | Subject::Plain => Ok(Ok(Held::Free)),
    }
}

fn hold_run(folder: &Path) -> Result<std::result::Result<Held, String>> {
    let path = folder.join(LOCK);
    let lock = match File::options().write(true).open(&path) {
        Ok(lock) => lock,
        // As in a copied folder.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(Held::Free)),
        Err(error) => return Err(Failure::io("open", &path, &error)),
    };
    match lock.try_lock() {
        Ok(()) => Ok(Ok(Held::Run { _lock: lock })),
        Err(TryLockError::WouldBlock) => Ok(Err("a process trains or evaluates it".to_owned())),
        Err(TryLockError::Error(error)) => Err(Failure::io("lock", &path, &error)),
    }
}

/// Names of the archives of a corpus: those of its definition, and those that are unpacked.
fn archives(folder: &Path, name: &str) -> Vec<String> {
    let files = CorpusDefinition::find(name).map(|definition| definition.files).unwrap_or_default();
    let defined = files.into_iter().filter(|(_, file)| file.unpack.is_some()).map(|(name, _)| name);
    let entries: Vec<PathBuf> =
        super::extent::paths_in(folder).into_iter().filter(|path| is_folder(path)).collect();
    let unpacked = entries.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = defined.chain(unpacked).collect();
    names.sort_unstable();
    names.dedup();
    names
}
