//! Reading lines of text files and of stdin.

use std::io::{BufRead, Error, ErrorKind, Read, Result as IoResult};
use std::path::Path;

use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// Maximum bytes read from stdin, which may be endless.
const MOST_STDIN: u64 = 256 << 20;

/// Maximum bytes of a line that is translated on arrival.
const MOST_LINE: u64 = 1 << 20;

/// The lines of a file, or of stdin for `-`. Only line feeds end a line. A carriage return before a
/// line feed is removed.
///
/// # Errors
/// The file cannot be read, or is not UTF-8. The message contains the line number.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let read = if is_stdin { stdin() } else { untrusted::read(path) };
    let bytes = read.map_err(|error| Failure::io("read", Path::new(&name), &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Failure::new(Exit::Data, format!("{name}:{line}: not UTF-8")).hint("convert the file to UTF-8")
    })?;
    Ok(split(&text).map(str::to_owned).collect())
}

/// All bytes of stdin.
///
/// # Errors
/// Stdin cannot be read, or has more than 256 MiB.
pub fn stdin() -> IoResult<Vec<u8>> {
    read_bounded(std::io::stdin().lock(), MOST_STDIN)
}

/// The lines of an input as they arrive, split like [`BufRead::lines`]. The input may be endless. A
/// line of more than 1 MiB is an error and the last item.
pub fn arriving(input: impl BufRead) -> impl Iterator<Item = IoResult<String>> {
    lines_up_to(input, MOST_LINE)
}

fn lines_up_to(mut input: impl BufRead, most: u64) -> impl Iterator<Item = IoResult<String>> {
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let mut line = String::new();
        // Two more bytes for the line end.
        let read = input.by_ref().take(most + 2).read_line(&mut line);
        let without_end = line.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let kept = without_end.unwrap_or(&line).len();
        ended = read.is_err() || kept as u64 > most;
        match read {
            Ok(0) => None,
            Ok(_) if ended => {
                Some(Err(Error::new(ErrorKind::InvalidInput, format!("a line has more than {most} bytes"))))
            }
            Ok(_) => {
                line.truncate(kept);
                Some(Ok(line))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

fn read_bounded(from: impl Read, most: u64) -> IoResult<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(Error::new(ErrorKind::InvalidInput, format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Splits text into lines as [`read`] does.
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
    fn a_line_without_an_end_is_an_error_and_the_last_item() {
        let all =
            |input: &[u8]| -> Vec<Option<String>> { lines_up_to(input, 3).map(|line| line.ok()).collect() };
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(all(b"abc\nabc\r\n\nab"), [line("abc"), line("abc"), line(""), line("ab")]);
        assert_eq!(all(b"ab\nabcd\nef\n"), [line("ab"), None]);
        let endless = std::io::BufReader::new(std::io::repeat(b'a'));
        let errors: Vec<_> = lines_up_to(endless, 3).map(|line| line.unwrap_err().to_string()).collect();
        assert_eq!(errors, ["a line has more than 3 bytes"]);
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
