//! Files that get their name when they are complete.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Permissions of a new file before the umask is applied, as `open` uses them. `tempfile`'s own 0600 would
/// keep reports, bundles and caches from everyone but their owner.
#[cfg(unix)]
const MODE: u32 = 0o666;

/// The folder of a file; of a bare file name, the current folder.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file under a temporary name in `folder`, removed when dropped; [`NamedTempFile::persist`] gives it its name.
/// Its permissions follow the umask.
///
/// # Errors
/// The file cannot be created.
pub fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(MODE));
    }
    builder.tempfile_in(folder)
}

/// Writes a file: its folders are created, the bytes go to a temporary file beside it and reach the disk, then
/// the file is renamed. A file of that name is replaced.
///
/// # Errors
/// The folder, the temporary file or the name cannot be written; `file` is then as it was.
pub fn write_atomically(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(file);
    fs::create_dir_all(folder)?;
    let mut temporary = temporary_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The umask belongs to the process, so it is not changed here: a file of `std::fs` shows what it leaves.
    #[cfg(unix)]
    #[test]
    fn a_written_file_has_the_permissions_that_the_umask_leaves() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode();
        let (usual, ours) = (folder.path().join("usual"), folder.path().join("new/ours"));
        fs::write(&usual, "").unwrap();
        write_atomically(&ours, b"text").unwrap();
        assert_eq!(format!("{:o}", mode(&ours)), format!("{:o}", mode(&usual)));
        assert_eq!(fs::read(&ours).unwrap(), b"text");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one_and_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(write_atomically(&taken, b"text").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(taken.join("inside").is_dir());
    }
}
