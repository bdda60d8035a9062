//! Files that are written whole or not at all, by every crate.
//!
//! A file is written under a temporary name beside its place, synced, and renamed. A reader sees
//! the former file or the new one. An error leaves neither half a file nor a temporary one.
//!
//! The process that makes a temporary file holds a lock on it. The system releases the lock when
//! the process dies, for any reason, so that a later process can remove the remains of a killed one
//! without touching those of a live one. Process ids would not be enough: they are reused, and
//! machines that share a disk have different ones.
//!
//! Errors are those of the file system. The caller names the file, and
//! [`hint`](crate::untrusted::hint) has the advice.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Prefix of the names of temporary files; six letters or digits follow.
const PREFIX: &str = ".tmp";

/// Makes a new temporary file in `folder`, locked while it is open. It is removed when dropped. If
/// this process is killed, a later one can remove it ([`lock_dead`]).
///
/// # Errors
/// The file cannot be made.
pub fn file_in(folder: &Path) -> io::Result<NamedTempFile> {
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
///
/// # Errors
/// The file cannot be synced or renamed. It is then removed, and `to` is unchanged.
pub fn persist(temporary: NamedTempFile, to: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist(to).map_err(|e| e.error)?;
    sync_parent(to);
    Ok(())
}

/// Like [`persist`], but fails if a file of that name exists.
///
/// # Errors
/// As [`persist`], and [`io::ErrorKind::AlreadyExists`].
pub fn persist_new(temporary: NamedTempFile, to: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(to).map_err(|e| e.error)?;
    sync_parent(to);
    Ok(())
}

/// Renames a file or folder whose bytes are already synced, and syncs the new name.
///
/// # Errors
/// It cannot be renamed.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_parent(to);
    Ok(())
}

/// Makes a new name in a folder durable. Not every system can sync a folder; the rename is atomic
/// anyway.
pub fn sync_parent(path: &Path) {
    let parent =
        path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    if let Some(Ok(folder)) = parent.map(File::open) {
        let _ = folder.sync_all();
    }
}

/// Makes files until this process gets the lock of one. Between creation and locking, a file looks
/// like one of a dead process, so another process may hold it or may have removed it.
///
/// # Errors
/// `make` fails.
pub fn locked(folder: &Path, make: impl Fn(&Path) -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
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

/// Locks a file whose owner is dead. `None` if the owner is alive.
pub fn lock_dead(file: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(file).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// Whether a file's name is one that [`file_in`] gives.
pub fn is_temporary(name: &str) -> bool {
    let letters = name.strip_prefix(PREFIX);
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
    fn a_new_file_replaces_the_former_one_unless_it_must_be_new() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_whole(&file, b"former").unwrap();
        write_whole(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let refused = persist_new(file_in(folder.path()).unwrap(), &file).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_temporary_file_is_dead_only_when_no_one_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = file_in(folder.path()).unwrap();
        let name = file.path().file_name().unwrap().to_str().unwrap();
        assert!(is_temporary(name), "{name}");
        assert!(!is_temporary(".tmp-of-others"));
        assert!(lock_dead(file.path()).is_none());
        // The state that a killed process leaves: a file whose lock is free.
        let left = folder.path().join(".tmpabc123");
        fs::write(&left, "").unwrap();
        assert!(lock_dead(&left).is_some());
    }
}
