//! Reading a log that another process may be writing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted;

/// Maximum bytes of a line; longer lines are left out.
const MOST_LINE: u64 = 1 << 20;

/// A log and the place up to which it was read.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    /// Place in the file after the last complete line.
    at: u64,
    /// End of that line, to notice that the file was written anew.
    last: Vec<u8>,
}

/// Result of [`LogReader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The lines follow those that were read before.
    Continued,
    /// The file was written anew, and the lines are all lines of it. A run that resumes removes the
    /// lines that follow its checkpoint.
    Rewritten,
}

impl LogReader {
    /// A log that was not read yet. The file does not have to exist.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), at: 0, last: Vec::new() }
    }

    /// The complete lines since the last call, without their line feeds. A file that does not exist
    /// has no lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<Growth> {
        let mut file = match untrusted::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Growth::Continued),
            Err(error) => return Err(error),
        };
        let growth = match self.continues(&mut file)? {
            true => Growth::Continued,
            false => {
                (self.at, self.last) = (0, Vec::new());
                Growth::Rewritten
            }
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut file = BufReader::new(file);
        let (mut line, mut passed, mut too_long) = (Vec::new(), 0, false);
        while file.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)? > 0 {
            passed += line.len() as u64;
            if line.ends_with(b"\n") {
                if !too_long {
                    each(&line[..line.len() - 1]);
                }
                (self.at, self.last) = (self.at + passed, std::mem::take(&mut line));
                (passed, too_long) = (0, false);
            } else if line.len() as u64 == MOST_LINE {
                too_long = true;
                line.clear();
            } else {
                // The end of the file, in the middle of a line.
                break;
            }
        }
        Ok(growth)
    }

    /// Whether the line that was read last still is where it was.
    fn continues(&self, file: &mut File) -> io::Result<bool> {
        let length = self.last.len() as u64;
        if file.metadata()?.len() < self.at {
            return Ok(false);
        }
        let mut there = Vec::new();
        file.seek(SeekFrom::Start(self.at - length))?;
        file.take(length).read_to_end(&mut there)?;
        Ok(there == self.last)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(log: &mut LogReader) -> (Growth, Vec<String>) {
        let mut found = Vec::new();
        let growth = log.read(|line| found.push(String::from_utf8_lossy(line).into_owned())).unwrap();
        (growth, found)
    }

    fn owned(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn each_line_is_read_once_and_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = LogReader::new(&path);
        assert_eq!(lines(&mut log), (Growth::Continued, Vec::new()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"a\nb\nc").unwrap();
        assert_eq!(lines(&mut log), (Growth::Continued, owned(&["a", "b"])));
        assert_eq!(lines(&mut log), (Growth::Continued, Vec::new()));
        file.write_all(b"d\n\ne").unwrap();
        assert_eq!(lines(&mut log), (Growth::Continued, owned(&["cd", ""])));
    }

    #[test]
    fn a_log_that_was_written_anew_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = LogReader::new(&path);
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        lines(&mut log);
        // Resumed from a state before `c`, and longer than before.
        std::fs::write(&path, "a\nb\nsession\nd\n").unwrap();
        assert_eq!(lines(&mut log), (Growth::Rewritten, owned(&["a", "b", "session", "d"])));
        std::fs::write(&path, "a\n").unwrap();
        assert_eq!(lines(&mut log), (Growth::Rewritten, owned(&["a"])));
        // Resumed from the last line: nothing was removed.
        std::fs::write(&path, "a\nsession\n").unwrap();
        assert_eq!(lines(&mut log), (Growth::Continued, owned(&["session"])));
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let long = "x".repeat(5 * (MOST_LINE as usize) / 2);
        std::fs::write(&path, format!("a\n{long}\nb\n")).unwrap();
        let mut log = LogReader::new(&path);
        assert_eq!(lines(&mut log).1, owned(&["a", "b"]));
        std::fs::write(&path, format!("a\n{long}\nb\nc\n")).unwrap();
        assert_eq!(lines(&mut log), (Growth::Continued, owned(&["c"])));
    }
}
