//! The unpacked members of an archive in the home, and the record that they are checked against.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_recipes::atomic::rename;

use crate::fetch::{
    DataHome, Event, FetchError, Fetched, FolderMembers, Lock, Member, Mismatch, Packing, Progress, Stamp,
    UnpackLimits, Wanted, beside, read_json, sha256_file, unpack, write_json,
};
use crate::temporary::HALF_UNPACKED;

/// Members below this size are digested at every use, like downloads. Members of folders are
/// digested at every use only if all of them together are below it: digesting a large corpus takes
/// hours. The others are digested if their length or modification time has changed.
const ALWAYS_READ_BELOW: u64 = 64 << 20;

/// `<file>.unpacked.json`, beside the folder.
#[derive(Debug, Serialize, Deserialize)]
struct UnpackedRecord {
    /// SHA-256 of the archive that the members come from.
    archive: String,
    /// Folders of which every matching member is unpacked.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    folders: BTreeSet<FolderMembers>,
    members: Vec<KeptMember>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptMember {
    #[serde(flatten)]
    member: Member,
    modified_ns: u64,
}

/// Path of a member, and the member or what is wrong with it.
pub(super) type MemberCheck = (PathBuf, Result<Member, FetchError>);

/// The folder of one archive of one corpus.
pub(super) struct UnpackedArchive<'a> {
    home: &'a DataHome,
    corpus: &'a str,
    file: &'a str,
    packing: Packing,
}

impl<'a> UnpackedArchive<'a> {
    pub(super) fn new(home: &'a DataHome, corpus: &'a str, file: &'a str, packing: Packing) -> Self {
        Self { home, corpus, file, packing }
    }

    /// Path of the folder with the members.
    pub(super) fn folder(&self) -> PathBuf {
        self.home.corpus_dir(self.corpus).join(self.file)
    }

    fn record_path(&self) -> PathBuf {
        beside(&self.folder(), ".unpacked.json")
    }

    /// Makes sure that the `wanted` members of `archive` are present and undamaged.
    pub(super) fn ensure(
        &self,
        archive: &Fetched,
        wanted: &Wanted,
        unpacked_size: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<(), FetchError> {
        if self.usable(archive, wanted, progress)? {
            return Ok(());
        }
        let lock = self.home.unpacking_lock(self.corpus, self.file);
        let _lock = Lock::take_with(&lock, self.file, progress)?;
        if self.usable(archive, wanted, progress)? {
            return Ok(());
        }
        self.unpack(archive, wanted, unpacked_size, progress)
    }

    /// Whether all `wanted` members are present and come from this archive. A damaged one is an
    /// error that names it.
    fn usable(
        &self,
        archive: &Fetched,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<bool, FetchError> {
        let Some(record) = self.record()? else { return Ok(false) };
        let kept: BTreeSet<&str> = record.members.iter().map(|k| k.member.path.as_str()).collect();
        let all = wanted.named.iter().all(|member| kept.contains(member.as_str()));
        if record.archive != archive.sha256 || !all || !wanted.folders.is_subset(&record.folders) {
            return Ok(false);
        }
        let in_folder = |kept: &&KeptMember| record.folders.iter().any(|f| f.takes(&kept.member.path));
        let in_folders: u64 = record.members.iter().filter(in_folder).map(|kept| kept.member.bytes).sum();
        for kept in &record.members {
            let path = self.folder().join(&kept.member.path);
            let Ok(metadata) = fs::metadata(&path) else { return Ok(false) };
            let stamp = Stamp { bytes: kept.member.bytes, modified_ns: kept.modified_ns };
            let small = if in_folder(&kept) { in_folders } else { stamp.bytes };
            if Stamp::of(&metadata) != stamp || small < ALWAYS_READ_BELOW {
                check_member_file(&path, &kept.member, progress)?;
            }
        }
        Ok(true)
    }

    fn record(&self) -> Result<Option<UnpackedRecord>, FetchError> {
        if !self.folder().is_dir() {
            return Ok(None);
        }
        read_json(&self.record_path())
    }

    fn unpack(
        &self,
        archive: &Fetched,
        wanted: &Wanted,
        unpacked_size: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<(), FetchError> {
        let folder = self.folder();
        // Only the holder of the lock uses this folder, so an existing one was left by a killed
        // process.
        let fresh = self.home.corpus_dir(self.corpus).join(format!("{HALF_UNPACKED}{}", self.file));
        remove_folder(&fresh)?;
        if folder.exists() && !self.record_path().exists() {
            return Err(FetchError::Record {
                path: self.record_path(),
                reason: format!(
                    "it is missing, so the content of {} is unknown; remove that folder",
                    folder.display()
                ),
            });
        }
        let mut limits = UnpackLimits::default();
        if let Some(bytes) = unpacked_size {
            // The limit includes the other members of the archive, which are read but not kept.
            limits.bytes = limits.bytes.min(bytes.saturating_mul(20).max(1 << 30));
        }
        let unpacked = unpack(&archive.path, self.packing, &fresh, Some(wanted), limits, progress)?;
        let mut kept = Vec::new();
        for member in unpacked.members {
            let path = fresh.join(&member.path);
            let metadata = fs::metadata(&path).map_err(FetchError::io("read", &path))?;
            kept.push(KeptMember { modified_ns: Stamp::of(&metadata).modified_ns, member });
        }
        // Members of an older archive, or an incomplete folder: safe to remove, because both come
        // from the archive.
        remove_folder(&folder)?;
        let record = UnpackedRecord {
            archive: archive.sha256.clone(),
            folders: wanted.folders.clone(),
            members: kept,
        };
        write_json(&self.record_path(), &record)?;
        rename(&fresh, &folder).map_err(FetchError::io("rename to", &folder))
    }

    /// Reads every member and compares it with the record. Returns one result per member; empty if
    /// nothing has been unpacked yet.
    pub(super) fn verify(&self, progress: &dyn Progress) -> Result<Vec<MemberCheck>, FetchError> {
        let Some(record) = self.record()? else { return Ok(Vec::new()) };
        let check = |kept: KeptMember| {
            let path = self.folder().join(&kept.member.path);
            let result = check_member_file(&path, &kept.member, progress).map(|()| kept.member);
            (path, result)
        };
        Ok(record.members.into_iter().map(check).collect())
    }
}

fn check_member_file(path: &Path, member: &Member, progress: &dyn Progress) -> Result<(), FetchError> {
    let io_error = |e| FetchError::io("read", path)(e);
    let bytes = fs::metadata(path).map_err(io_error)?.len();
    progress.event(Event::Verifying { name: &member.path, bytes });
    let mismatch = if bytes != member.bytes {
        Some(Mismatch::Size { expected: member.bytes, actual: bytes })
    } else {
        let actual = sha256_file(path).map_err(io_error)?;
        (actual != member.sha256).then(|| Mismatch::Digest {
            kind: "sha256",
            expected: member.sha256.clone(),
            actual,
        })
    };
    match mismatch {
        None => Ok(()),
        Some(mismatch) => Err(FetchError::Corrupt { path: path.into(), mismatch }),
    }
}

fn remove_folder(folder: &Path) -> Result<(), FetchError> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(FetchError::io("remove", folder)(e)),
        _ => Ok(()),
    }
}
