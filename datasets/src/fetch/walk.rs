//! Visits the regular files of an archive and checks every entry.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use zip::ZipArchive;
use zip::result::ZipError;
use zoo_recipes::untrusted::{open, shown};

use super::archive::{Member, UnpackError, UnpackLimits, io_failure, refused};
use super::packing::{BLOCK, Bounded, Budget, Counted, Packing, check_type, decompressed};

/// Maximum number of bytes that describe one entry of a tar archive: its header, with the long
/// names and pax records before it.
const TAR_HEADER: u64 = 1 << 20;
/// Maximum number of bytes of a zip archive's directory, which is read into memory as a whole.
const ZIP_DIRECTORY: u64 = 64 << 20;
/// Maximum length of an entry's path in bytes: the limit of Linux.
const LONGEST_PATH: usize = 4096;
/// Maximum number of bytes of all paths together. They are kept in memory to detect duplicates.
const ALL_PATHS: u64 = 256 << 20;

/// Called with each path and its bytes. Returns the SHA-256 of the bytes if it kept them.
pub(super) type Visitor<'a> = dyn FnMut(&str, &mut dyn Read) -> io::Result<Option<String>> + 'a;

/// Visits all regular files of an archive. `visit` is called with each path and its bytes, and
/// returns the SHA-256 of the bytes if it kept them. Everything is read to the end, so that the
/// format's own checksums are verified.
pub(super) fn walk(
    archive: &Path,
    packing: Packing,
    limits: UnpackLimits,
    visit: &mut Visitor<'_>,
) -> Result<Vec<Member>, UnpackError> {
    check_type(archive, packing).map_err(|e| io_failure(archive, "", &e))?;
    let walk =
        Walk { archive, limits, members: Vec::new(), seen: BTreeSet::new(), path_bytes: 0, entries: 0 };
    match packing {
        Packing::Zip => walk.zip(visit),
        _ => walk.tar(packing, visit),
    }
}

/// Kind of an entry.
enum Kind {
    File,
    Folder,
    Link,
    Other,
}

struct Walk<'a> {
    archive: &'a Path,
    limits: UnpackLimits,
    members: Vec<Member>,
    seen: BTreeSet<String>,
    path_bytes: u64,
    entries: u64,
}

/// Limits how many bytes a library reads for headers, because it keeps all of them in memory.
struct Headers<R> {
    inner: R,
    what: &'static str,
    most: u64,
    /// Bytes that may still be read.
    left: Rc<Cell<u64>>,
}

impl<R> Headers<R> {
    /// A reader that gives at most `most` bytes. [`Cell::set`] on the returned cell allows more.
    fn new(inner: R, what: &'static str, most: u64) -> (Self, Rc<Cell<u64>>) {
        let left = Rc::new(Cell::new(most));
        (Self { inner, what, most, left: left.clone() }, left)
    }
}

impl<R: Read> Read for Headers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(format!("{} has more than {} bytes", self.what, self.most)));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - n as u64);
        Ok(n)
    }
}

impl<R: Seek> Seek for Headers<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl Walk<'_> {
    fn refused(&self, reason: impl Into<String>) -> UnpackError {
        refused(self.archive, reason.into())
    }

    fn broken(&self, e: &io::Error) -> UnpackError {
        self.io("", e)
    }

    fn io(&self, what: &str, e: &io::Error) -> UnpackError {
        io_failure(self.archive, what, e)
    }

    /// Counts one more entry. Fails if there are too many.
    fn count(&mut self) -> Result<(), UnpackError> {
        self.entries += 1;
        match self.entries > self.limits.entries {
            true => Err(self.refused(format!("it has more than {} entries", self.limits.entries))),
            false => Ok(()),
        }
    }

    /// Checks an entry and returns the path for a regular file; `None` for a folder.
    fn path(&mut self, raw: &[u8], kind: Kind) -> Result<Option<String>, UnpackError> {
        let entry = || format!("entry \"{}\"", shown(&String::from_utf8_lossy(raw)));
        if raw.len() > LONGEST_PATH {
            let reason = format!("{} has a name of more than {LONGEST_PATH} bytes", entry());
            return Err(self.refused(reason));
        }
        let path = safe_path(raw).map_err(|why| self.refused(format!("{} {why}", entry())))?;
        match kind {
            Kind::Folder => return Ok(None),
            Kind::Link => return Err(self.refused(format!("{} is a link", entry()))),
            Kind::Other => return Err(self.refused(format!("{} is not a plain file", entry()))),
            Kind::File => {}
        }
        if path.is_empty() {
            return Err(self.refused(format!("{} has no name", entry())));
        }
        self.path_bytes += path.len() as u64;
        if self.path_bytes > ALL_PATHS {
            return Err(self.refused(format!("the names of its entries have more than {ALL_PATHS} bytes")));
        }
        if !self.seen.insert(path.clone()) {
            return Err(self.refused(format!("{} appears twice", entry())));
        }
        Ok(Some(path))
    }

    /// Passes one file to `visit`, and checks that all of its `due` bytes were present.
    fn visit(
        &mut self,
        path: String,
        due: u64,
        entry: &mut dyn Read,
        visit: &mut Visitor<'_>,
    ) -> Result<(), UnpackError> {
        let bytes: Rc<Cell<u64>> = Rc::default();
        let mut counted = Counted { inner: entry, bytes: bytes.clone() };
        let kept =
            visit(&path, &mut counted).map_err(|e| self.io(&format!("entry \"{}\": ", shown(&path)), &e))?;
        let got = bytes.get();
        if got != due {
            return Err(self.refused(format!("entry \"{}\" ends after {got} of {due} bytes", shown(&path))));
        }
        self.members.extend(kept.map(|sha256| Member { path, bytes: due, sha256 }));
        Ok(())
    }

    fn tar(mut self, packing: Packing, visit: &mut Visitor<'_>) -> Result<Vec<Member>, UnpackError> {
        let stream = decompressed(self.archive, packing.into(), self.limits).map_err(|e| self.broken(&e))?;
        let (stream, left) = Headers::new(stream, "the header of an entry", TAR_HEADER);
        let mut tar = tar::Archive::new(stream);
        let mut entries = tar.entries().map_err(|e| self.broken(&e))?;
        loop {
            // Allows the headers of the next entry only: the previous entry has been read to its
            // end.
            left.set(TAR_HEADER);
            let Some(entry) = entries.next() else { break };
            let mut entry = entry.map_err(|e| self.broken(&e))?;
            left.set(u64::MAX);
            self.count()?;
            let kind = match entry.header().entry_type() {
                kind if kind.is_pax_global_extensions() => {
                    left.set(TAR_HEADER);
                    None
                }
                kind if kind.is_dir() => Some(Kind::Folder),
                kind if kind.is_symlink() || kind.is_hard_link() => Some(Kind::Link),
                tar::EntryType::Regular | tar::EntryType::Continuous => Some(Kind::File),
                _ => Some(Kind::Other),
            };
            if let Some(kind) = kind {
                let raw = entry.path_bytes().into_owned();
                if let Some(path) = self.path(&raw, kind)? {
                    let due = entry.size();
                    self.visit(path, due, &mut entry, visit)?;
                }
            }
            io::copy(&mut entry, &mut io::sink()).map_err(|e| self.broken(&e))?;
        }
        left.set(u64::MAX);
        io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(|e| self.broken(&e))?;
        if self.entries == 0 {
            return Err(self.refused("it is empty, or no tar archive"));
        }
        Ok(self.members)
    }

    fn zip(mut self, visit: &mut Visitor<'_>) -> Result<Vec<Member>, UnpackError> {
        let damaged = |e: ZipError| match e {
            ZipError::Io(e) => io_failure(self.archive, "", &e),
            other => refused(self.archive, format!("it is damaged ({other})")),
        };
        let archive = self.archive;
        let file = open(archive).map_err(|e| self.broken(&e))?;
        let length = file.metadata().map_err(|e| self.broken(&e))?.len();
        let (file, left) = Headers::new(file, "its directory", ZIP_DIRECTORY);
        let mut zip = ZipArchive::new(BufReader::with_capacity(BLOCK, file)).map_err(damaged)?;
        left.set(u64::MAX);
        if zip.has_duplicate_names() {
            return Err(self.refused("an entry appears twice"));
        }
        // The two directories of the archive must agree, and entries must not share bytes, as they
        // do in some zip bombs.
        zip.validate_header_consistency().map_err(damaged)?;
        let budget = Budget::new(self.limits, length);
        for index in 0..zip.len() {
            self.count()?;
            let damaged = |e: ZipError| refused(archive, format!("entry {index} is damaged ({e})"));
            let entry = zip.by_index(index).map_err(damaged)?;
            let raw = entry.name_raw().to_vec();
            // The upper bits of a Unix mode. An archive made on another system has none.
            let kind = match entry.unix_mode().unwrap_or(0) & 0o170_000 {
                0o120_000 => Kind::Link,
                _ if entry.is_dir() => Kind::Folder,
                0 | 0o100_000 => Kind::File,
                _ => Kind::Other,
            };
            if let Some(path) = self.path(&raw, kind)? {
                let due = entry.size();
                self.visit(path, due, &mut Bounded::new(entry, budget.clone()), visit)?;
            }
        }
        if self.entries == 0 {
            return Err(self.refused("it is empty"));
        }
        Ok(self.members)
    }
}

/// The path of an entry as plain names separated by `/`; empty for the archive's root.
pub(super) fn safe_path(raw: &[u8]) -> Result<String, &'static str> {
    let text = std::str::from_utf8(raw).map_err(|_| "has a name that is not UTF-8")?;
    if text.contains('\0') || text.contains('\\') {
        return Err("has a NUL or a backslash in its name");
    }
    if text.starts_with('/') {
        return Err("has an absolute path");
    }
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("leaves its folder (`..`)"),
            // Windows has drives such as `C:`, and named streams.
            part if part.contains(':') && cfg!(windows) => return Err("has a colon in its name"),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Checks that `member` can be the path of a regular file in the form of [`Member::path`].
pub(crate) fn check_member(member: &str) -> Result<(), &'static str> {
    match safe_path(member.as_bytes())? {
        path if path == member && !path.is_empty() => Ok(()),
        _ => Err("is not written as plain names with `/` between them"),
    }
}
