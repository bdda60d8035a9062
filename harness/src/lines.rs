//! Lines of text files and of stdin.

use std::io::{ErrorKind, Read};
use std::path::Path;

use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// Most bytes of stdin, which may have no end.
const MOST_STDIN: u64 = 256 << 20;

/// The lines of a file, or of stdin for `-`. Only line feeds end a line; carriage returns before them are taken off.
///
/// # Errors
/// The file cannot be read, or is not UTF-8: the message names the line.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let read =
        if is_stdin { read_bounded(std::io::stdin().lock(), MOST_STDIN) } else { untrusted::read(path) };
    let bytes = read.map_err(|error| Failure::io("read", Path::new(&name), &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Failure::new(Exit::Data, format!("{name}:{line}: not UTF-8")).hint("convert the file to UTF-8")
    })?;
    Ok(split(&text).map(str::to_owned).collect())
}

fn read_bounded(from: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(std::io::Error::new(ErrorKind::InvalidInput, format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// See [`read`].
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_line_feeds_only() {
        let lines: Vec<&str> = split("a\r\n\nb\u{2028}c\nlast").collect();
        assert_eq!(lines, ["a", "", "b\u{2028}c", "last"]);
        assert_eq!(split("").count(), 0);
    }

    #[test]
    fn a_stdin_without_an_end_is_refused() {
        assert_eq!(read_bounded(&b"abc"[..], 3).unwrap(), b"abc");
        let error = read_bounded(std::io::repeat(0), 3).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 3 bytes");
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_folders_are_refused() {
        for (path, what) in [("/dev/zero", "a device"), ("/", "a folder")] {
            let failure = read(Path::new(path)).unwrap_err().to_string();
            assert!(failure.contains(&format!("it is {what}, not a regular file\nhint: ")), "{failure}");
        }
    }

    #[test]
    fn bad_bytes_are_named_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad");
        std::fs::write(&file, b"a\nb\xff\n").unwrap();
        let failure = read(&file).unwrap_err();
        assert!(failure.to_string().contains("bad:2: not UTF-8"), "{failure}");
        assert_eq!(read(&folder.path().join("none")).unwrap_err().exit, Exit::Data);
    }
}
