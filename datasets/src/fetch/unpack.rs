//! gz and tar.gz, unpacked as if they came from an enemy: they come from the network.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::digest::hex;
use super::progress::{Event, Progress};

/// What an archive may grow to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes in all, unpacked.
    pub bytes: u64,
    /// Unpacked bytes for each packed one, once more than 16 MiB came out. Text packs 3 to 10 times.
    pub ratio: u64,
    /// Number of entries.
    pub entries: u64,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self { bytes: 256 << 30, ratio: 100, entries: 10_000_000 }
    }
}

/// Small archives may pack as well as they like.
const RATIO_FROM: u64 = 16 << 20;
const BLOCK: usize = 1 << 16;
/// Members of at least this size are on disk before their folder gets its name.
const SYNC_FROM: u64 = 1 << 20;

/// Why an archive was not unpacked. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}\nhint: {hint}", .archive.display())]
pub struct UnpackError {
    /// The archive.
    pub archive: PathBuf,
    reason: String,
    hint: &'static str,
}

impl UnpackError {
    /// What happened, without the archive's name.
    pub fn reason(&self) -> String {
        self.reason.clone()
    }

    pub(super) fn unreadable(archive: &Path, error: &io::Error) -> Self {
        refused(archive, broken(error))
    }
}

/// One regular file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Path inside the archive, `/` between the parts, no leading `./`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The regular files that were written, in the archive's order.
    pub members: Vec<Member>,
    /// Bytes written.
    pub bytes: u64,
}

/// Unpacks `archive` into the new folder `into`. `only`, where given, names the members that are written; the others
/// are read and judged all the same.
///
/// The folder appears under its name when everything is in it. Refused: absolute paths, `..`, links, devices, sparse
/// files, paths that appear twice, names that are not UTF-8, streams that end early, growth beyond `limits`.
///
/// # Errors
/// See [`UnpackError`]; also when `into` exists, or a member of `only` is not in the archive.
pub fn unpack_tar_gz(
    archive: &Path,
    into: &Path,
    only: Option<&BTreeSet<String>>,
    limits: UnpackLimits,
    progress: &dyn Progress,
) -> Result<Unpacked, UnpackError> {
    let error = |reason: String| refused(archive, reason);
    if into.exists() {
        return Err(error(format!("{} exists already", into.display())));
    }
    let parent = into.parent().ok_or_else(|| error(format!("{} has no parent folder", into.display())))?;
    let io_error = |doing: &'static str, path: &Path, e: io::Error| {
        refused(archive, format!("cannot {doing} {}: {e}", path.display()))
    };
    fs::create_dir_all(parent).map_err(|e| io_error("create", parent, e))?;
    // Removed when dropped, whatever goes wrong.
    let temporary = tempfile::Builder::new()
        .prefix(".unpacking-")
        .tempdir_in(parent)
        .map_err(|e| io_error("create a folder in", parent, e))?;
    let root = temporary.path().join("files");
    fs::create_dir(&root).map_err(|e| io_error("create", &root, e))?;
    let name = archive.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut written = 0;
    let mut visit = |path: &str, entry: &mut dyn Read| -> io::Result<Option<String>> {
        if only.is_some_and(|only| !only.contains(path)) {
            io::copy(entry, &mut io::sink())?;
            return Ok(None);
        }
        let target = root.join(path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::create_new(&target)?;
        let mut sha256 = Sha256::new();
        let mut block = vec![0; BLOCK];
        let mut bytes = 0;
        loop {
            let n = entry.read(&mut block)?;
            if n == 0 {
                break;
            }
            file.write_all(&block[..n])?;
            sha256.update(&block[..n]);
            bytes += n as u64;
            written += n as u64;
            progress.event(Event::Unpacking { name: &name, done: written });
            if progress.cancelled() {
                return Err(io::Error::other("it was interrupted"));
            }
        }
        // Many small files would take minutes; a lost one is noticed, its length is recorded.
        if bytes > SYNC_FROM {
            file.sync_all()?;
        }
        Ok(Some(hex(&sha256.finalize())))
    };
    let members = walk(archive, limits, &mut visit)?;
    if let Some(only) = only {
        let found: BTreeSet<&str> = members.iter().map(|m| m.path.as_str()).collect();
        if let Some(absent) = only.iter().find(|o| !found.contains(o.as_str())) {
            return Err(error(format!("{absent:?} is not in it")));
        }
    }
    fs::rename(&root, into).map_err(|e| io_error("rename to", into, e))?;
    super::record::sync_folder(parent);
    Ok(Unpacked { members, bytes: written })
}

/// Unpacks one gz file to `to`, which appears when it is whole. Several gzip members after one another are one file.
///
/// # Errors
/// See [`UnpackError`]; also when `to` exists.
pub fn gunzip(
    archive: &Path,
    to: &Path,
    limits: UnpackLimits,
    progress: &dyn Progress,
) -> Result<Member, UnpackError> {
    let error = |reason: String| refused(archive, reason);
    if to.exists() {
        return Err(error(format!("{} exists already", to.display())));
    }
    let parent = to.parent().ok_or_else(|| error(format!("{} has no parent folder", to.display())))?;
    let path = to.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let run = || -> io::Result<Member> {
        fs::create_dir_all(parent)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        let mut input = Bounded::open(archive, limits)?;
        let mut sha256 = Sha256::new();
        let mut block = vec![0; BLOCK];
        let mut bytes = 0;
        loop {
            let n = input.read(&mut block)?;
            if n == 0 {
                break;
            }
            file.write_all(&block[..n])?;
            sha256.update(&block[..n]);
            bytes += n as u64;
            progress.event(Event::Unpacking { name: &path, done: bytes });
            if progress.cancelled() {
                return Err(io::Error::other("it was interrupted"));
            }
        }
        file.as_file().sync_all()?;
        file.persist_noclobber(to).map_err(|e| e.error)?;
        Ok(Member { path: path.clone(), bytes, sha256: hex(&sha256.finalize()) })
    };
    run().map_err(|e| refused(archive, broken(&e)))
}

/// Gets each path and its bytes; returns the SHA-256 of what it kept, if it kept it.
pub(super) type Visitor<'a> = dyn FnMut(&str, &mut dyn Read) -> io::Result<Option<String>> + 'a;

/// Goes through all regular files of a tar.gz. `visit` gets each path and its bytes, and returns the SHA-256 of what
/// it kept, if it kept it. The stream is read to its very end, so that its own checksum is verified.
pub(super) fn walk(
    archive: &Path,
    limits: UnpackLimits,
    visit: &mut Visitor<'_>,
) -> Result<Vec<Member>, UnpackError> {
    let stream_error = |e: &io::Error| refused(archive, broken(e));
    let mut tar = tar::Archive::new(Bounded::open(archive, limits).map_err(|e| stream_error(&e))?);
    let mut members = Vec::new();
    let mut seen = BTreeSet::new();
    let mut entries = 0;
    for entry in tar.entries().map_err(|e| stream_error(&e))? {
        let mut entry = entry.map_err(|e| stream_error(&e))?;
        entries += 1;
        if entries > limits.entries {
            return Err(refused(archive, format!("it has more than {} entries", limits.entries)));
        }
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let raw = entry.path_bytes().into_owned();
        let shown = String::from_utf8_lossy(&raw).into_owned();
        let path = safe_path(&raw).map_err(|why| refused(archive, format!("entry {shown:?} {why}")))?;
        if kind.is_dir() {
            continue;
        }
        if !matches!(kind, tar::EntryType::Regular | tar::EntryType::Continuous) {
            let kind = if kind.is_symlink() || kind.is_hard_link() { "a link" } else { "not a plain file" };
            return Err(refused(archive, format!("entry {shown:?} is {kind}")));
        }
        if path.is_empty() {
            return Err(refused(archive, format!("entry {shown:?} has no name")));
        }
        if !seen.insert(path.clone()) {
            return Err(refused(archive, format!("entry {shown:?} appears twice")));
        }
        let due = entry.size();
        let mut counted = Counted { inner: &mut entry, bytes: 0 };
        let sha256 = visit(&path, &mut counted)
            .map_err(|e| refused(archive, format!("entry {shown:?}: {}", broken(&e))))?;
        if counted.bytes != due {
            let got = counted.bytes;
            return Err(refused(archive, format!("entry {shown:?} ends after {got} of {due} bytes")));
        }
        if let Some(sha256) = sha256 {
            members.push(Member { path, bytes: due, sha256 });
        }
    }
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(|e| stream_error(&e))?;
    if entries == 0 {
        return Err(refused(archive, "it is empty, or no tar archive".into()));
    }
    Ok(members)
}

/// The path of an entry as `/`-separated plain names; empty for the archive's own root.
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
            // `C:` of Windows, and its streams.
            part if part.contains(':') && cfg!(windows) => return Err("has a colon in its name"),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Can `member` be the path of a regular file, as [`Member::path`] writes it?
pub(crate) fn check_member(member: &str) -> Result<(), &'static str> {
    match safe_path(member.as_bytes())? {
        path if path == member && !path.is_empty() => Ok(()),
        _ => Err("is not written as plain names with `/` between them"),
    }
}

fn refused(archive: &Path, reason: String) -> UnpackError {
    let hint = if reason.contains("more than") {
        "if the archive is to be trusted, unpack it by hand"
    } else {
        "nothing of it was kept; fetch the archive again, or report it to its publisher"
    };
    UnpackError { archive: archive.into(), reason, hint }
}

/// What a reading error means.
fn broken(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => format!("it ends early ({e})"),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => format!("it is damaged ({e})"),
        _ => e.to_string(),
    }
}

/// Counts what is read through it.
struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes += n as u64;
        Ok(n)
    }
}

/// A gunzipped stream that refuses to grow beyond its limits.
pub(super) struct Bounded {
    inner: MultiGzDecoder<Counted<io::BufReader<File>>>,
    limits: UnpackLimits,
    out: u64,
}

impl Bounded {
    pub(super) fn open(archive: &Path, limits: UnpackLimits) -> io::Result<Self> {
        let file = Counted { inner: io::BufReader::with_capacity(BLOCK, File::open(archive)?), bytes: 0 };
        Ok(Self { inner: MultiGzDecoder::new(file), limits, out: 0 })
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.out += n as u64;
        if self.out > self.limits.bytes {
            return Err(io::Error::other(format!("it unpacks to more than {} bytes", self.limits.bytes)));
        }
        let packed = self.inner.get_ref().bytes;
        if self.out > RATIO_FROM && self.out / self.limits.ratio > packed {
            return Err(io::Error::other(format!(
                "it unpacks to more than {} times its size",
                self.limits.ratio
            )));
        }
        Ok(n)
    }
}
