//! Unpacks archives. They come from the network, so all of their contents are treated as hostile.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use zoo_recipes::atomic::{file_in, persist_new, rename};
use zoo_recipes::untrusted::shown;

use super::archive::{Member, UnpackError, UnpackLimits, io_failure, refused};
use super::packing::{BLOCK, Compression, Packing, decompressed};
use super::progress::{Event, Progress};
use super::walk::walk;
use super::wanted::Wanted;
use crate::temporary::{TemporaryFolder, UNPACKING};

/// Members of at least this size are synced to disk before their folder gets its name.
const SYNC_FROM: u64 = 1 << 20;

/// Result of unpacking an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The regular files that were written, in the archive's order.
    pub members: Vec<Member>,
    /// Bytes written.
    pub bytes: u64,
}

/// Unpacks `archive` into the new folder `into`. `only`, if given, selects the members that are
/// written; the others are still read and checked.
///
/// The folder gets its name when it is complete. Refused: absolute paths, `..`, links, devices,
/// sparse files, paths that appear twice, names that are not UTF-8, streams that end early, growth
/// beyond `limits`.
///
/// # Errors
/// See [`UnpackError`]. Also fails if `into` exists, or if a member that `only` names is not in the
/// archive.
pub fn unpack(
    archive: &Path,
    packing: Packing,
    into: &Path,
    only: Option<&Wanted>,
    limits: UnpackLimits,
    progress: &dyn Progress,
) -> Result<Unpacked, UnpackError> {
    let error = |reason: String| refused(archive, reason);
    if into.exists() {
        return Err(error(format!("{} exists already", into.display())));
    }
    let parent = into.parent().ok_or_else(|| error(format!("{} has no parent folder", into.display())))?;
    let io_error = |doing: &'static str, path: &Path, e: io::Error| {
        io_failure(archive, &format!("cannot {doing} {}: ", path.display()), &e)
    };
    fs::create_dir_all(parent).map_err(|e| io_error("create", parent, e))?;
    // Removed when dropped, after any error.
    let temporary =
        TemporaryFolder::new_in(parent, UNPACKING).map_err(|e| io_error("create a folder in", parent, e))?;
    let root = temporary.path().join("files");
    fs::create_dir(&root).map_err(|e| io_error("create", &root, e))?;
    let name = archive.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut written = 0;
    let mut visit = |path: &str, entry: &mut dyn Read| -> io::Result<Option<String>> {
        if only.is_some_and(|only| !only.takes(path)) {
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
        // Syncing many small files would take minutes. A lost one is detected because its length is
        // recorded.
        if bytes > SYNC_FROM {
            file.sync_all()?;
        }
        Ok(Some(hex::encode(sha256.finalize())))
    };
    let members = walk(archive, packing, limits, &mut visit)?;
    if let Some(only) = only {
        let found: BTreeSet<&str> = members.iter().map(|m| m.path.as_str()).collect();
        if let Some(absent) = only.named.iter().find(|o| !found.contains(o.as_str())) {
            return Err(error(format!("\"{}\" is not in it", shown(absent))));
        }
    }
    rename(&root, into).map_err(|e| io_error("rename to", into, e))?;
    Ok(Unpacked { members, bytes: written })
}

/// Unpacks one gz file to `to`, which appears when it is complete. Concatenated gzip members form
/// one file.
///
/// # Errors
/// See [`UnpackError`]. Also fails if `to` exists.
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
        let mut file = file_in(parent)?;
        let mut input = decompressed(archive, Compression::Gzip, limits)?;
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
        persist_new(file, to)?;
        Ok(Member { path: path.clone(), bytes, sha256: hex::encode(sha256.finalize()) })
    };
    run().map_err(|e| io_failure(archive, "", &e))
}
