//! Temporary folders, and the removal of what killed processes left in a data home.
//!
//! A folder has a lock file beside it, as the temporary files of [`zoo_recipes::atomic`] have a
//! lock. A later process can therefore remove the remains of a dead process (a half unpacked corpus
//! may take tens of gigabytes) without touching those of a live one.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile, TempDir};
use zoo_recipes::atomic::{is_temporary, lock_dead, locked, rename};

/// Prefix of the name of a folder into which an archive is unpacked.
pub(crate) const UNPACKING: &str = ".unpacking-";
/// Prefix of the name of a folder in which text is prepared.
pub(crate) const PREPARING: &str = ".preparing-";
/// Prefix of the name of a folder in which a copy of a run is trained.
pub const SCRATCH: &str = ".scratch-";
/// Suffix of the name of the lock file beside a folder.
const LOCK: &str = ".lock";
/// A folder without a lock comes from an earlier version. It counts as dead if nothing in it
/// changed for this time.
const UNLOCKED: Duration = Duration::from_secs(24 * 3600);

/// A folder that is removed when dropped, or by a later process if this one is killed.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    /// Dropped after the folder, so the folder never exists without its lock.
    _lock: NamedTempFile,
}

impl TemporaryFolder {
    /// Makes a new folder in `parent`, after removing the remains of dead processes there. `prefix`
    /// is one of the prefixes of this module.
    ///
    /// # Errors
    /// The folder or its lock cannot be made.
    pub fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_dead(parent);
        let lock = locked(parent, |parent| Builder::new().prefix(prefix).suffix(LOCK).tempfile_in(parent))?;
        let name = lock.path().file_stem().unwrap_or(OsStr::new(prefix)).to_owned();
        let mut builder = Builder::new();
        builder.prefix(&name).rand_bytes(0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The umask decides, as for any folder; the library's default is access for the user
            // alone.
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        Ok(Self { folder: builder.tempdir_in(parent)?, _lock: lock })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its final name.
    pub(crate) fn rename(self, to: &Path) -> io::Result<()> {
        rename(self.path(), to)?;
        // The folder has its final name, so nothing is left to remove.
        let _ = self.folder.keep();
        Ok(())
    }
}

/// Removes what dead processes left in the folders of a data home. Called when a program starts.
/// Files that cannot be removed stay.
pub fn remove_leftovers(home: &Path) {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).collect()
    };
    // Only one level below these two folders: everything deeper is a member of an archive.
    for parent in [home.join("corpora"), home.join("prepared")] {
        remove_dead(&parent);
        folders(&parent).iter().for_each(|folder| remove_dead(folder));
    }
    remove_dead(home);
    let mut trees = vec![home.join("downloads"), home.join("runs")];
    while let Some(folder) = trees.pop() {
        remove_dead(&folder);
        trees.extend(folders(&folder));
    }
}

/// Removes what dead processes left in one folder of the data home.
pub(crate) fn remove_dead(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        let ours = [UNPACKING, PREPARING, SCRATCH].iter().any(|prefix| name.starts_with(prefix));
        if kind.is_file() && is_temporary(name) {
            let _ = lock_dead(&path).map(|_lock| fs::remove_file(&path));
        } else if kind.is_file() && ours && name.ends_with(LOCK) {
            let Some(_lock) = lock_dead(&path) else { continue };
            // The folder goes first: without its lock it would look like one of an earlier version.
            if remove_folder(&path.with_extension("")).is_ok() {
                let _ = fs::remove_file(&path);
            }
        } else if kind.is_dir() && ours && is_unlocked(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Whether a folder comes from an earlier version (which did not lock) and is old.
fn is_unlocked(folder: &Path) -> bool {
    let mut lock = folder.as_os_str().to_owned();
    lock.push(LOCK);
    let changed = fs::metadata(folder).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    !Path::new(&lock).exists() && age.is_some_and(|age| age > UNLOCKED)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use zoo_recipes::atomic::{file_in, write_whole};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_dropped_or_renamed_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let folder = TemporaryFolder::new_in(parent.path(), UNPACKING).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        assert_eq!(names(parent.path()).len(), 2);
        drop(folder);
        assert!(names(parent.path()).is_empty());
        let folder = TemporaryFolder::new_in(parent.path(), PREPARING).unwrap();
        folder.rename(&parent.path().join("final")).unwrap();
        write_whole(&parent.path().join("file"), b"text").unwrap();
        assert_eq!(names(parent.path()), ["file", "final"]);
    }

    #[test]
    fn only_what_nobody_holds_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let held = TemporaryFolder::new_in(parent.path(), UNPACKING).unwrap();
        let file = file_in(parent.path()).unwrap();
        for kept in ["notes.txt", ".tmp-of-others", ".unpacking-fresh"] {
            fs::create_dir(parent.path().join(kept)).unwrap();
        }
        let before = names(parent.path());
        // The state that a killed process leaves: files and folders whose locks are free.
        for file in [".tmpabc123", ".unpacking-abc123.lock", ".preparing-abc123.lock"] {
            fs::write(parent.path().join(file), "").unwrap();
        }
        fs::create_dir_all(parent.path().join(".unpacking-abc123/files")).unwrap();
        remove_dead(parent.path());
        assert_eq!(names(parent.path()), before);
        drop((held, file));
    }

    #[test]
    fn a_folder_of_an_earlier_version_is_removed_a_day_later() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join(".preparing-abc123");
        fs::create_dir(&folder).unwrap();
        remove_dead(parent.path());
        assert!(folder.exists());
        let old = SystemTime::now() - UNLOCKED - Duration::from_secs(60);
        File::open(&folder).unwrap().set_modified(old).unwrap();
        remove_dead(parent.path());
        assert!(!folder.exists());
    }
}
