//! Output files of a prepared folder, digested while they are written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use md5::Md5;
use sha2::{Digest, Sha256};

/// Digests of a written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileDigest {
    pub sha256: String,
    pub md5: String,
}

/// A new file that is being written.
pub(super) struct OutputFile {
    file: BufWriter<File>,
    sha256: Sha256,
    md5: Md5,
}

impl OutputFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        Ok(Self { file, sha256: Sha256::new(), md5: Md5::new() })
    }

    /// Writes a line and its line feed.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        self.write_all(line.as_bytes())?;
        self.write_all(b"\n")
    }

    /// Flushes the file to disk and returns its digests.
    pub(super) fn finish(mut self) -> io::Result<FileDigest> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(FileDigest { sha256: hex::encode(self.sha256.finalize()), md5: hex::encode(self.md5.finalize()) })
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.sha256.update(&bytes[..n]);
        self.md5.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
