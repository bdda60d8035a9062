//! Temporary files and folders with locks that show whether their owner is alive.
//!
//! The process that makes one holds a lock on it. The system releases the lock when the process
//! dies, for any reason. A later process can therefore remove the remains of a dead process (a half
//! unpacked corpus may take tens of gigabytes) without touching those of a live one. Process ids
//! would not be enough: they are reused, and machines that share a disk have different ones.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile, TempDir};

/// Prefix of the name of a folder into which an archive is unpacked.
pub(crate) const UNPACKING: &str = ".unpacking-";
/// Prefix of the name of a folder in which text is prepared.
pub(crate) const PREPARING: &str = ".preparing-";
/// Suffix of the name of the lock file beside a folder.
const LOCK: &str = ".lock";
/// Prefix of the names of temporary files; six letters or digits follow.
const FILE: &str = ".tmp";
/// A folder without a lock comes from an earlier version. It counts as dead if nothing in it
/// changed for this time.
const UNLOCKED: Duration = Duration::from_secs(24 * 3600);

/// A folder that is removed when dropped, or by a later process if this one is killed.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// Dropped after the folder, so the folder never exists without its lock.
    _lock: NamedTempFile,
}

impl TemporaryFolder {
    /// Makes a new folder in `parent`, after removing the remains of dead processes there. `prefix`
    /// is [`UNPACKING`] or [`PREPARING`].
    pub(crate) fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
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
    pub(crate) fn path(&self) -> &Path {
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

/// Makes a new temporary file in `folder`, locked while it is open. It is removed when dropped, or
/// by a later process if this one is killed.
pub(crate) fn file_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask decides, as for any file. The library's default of 0600 would make reports,
        // bundles and caches readable by their owner only.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    locked(folder, |folder| builder.tempfile_in(folder))
}

/// Writes a file atomically. The folders are created, the bytes are written to a temporary file
/// beside it and synced, then the file is renamed and the new name is synced. An existing file of
/// that name is replaced.
///
/// # Errors
/// The folder, the temporary file or the name cannot be written. `file` is then unchanged.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut temporary = file_in(folder)?;
    temporary.write_all(bytes)?;
    persist(temporary, file)
}

/// Syncs a temporary file and gives it its final name. An existing file of that name is replaced.
pub(crate) fn persist(temporary: NamedTempFile, to: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist(to).map_err(|e| e.error)?;
    sync_parent(to);
    Ok(())
}

/// Like [`persist`], but fails if a file of that name exists.
pub(crate) fn persist_new(temporary: NamedTempFile, to: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(to).map_err(|e| e.error)?;
    sync_parent(to);
    Ok(())
}

/// Renames a file or folder whose bytes are already synced, and syncs the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_parent(to);
    Ok(())
}

/// Makes a new name in a folder durable. Systems that cannot open a folder do not need this.
fn sync_parent(path: &Path) {
    let parent =
        path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    if let Some(Ok(folder)) = parent.map(File::open) {
        let _ = folder.sync_all();
    }
}

/// Makes files until this process gets the lock of one. Between creation and locking, a file looks
/// like one of a dead process, so another process may hold it or may have removed it.
fn locked(folder: &Path, make: impl Fn(&Path) -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    loop {
        let file = make(folder)?;
        match file.as_file().try_lock() {
            Ok(()) if file.path().exists() => return Ok(file),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // A file system without locks (some network file systems): nothing there counts as
            // dead.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
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
        let ours = [UNPACKING, PREPARING].iter().any(|prefix| name.starts_with(prefix));
        if kind.is_file() && is_temporary_file(name) {
            let _ = dead(&path).map(|_lock| fs::remove_file(&path));
        } else if kind.is_file() && ours && name.ends_with(LOCK) {
            let Some(_lock) = dead(&path) else { continue };
            // The folder goes first: without its lock it would look like one of an earlier version.
            if remove_folder(&path.with_extension("")).is_ok() {
                let _ = fs::remove_file(&path);
            }
        } else if kind.is_dir() && ours && is_unlocked(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Locks a file whose owner is dead. `None` if the owner is alive.
fn dead(file: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(file).ok()?;
    file.try_lock().ok()?;
    Some(file)
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

fn is_temporary_file(name: &str) -> bool {
    let letters = name.strip_prefix(FILE);
    letters.is_some_and(|letters| letters.len() == 6 && letters.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The umask belongs to the process, so the test does not change it. A file made with `std::fs`
    /// shows the permissions that it leaves.
    #[cfg(unix)]
    #[test]
    fn a_written_file_has_the_permissions_that_the_umask_leaves() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode();
        let (usual, ours) = (folder.path().join("usual"), folder.path().join("new/ours"));
        fs::write(&usual, "").unwrap();
        write_whole(&ours, b"text").unwrap();
        assert_eq!(format!("{:o}", mode(&ours)), format!("{:o}", mode(&usual)));
        assert_eq!(fs::read(&ours).unwrap(), b"text");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("taken/inside")).unwrap();
        assert!(write_whole(&folder.path().join("taken"), b"text").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
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
