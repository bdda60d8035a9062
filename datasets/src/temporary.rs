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

use crate::fetch::DataHome;

/// Prefix of the name of a folder into which an archive is unpacked.
pub(crate) const UNPACKING: &str = ".unpacking-";
/// Prefix of the name of a folder in which text is prepared.
pub(crate) const PREPARING: &str = ".preparing-";
/// Prefix of the name of a folder in which a copy of a run is trained.
pub const SCRATCH: &str = ".scratch-";
/// Prefix of the name of a folder into which files are moved that are about to be deleted.
pub const REMOVING: &str = ".removing-";
/// Prefixes of the names of temporary folders.
const FOLDERS: [&str; 4] = [UNPACKING, PREPARING, SCRATCH, REMOVING];
/// Prefix of the name of a folder into which an archive of a corpus is unpacked under the lock of
/// that archive.
pub(crate) const HALF_UNPACKED: &str = ".new-";
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

/// A file or folder with a temporary name. Its process may be alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Temporary {
    /// Path of the file or folder. Only the lock of a folder may be left.
    pub path: PathBuf,
    owner: Owner,
}

/// How to find out whether the process that made a temporary file or folder is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// It holds a lock on the file itself.
    Itself,
    /// It holds a lock on this file beside the folder.
    Beside(PathBuf),
    /// It holds the lock of the archive that is unpacked. The lock file is shared and stays.
    Archive(PathBuf),
    /// A program of an earlier version, which did not lock.
    Unlocked,
}

impl Temporary {
    /// Whether the process that made it is dead, so that no one needs it.
    pub fn is_dead(&self) -> bool {
        match &self.owner {
            Owner::Itself => lock_dead(&self.path).is_some(),
            Owner::Beside(lock) => lock_dead(lock).is_some(),
            Owner::Archive(lock) => !lock.exists() || lock_dead(lock).is_some(),
            Owner::Unlocked => is_unlocked(&self.path),
        }
    }

    /// The files and folders that [`Self::remove_dead`] removes.
    pub fn paths(&self) -> Vec<&Path> {
        let beside = match &self.owner {
            Owner::Beside(lock) => Some(lock.as_path()),
            _ => None,
        };
        let exists = |path: &&Path| fs::symlink_metadata(path).is_ok();
        [self.path.as_path()].into_iter().chain(beside).filter(exists).collect()
    }

    /// Removes it if its process is dead. Returns whether it was removed.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_dead(&self) -> io::Result<bool> {
        let _lock = match &self.owner {
            Owner::Itself => match lock_dead(&self.path) {
                Some(_lock) => return fs::remove_file(&self.path).map(|()| true),
                None => return Ok(false),
            },
            Owner::Beside(lock) => match lock_dead(lock) {
                Some(lock) => Some(lock),
                None => return Ok(false),
            },
            Owner::Archive(lock) if lock.exists() => match lock_dead(lock) {
                Some(lock) => Some(lock),
                None => return Ok(false),
            },
            Owner::Unlocked if !is_unlocked(&self.path) => return Ok(false),
            Owner::Archive(_) | Owner::Unlocked => None,
        };
        // The folder goes first: without its lock it would look like one of an earlier version.
        remove_folder(&self.path)?;
        if let Owner::Beside(lock) = &self.owner {
            fs::remove_file(lock)?;
        }
        Ok(true)
    }
}

/// Removes what dead processes left in the folders of a data home. Called when a program starts.
/// Files that cannot be removed stay.
pub fn remove_leftovers(home: &Path) {
    // Only one level below these two folders: everything deeper is a member of an archive.
    for parent in [home.join("corpora"), home.join("prepared")] {
        remove_dead(&parent);
        folders_in(&parent).iter().for_each(|folder| remove_dead(folder));
    }
    remove_dead(home);
    [home.join("downloads"), home.join("runs")].iter().for_each(|tree| {
        folders_below(tree).iter().for_each(|folder| remove_dead(folder));
    });
}

/// Everything in a data home that has a temporary name, and that a live or dead process made.
/// Symbolic links are not followed.
pub fn temporaries(home: &Path) -> Vec<Temporary> {
    let mut found = in_folder(home);
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let corpora = Some(home.join("corpora")).filter(is_folder);
    found.extend(corpora.iter().flat_map(|corpora| in_folder(corpora)));
    // Deeper than one level, everything is a member of an archive.
    for corpus in corpora.iter().flat_map(|corpora| folders_in(corpora)) {
        found.extend(in_folder(&corpus));
        found.extend(folders_in(&corpus).into_iter().filter_map(|path| half_unpacked(home, path)));
    }
    let trees = ["downloads", "prepared", "runs", "hypotheses"].map(|name| home.join(name));
    for tree in trees.iter().filter(|tree| is_folder(tree)) {
        found.extend(folders_below(tree).iter().flat_map(|folder| in_folder(folder)));
    }
    found
}

/// A folder into which an archive of a corpus is unpacked before it replaces the former one.
fn half_unpacked(home: &Path, path: PathBuf) -> Option<Temporary> {
    let archive = path.file_name()?.to_str()?.strip_prefix(HALF_UNPACKED)?;
    let corpus = path.parent()?.file_name()?.to_str()?;
    let owner = Owner::Archive(DataHome::new(home).unpacking_lock(corpus, archive));
    Some(Temporary { path, owner })
}

/// Folders in a folder, without symbolic links.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// A folder and all below it, except those with temporary names.
fn folders_below(tree: &Path) -> Vec<PathBuf> {
    let (mut found, mut trees) = (Vec::new(), vec![tree.to_owned()]);
    while let Some(folder) = trees.pop() {
        trees.extend(folders_in(&folder).into_iter().filter(|path| !has_prefix(path)));
        found.push(folder);
    }
    found
}

/// Whether a path has the name of a temporary folder.
fn has_prefix(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    FOLDERS.iter().any(|prefix| name.starts_with(prefix))
}

/// Removes what dead processes left in one folder of the data home.
pub(crate) fn remove_dead(folder: &Path) {
    in_folder(folder).iter().for_each(|found| {
        let _ = found.remove_dead();
    });
}

/// The temporary files and folders in one folder.
fn in_folder(folder: &Path) -> Vec<Temporary> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        let ours = has_prefix(&path);
        if kind.is_file() && is_temporary(name) {
            found.push(Temporary { path, owner: Owner::Itself });
        } else if kind.is_file() && ours && name.ends_with(LOCK) {
            found.push(Temporary { path: path.with_extension(""), owner: Owner::Beside(path) });
        } else if kind.is_dir() && ours && !lock_beside(&path).exists() {
            found.push(Temporary { path, owner: Owner::Unlocked });
        }
    }
    found
}

/// Path of the lock file of a folder.
fn lock_beside(folder: &Path) -> PathBuf {
    let mut lock = folder.as_os_str().to_owned();
    lock.push(LOCK);
    PathBuf::from(lock)
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Whether a folder comes from an earlier version (which did not lock) and is old.
fn is_unlocked(folder: &Path) -> bool {
    let changed = fs::metadata(folder).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    !lock_beside(folder).exists() && age.is_some_and(|age| age > UNLOCKED)
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
    fn temporary_names_are_found_wherever_a_process_writes() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        let _held = TemporaryFolder::new_in(home.path(), REMOVING).unwrap();
        for file in ["runs/a/b/.tmpabc123", "hypotheses/a/.tmpabc124", "prepared/a/frames/00/.tmpabc125"] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        // The first level below a corpus is ours, deeper levels are members of archives.
        fs::create_dir_all(at("corpora/a/.new-a.tgz/b")).unwrap();
        fs::write(at("corpora/a/.new-a.tgz/b/.tmpabc126"), "").unwrap();
        let found = temporaries(home.path());
        let dead: Vec<&Temporary> = found.iter().filter(|found| found.is_dead()).collect();
        assert_eq!((found.len(), dead.len()), (5, 4), "{found:?}");
        // While a process unpacks the archive, the folder is its own.
        let home_of = DataHome::new(home.path());
        let lock = home_of.hold_unpacked("a", "a.tgz").unwrap().unwrap();
        let unpacking = dead.iter().find(|found| found.path.ends_with(".new-a.tgz")).unwrap();
        assert!(!unpacking.is_dead() && !unpacking.remove_dead().unwrap());
        assert!(home_of.hold_unpacked("a", "a.tgz").unwrap().is_none());
        drop(lock);
        assert!(dead.iter().all(|found| found.remove_dead().unwrap()));
        assert_eq!(temporaries(home.path()).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_not_followed() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join(".tmpabc123"), "").unwrap();
        std::os::unix::fs::symlink(other.path(), home.path().join("runs")).unwrap();
        fs::create_dir(home.path().join("downloads")).unwrap();
        std::os::unix::fs::symlink(other.path(), home.path().join("downloads/host")).unwrap();
        assert_eq!(temporaries(home.path()), []);
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
