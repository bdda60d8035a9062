//! Temporary files and folders that say whether their owner lives: each is locked by the process that made it, and the
//! system releases a lock when its process dies, however that happens. So a later process can remove what a dead one left,
//! tens of gigabytes of a half unpacked corpus, and never what a living one uses. Process numbers would not tell: they are
//! used again, and differ between machines that share a disk.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile, TempDir};

/// Begins the name of a folder into which an archive is unpacked.
pub(crate) const UNPACKING: &str = ".unpacking-";
/// Begins the name of a folder in which text is prepared.
pub(crate) const PREPARING: &str = ".preparing-";
/// Ends the name of the lock beside a folder.
const LOCK: &str = ".lock";
/// Begins the names of temporary files; six letters or digits follow.
const FILE: &str = ".tmp";
/// A folder without a lock is one of an earlier version; it is taken for dead when nothing in it changed for so long.
const UNLOCKED: Duration = Duration::from_secs(24 * 3600);

/// A folder that is removed when dropped, or by a later process if this one is killed.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// Dropped after the folder: a folder never lacks its lock.
    _lock: NamedTempFile,
}

impl TemporaryFolder {
    /// A new folder in `parent`, after what dead processes left there is removed. `prefix` is [`UNPACKING`] or
    /// [`PREPARING`].
    pub(crate) fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_dead(parent);
        let lock = locked(parent, |parent| Builder::new().prefix(prefix).suffix(LOCK).tempfile_in(parent))?;
        let name = lock.path().file_stem().unwrap_or(OsStr::new(prefix)).to_owned();
        let mut builder = Builder::new();
        builder.prefix(&name).rand_bytes(0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any folder, what the user's mask leaves: the default is for the user alone.
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        Ok(Self { folder: builder.tempdir_in(parent)?, _lock: lock })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its final name.
    pub(crate) fn rename(self, to: &Path) -> io::Result<()> {
        rename(self.path(), to)?;
        // It has its name now: nothing is left to remove.
        let _ = self.folder.keep();
        Ok(())
    }
}

/// A new temporary file in `folder`, locked as long as it is open. It is removed when dropped, or by a later process if
/// this one is killed.
pub(crate) fn file_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the umask leaves, as of any file: the default of 0600 would keep reports, bundles and caches from
        // everybody but their owner.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    locked(folder, |folder| builder.tempfile_in(folder))
}

/// Writes a file: its folders are created, the bytes go to a temporary file beside it and reach the disk, then the file
/// is renamed, which reaches the disk too. A file of that name is replaced.
///
/// # Errors
/// The folder, the temporary file or the name cannot be written; `file` is then as it was.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut temporary = file_in(folder)?;
    temporary.write_all(bytes)?;
    persist(temporary, file)
}

/// Gives a temporary file its final name once its bytes are on the disk. A file of that name is replaced.
pub(crate) fn persist(temporary: NamedTempFile, to: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist(to).map_err(|e| e.error)?;
    sync_parent(to);
    Ok(())
}

/// [`persist`], but an error if there is a file of that name.
pub(crate) fn persist_new(temporary: NamedTempFile, to: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(to).map_err(|e| e.error)?;
    sync_parent(to);
    Ok(())
}

/// Renames a file or folder whose bytes are on the disk; the new name reaches the disk.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_parent(to);
    Ok(())
}

/// Makes a new name in a folder durable. Not every system can open a folder; those that cannot need no such thing.
fn sync_parent(path: &Path) {
    let parent =
        path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    if let Some(Ok(folder)) = parent.map(File::open) {
        let _ = folder.sync_all();
    }
}

/// Makes files until one is locked by us. Between its making and its locking a file looks like one of a dead process, so
/// another process may have it in hand or have removed it.
fn locked(folder: &Path, make: impl Fn(&Path) -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    loop {
        let file = make(folder)?;
        match file.as_file().try_lock() {
            Ok(()) if file.path().exists() => return Ok(file),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // A file system without locks, as some network ones: there nothing is ever taken for dead.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
}

/// Removes from the folders of a data home what dead processes left; called when a program starts. What cannot be removed
/// stays.
pub fn remove_leftovers(home: &Path) {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).collect()
    };
    // One level below these two; deeper there are only the members of archives.
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

/// Removes what dead processes left in one folder of ours.
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
            // The folder first: one without its lock would look like one of an earlier version.
            if remove_folder(&path.with_extension("")).is_ok() {
                let _ = fs::remove_file(&path);
            }
        } else if kind.is_dir() && ours && is_unlocked(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The lock of a file whose owner is dead.
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

/// Whether a folder is one of an earlier version, which locked nothing, and old.
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

    /// The umask belongs to the process, so it is not changed here: a file of `std::fs` shows what it leaves.
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
        // As a killed process leaves them: files and folders whose locks nobody holds.
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
