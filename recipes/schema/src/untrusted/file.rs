//! Reads regular files only. Reading a device such as `/dev/zero` never ends, and opening a FIFO
//! waits for a writer.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Error: the path is not that of a regular file.
#[derive(Debug, thiserror::Error)]
#[error("it is {found}, not a regular file")]
struct NotRegular {
    found: &'static str,
}

/// Opens a regular file, or a link to one, for reading.
///
/// # Errors
/// The file cannot be opened, or is a folder, a FIFO, a socket or a device. [`hint`] gives advice
/// for these errors.
pub fn open(path: &Path) -> io::Result<File> {
    // Check before opening, because opening a FIFO waits.
    check_regular(&fs::metadata(path)?)?;
    File::open(path)
}

/// Reads a whole regular file.
///
/// # Errors
/// As [`open`]; also if reading fails.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole regular file of UTF-8 text.
///
/// # Errors
/// As [`read`]; also if the file is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Checks that the metadata are those of a regular file.
///
/// # Errors
/// The file is of another kind, which the error names.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = if metadata.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    Err(io::Error::new(kind, NotRegular { found: kind_of(metadata.file_type()) }))
}

#[cfg(unix)]
fn kind_of(file: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if file.is_dir() => "a folder",
        () if file.is_fifo() => "a FIFO",
        () if file.is_socket() => "a socket",
        () if file.is_char_device() || file.is_block_device() => "a device",
        () => "something else",
    }
}

#[cfg(not(unix))]
fn kind_of(file: FileType) -> &'static str {
    if file.is_dir() { "a folder" } else { "something else" }
}

/// Advice for a file system error, if there is any.
pub fn hint(error: &io::Error) -> Option<&'static str> {
    if error.get_ref().is_some_and(|inner| inner.is::<NotRegular>()) {
        return Some("name a regular file; save the output of a command to one first");
    }
    match error.kind() {
        ErrorKind::NotFound => {
            Some("look at the path's spelling; a relative one begins at the current folder")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("grant this user access to it, or name another place (for what zoo keeps: --home)")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("free some space on that disk, or keep zoo's files on another one with --home or ZOO_HOME")
        }
        _ => None,
    }
}

/// [`hint`], or `otherwise` if there is none.
pub fn hint_or<'a>(error: &io::Error, otherwise: &'a str) -> &'a str {
    hint(error).unwrap_or(otherwise)
}

/// [`hint`] as an additional line of a message; empty if there is none.
pub fn hint_line(error: &io::Error) -> String {
    hint(error).map_or_else(String::new, |hint| format!("\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "text").unwrap();
        assert_eq!(read(&file).unwrap(), b"text");
        assert_eq!(read_to_string(&file).unwrap(), "text");
        let missing = read(&folder.path().join("b")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(hint(&missing).unwrap().contains("spelling"));
    }

    #[test]
    fn a_folder_is_refused_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder, not a regular file");
        assert!(hint_line(&error).starts_with("\nhint: name a regular file"), "{}", hint_line(&error));
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_sockets_are_refused_and_a_link_to_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is a device, not a regular file");
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(open(&socket).unwrap_err().to_string(), "it is a socket, not a regular file");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap(), b"text");
    }

    #[test]
    fn a_full_disk_is_about_space() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let hint = hint(&io::Error::from(kind)).unwrap();
            assert!(hint.contains("space") && hint.contains("ZOO_HOME"), "{hint}");
        }
        assert_eq!(hint(&io::Error::other("it broke")), None);
    }
}
