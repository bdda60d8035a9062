//! Archive formats, and their unpacked bytes as one stream with a limited size.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted::open;

use super::archive::UnpackLimits;

/// Archive formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Packing {
    /// Uncompressed tar.
    #[serde(rename = "tar")]
    Tar,
    /// tar in gzip.
    #[serde(rename = "tar.gz")]
    TarGz,
    /// tar in bzip2.
    #[serde(rename = "tar.bz2")]
    TarBz2,
    /// tar in xz.
    #[serde(rename = "tar.xz")]
    TarXz,
    /// zip with stored or deflated entries, not encrypted.
    #[serde(rename = "zip")]
    Zip,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tar => "tar",
            Self::TarGz => "tar.gz",
            Self::TarBz2 => "tar.bz2",
            Self::TarXz => "tar.xz",
            Self::Zip => "zip",
        })
    }
}

/// The ratio limit applies beyond this many unpacked bytes. Small archives may have any ratio.
const RATIO_FROM: u64 = 16 << 20;
pub(super) const BLOCK: usize = 1 << 16;
/// Memory limit of an xz stream in KiB: twice the dictionary of `xz -9`.
const XZ_MEMORY: u32 = 128 << 10;

/// Number of first bytes that identify a file: the header of a tar archive's first entry.
pub(super) const HEAD: u64 = 512;

/// Compression of a file, identified by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// An uncompressed tar archive.
    None,
    Gzip,
    Bzip2,
    Xz,
    /// A zip archive, full or empty.
    Zip,
}

impl Compression {
    pub(super) fn of_head(head: &[u8]) -> Option<Self> {
        let starts = |magic: &[u8]| head.starts_with(magic);
        match () {
            () if starts(&[0x1f, 0x8b]) => Some(Self::Gzip),
            () if starts(b"BZh") => Some(Self::Bzip2),
            () if starts(b"\xfd7zXZ\0") => Some(Self::Xz),
            () if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") => Some(Self::Zip),
            () if begins_tar(head) => Some(Self::None),
            () => None,
        }
    }

    pub(super) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::of_head(&head_of(path)?))
    }
}

/// Whether a file begins with the header of a POSIX or GNU tar archive.
pub(super) fn begins_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar".as_slice())
}

fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD as usize);
    open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

impl From<Packing> for Compression {
    fn from(packing: Packing) -> Self {
        match packing {
            Packing::Tar => Self::None,
            Packing::TarGz => Self::Gzip,
            Packing::TarBz2 => Self::Bzip2,
            Packing::TarXz => Self::Xz,
            Packing::Zip => Self::Zip,
        }
    }
}

/// Returns an error unless `archive` begins as `packing` requires.
pub(super) fn check_type(archive: &Path, packing: Packing) -> io::Result<()> {
    let head = head_of(archive)?;
    if Compression::of_head(&head) == Some(packing.into()) {
        // An uncompressed archive has no other sign that it is complete.
        return if packing == Packing::Tar { check_end(archive) } else { Ok(()) };
    }
    let begins = match head.len() {
        0 => "is empty".to_owned(),
        n => format!("begins with {}", hex::encode(&head[..n.min(8)])),
    };
    Err(io::Error::other(format!("it is no {packing}: it {begins}")))
}

/// Checks that a tar archive ends with two blocks of zeros.
fn check_end(archive: &Path) -> io::Result<()> {
    let mut file = open(archive)?;
    let mut end = Vec::with_capacity(1024);
    let length = file.metadata()?.len();
    if length >= 1024 && length.is_multiple_of(512) {
        file.seek(SeekFrom::End(-1024))?;
        file.read_to_end(&mut end)?;
    }
    if end.len() == 1024 && end.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(io::Error::other("it is cut short: it does not end as a tar archive does"))
}

/// Counts unpacked bytes over all entries and compares them with the limits.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    limits: UnpackLimits,
    unpacked: Rc<Cell<u64>>,
    /// Number of packed bytes read so far.
    packed: Rc<Cell<u64>>,
}

impl Budget {
    /// `packed` is the number of packed bytes read so far. A stream that is read through
    /// [`Counted`] adds to it.
    pub(super) fn new(limits: UnpackLimits, packed: u64) -> Self {
        Self { limits, unpacked: Rc::default(), packed: Rc::new(Cell::new(packed)) }
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        let unpacked = self.unpacked.get() + bytes as u64;
        self.unpacked.set(unpacked);
        if unpacked > self.limits.bytes {
            return Err(io::Error::other(format!("it unpacks to more than {} bytes", self.limits.bytes)));
        }
        if unpacked > RATIO_FROM && unpacked / self.limits.ratio.max(1) > self.packed.get() {
            return Err(io::Error::other(format!(
                "it unpacks to more than {} times its size",
                self.limits.ratio
            )));
        }
        Ok(())
    }
}

/// A reader that counts its bytes.
pub(super) struct Counted<R> {
    pub inner: R,
    pub bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.set(self.bytes.get() + amount as u64);
        self.inner.consume(amount);
    }
}

/// An unpacked stream that fails when it exceeds its limits.
pub(super) struct Bounded<R> {
    inner: R,
    budget: Budget,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(inner: R, budget: Budget) -> Self {
        Self { inner, budget }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.budget.spend(n)?;
        Ok(n)
    }
}

/// The decompressed bytes of a gzip, bzip2 or xz file, or the bytes of an uncompressed file.
/// Concatenated streams are read as one.
pub(super) fn decompressed(
    archive: &Path,
    compression: Compression,
    limits: UnpackLimits,
) -> io::Result<Bounded<Box<dyn Read>>> {
    let budget = Budget::new(limits, 0);
    let file = BufReader::with_capacity(BLOCK, open(archive)?);
    let file = Counted { inner: file, bytes: budget.packed.clone() };
    let inner: Box<dyn Read> = match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(MultiGzDecoder::new(file)),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(file)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY)),
        Compression::Zip => return Err(io::Error::other("a zip archive is no stream")),
    };
    Ok(Bounded::new(inner, budget))
}
