//! Files that grow by whole lines or records, and are never written twice with the same content.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use zoo_recipes::{atomic, untrusted};

use crate::error::{Failure, Result};

/// A file whose content is derived anew from its start. What the file has already is compared, and
/// only the rest is appended.
#[derive(Debug)]
pub struct Grown {
    path: PathBuf,
    /// Number of bytes at the start of the file that are known to be right; `None` before the first
    /// write.
    written: Option<u64>,
    /// Bytes that follow them.
    pending: Vec<u8>,
}

/// What [`Grown::write`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The file had all bytes.
    Unchanged,
    /// The rest was appended to the file, or the file is new.
    Appended,
    /// The file had other bytes, or more of them. It is unchanged.
    Differs,
}

impl Grown {
    /// A file of which nothing is derived yet. It does not have to exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path, written: None, pending: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing was written yet.
    pub fn is_first(&self) -> bool {
        self.written.is_none()
    }

    /// Adds bytes to the content.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Writes what the file lacks, with a single call, so that a reader finds whole records.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn write(&mut self) -> Result<Written> {
        let there = length(&self.path).map_err(|error| Failure::io("read", &self.path, &error))?;
        let known = match (self.written, there) {
            (None, 0) | (Some(0), 0) => 0,
            (Some(written), there) if written == there => 0,
            (Some(_), _) => return Ok(Written::Differs),
            (None, there) => {
                let is_start = self.starts_with_file(there);
                match is_start.map_err(|error| Failure::io("read", &self.path, &error))? {
                    true => usize::try_from(there).unwrap_or(usize::MAX),
                    false => return Ok(Written::Differs),
                }
            }
        };
        let rest = self.pending.get(known..).unwrap_or_default();
        if !rest.is_empty() || !self.path.exists() {
            append(&self.path, rest).map_err(|error| Failure::io("write", &self.path, &error))?;
        }
        let written = if rest.is_empty() { Written::Unchanged } else { Written::Appended };
        self.settle();
        Ok(written)
    }

    /// Replaces the file by the content, under the path of the file or another one. All of the
    /// content must be pending: nothing was written before.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn replace(&mut self, path: PathBuf) -> Result<()> {
        self.path = path;
        atomic::write_whole(&self.path, &self.pending)
            .map_err(|error| Failure::io("write", &self.path, &error))?;
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        self.written = Some(self.written.unwrap_or(0) + self.pending.len() as u64);
        self.pending.clear();
    }

    /// Whether the pending bytes start with those of the file.
    fn starts_with_file(&self, length: u64) -> io::Result<bool> {
        if length > self.pending.len() as u64 {
            return Ok(false);
        }
        let mut there = Vec::new();
        untrusted::open(&self.path)?.take(length).read_to_end(&mut there)?;
        Ok(self.pending.starts_with(&there))
    }
}

/// Length of a file; 0 if there is none.
fn length(path: &Path) -> io::Result<u64> {
    match untrusted::open(path) {
        Ok(file) => Ok(file.metadata()?.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().create(true).append(true).open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/file");
        let mut file = Grown::new(path.clone());
        file.push(b"ab");
        assert_eq!(file.write().unwrap(), Written::Appended);
        assert_eq!(file.write().unwrap(), Written::Unchanged);
        file.push(b"cd");
        assert_eq!(file.write().unwrap(), Written::Appended);
        let mut again = Grown::new(path.clone());
        again.push(b"abcd");
        assert_eq!(again.write().unwrap(), Written::Unchanged);
        again.push(b"e");
        assert_eq!(again.write().unwrap(), Written::Appended);
        assert_eq!(fs::read(&path).unwrap(), b"abcde");
        // The other writer notices it.
        assert_eq!(file.write().unwrap(), Written::Differs);
    }

    #[test]
    fn other_content_is_left_until_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for other in ["ax", "abc"] {
            fs::write(&path, other).unwrap();
            let mut file = Grown::new(path.clone());
            file.push(b"ab");
            assert_eq!(file.write().unwrap(), Written::Differs);
            assert_eq!(fs::read(&path).unwrap(), other.as_bytes());
            file.replace(path.clone()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"ab");
            file.push(b"c");
            assert_eq!(file.write().unwrap(), Written::Appended);
            assert_eq!(fs::read(&path).unwrap(), b"abc");
        }
    }
}
