//! Lines of text files and of stdin.

use std::io::Read;
use std::path::Path;

use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// The lines of a file, or of stdin for `-`. Only line feeds end a line; carriage returns before them are taken off.
///
/// # Errors
/// The file cannot be read, or is not UTF-8: the message names the line.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if is_stdin {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|all| bytes = all)
    };
    read.map_err(|error| Failure::io("read", Path::new(&name), &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Failure::new(Exit::Data, format!("{name}:{line}: not UTF-8")).hint("convert the file to UTF-8")
    })?;
    Ok(split(&text).map(str::to_owned).collect())
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
    fn bad_bytes_are_named_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad");
        std::fs::write(&file, b"a\nb\xff\n").unwrap();
        let failure = read(&file).unwrap_err();
        assert!(failure.to_string().contains("bad:2: not UTF-8"), "{failure}");
        assert_eq!(read(&folder.path().join("none")).unwrap_err().exit, Exit::Data);
    }
}
