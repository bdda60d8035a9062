//! The lines of a file from its end, without reading the rest of the file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use zoo_recipes::untrusted;

/// Bytes of the first block. Each further block of one line is twice as long.
const BLOCK: u64 = 8 << 10;

/// The complete lines of a file, newest first, without their line feeds. A last line without a line
/// feed is left out: its writer was killed, or is about to complete it.
#[derive(Debug)]
pub struct FromEnd {
    file: File,
    /// Place in the file of the first byte of `read`.
    at: u64,
    /// Number of bytes that may still be read.
    left: u64,
    /// Bytes that were read and not returned. They end with a line feed once `begun` is set.
    read: Vec<u8>,
    begun: bool,
}

impl FromEnd {
    /// The lines of a file, of which at most `most` bytes are read. A line that begins before these
    /// bytes is not returned.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a regular file.
    pub fn open(path: &Path, most: u64) -> io::Result<Self> {
        let file = untrusted::open(path)?;
        let at = file.metadata()?.len();
        Ok(Self { file, at, left: most, read: Vec::new(), begun: false })
    }

    /// Reads the block before those that were read. Returns false at the start of the file or at
    /// the limit.
    fn read_block(&mut self) -> io::Result<bool> {
        let length = BLOCK.max(self.read.len() as u64).min(self.at).min(self.left);
        if length == 0 {
            return Ok(false);
        }
        let mut block = vec![0; length as usize];
        self.file.seek(SeekFrom::Start(self.at - length))?;
        self.file.read_exact(&mut block)?;
        block.append(&mut self.read);
        (self.at, self.left, self.read) = (self.at - length, self.left - length, block);
        Ok(true)
    }

    /// Drops what follows the last line feed. Returns false if there is no line feed.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.begun {
            match self.read.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => {
                    self.read.truncate(end + 1);
                    self.begun = true;
                }
                None if self.read_block()? => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !self.begin()? {
            return Ok(None);
        }
        loop {
            let Some(end) = self.read.len().checked_sub(1) else {
                match self.read_block()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let start = match self.read[..end].iter().rposition(|byte| *byte == b'\n') {
                Some(before) => before + 1,
                None if self.read_block()? => continue,
                None if self.at == 0 => 0,
                None => return Ok(None),
            };
            let line = self.read[start..end].to_vec();
            self.read.truncate(start);
            return Ok(Some(line));
        }
    }
}

impl Iterator for FromEnd {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_end(text: &str, most: u64) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        std::fs::write(&file, text).unwrap();
        let lines = FromEnd::open(&file, most).unwrap();
        lines.map(|line| String::from_utf8(line.unwrap()).unwrap()).collect()
    }

    #[test]
    fn the_newest_line_comes_first_and_an_incomplete_one_not_at_all() {
        assert_eq!(from_end("a\n\nbc\n", 100), ["bc", "", "a"]);
        assert_eq!(from_end("a\nbc\n{\"torn", 100), ["bc", "a"]);
        assert_eq!(from_end("torn", 100), Vec::<String>::new());
        assert_eq!(from_end("", 100), Vec::<String>::new());
        assert_eq!(from_end("\n", 100), [""]);
    }

    #[test]
    fn lines_across_blocks_are_whole() {
        let lines: Vec<String> = (0..3000).map(|n| format!("{n} {}", "x".repeat(n % 97))).collect();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert!(text.len() as u64 > 10 * BLOCK);
        let mut found = from_end(&text, u64::MAX);
        found.reverse();
        assert_eq!(found, lines);
        let long = "y".repeat(5 * BLOCK as usize);
        assert_eq!(from_end(&format!("a\n{long}\nb\n"), u64::MAX), ["b", &long, "a"]);
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n".repeat(100_000) + "new\n").unwrap();
        let mut lines = FromEnd::open(&path, u64::MAX).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), b"new");
        assert_eq!(400_004 - lines.at, BLOCK);
        // A line that begins before the limit is not returned.
        let long = "z".repeat(100);
        assert_eq!(from_end(&format!("{long}\nb\n"), 50), ["b"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_refused() {
        assert!(FromEnd::open(Path::new("/dev/zero"), 10).is_err());
    }
}
