//! The downloads that lie in a home, whichever corpus they are of.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::digest::{Mismatch, sha256_file};
use super::error::FetchError;
use super::layout::DataHome;
use super::record::{FetchedRecord, beside, read_json};

/// Endings of the names of files beside a download: its record, and an unfinished download.
const BESIDE: [&str; 3] = [".fetched.json", ".part.json", ".part"];

/// A download, complete or not, and the files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDownload {
    /// Its `<host>/<path>`.
    pub place: String,
    /// Path of the complete file, which may be missing.
    pub path: PathBuf,
    /// The files that exist: the download, its record, the parts of an unfinished one.
    pub files: Vec<PathBuf>,
}

/// All downloads in a home, by place. Symbolic links are not followed.
pub fn kept_downloads(home: &DataHome) -> Vec<KeptDownload> {
    // With a slash at its end, the path of a link would be that of its target.
    let root = home.root().join("downloads");
    let mut found: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let is_link = fs::symlink_metadata(&root).is_ok_and(|about| about.is_symlink());
    let mut folders = if is_link { Vec::new() } else { vec![root.clone()] };
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.entry(of(&entry.path())).or_default().push(entry.path()),
                _ => {}
            }
        }
    }
    let kept = |(path, mut files): (PathBuf, Vec<PathBuf>)| {
        files.sort_unstable();
        let below = path.strip_prefix(&root).ok()?;
        let steps: Vec<&str> = below.iter().map(|step| step.to_str()).collect::<Option<_>>()?;
        Some(KeptDownload { place: steps.join("/"), path, files })
    };
    found.into_iter().filter_map(kept).collect()
}

/// The download that a file belongs to.
fn of(file: &Path) -> PathBuf {
    let name = file.to_str().unwrap_or_default();
    let base = BESIDE.iter().find_map(|ending| name.strip_suffix(ending));
    base.map_or_else(|| file.to_owned(), PathBuf::from)
}

impl KeptDownload {
    /// Whether the complete file was fetched, and may have been lost since.
    pub fn was_complete(&self) -> bool {
        let record = beside(&self.path, ".fetched.json");
        self.files.iter().any(|file| *file == self.path || *file == record)
    }

    /// Compares the file with the record of its fetch. `None` if it has no record.
    ///
    /// # Errors
    /// The file is missing or damaged, or the record cannot be read.
    pub fn verify(&self) -> Option<Result<(), FetchError>> {
        let record = match read_json::<FetchedRecord>(&beside(&self.path, ".fetched.json")) {
            Ok(record) => record?,
            Err(error) => return Some(Err(error)),
        };
        let found = match sha256_file(&self.path) {
            Ok(found) => found,
            Err(error) => return Some(Err(FetchError::io("read", &self.path)(error))),
        };
        if found == record.sha256 {
            return Some(Ok(()));
        }
        let mismatch = Mismatch::Digest { kind: "sha256", expected: record.sha256, actual: found };
        Some(Err(FetchError::Corrupt { path: self.path.clone(), mismatch }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_a_download_belong_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = DataHome::new(folder.path());
        assert_eq!(kept_downloads(&home), []);
        for name in ["a.tgz", "a.tgz.fetched.json", "sub/b.gz.part", "sub/b.gz.part.json", "c.fetched.json"] {
            let file = home.download(&format!("host/{name}"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "{}").unwrap();
        }
        let kept = kept_downloads(&home);
        let seen: Vec<(&str, usize, bool)> =
            kept.iter().map(|one| (one.place.as_str(), one.files.len(), one.was_complete())).collect();
        assert_eq!(
            seen,
            [("host/a.tgz", 2, true), ("host/c", 1, true), ("host/sub/b.gz", 2, false)],
            "the second was lost, the third is unfinished"
        );
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_not_followed() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(other.path().join("host")).unwrap();
        fs::write(other.path().join("host/a"), "").unwrap();
        let home = DataHome::new(folder.path());
        let downloads = folder.path().join("downloads");
        std::os::unix::fs::symlink(other.path(), &downloads).unwrap();
        assert_eq!(kept_downloads(&home), []);
        fs::remove_file(&downloads).unwrap();
        fs::create_dir(&downloads).unwrap();
        std::os::unix::fs::symlink(other.path().join("host"), downloads.join("host")).unwrap();
        assert_eq!(kept_downloads(&home), []);
    }

    #[test]
    fn a_download_is_compared_with_the_record_of_its_fetch() {
        let folder = tempfile::tempdir().unwrap();
        let home = DataHome::new(folder.path());
        let file = home.download("host/a");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "abc").unwrap();
        assert!(kept_downloads(&home)[0].verify().is_none());
        let record = serde_json::json!({
            "from": "by hand", "checked": "unknown", "verified": 1, "stamp": { "bytes": 3, "modified_ns": 1 },
            "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        });
        fs::write(beside(&file, ".fetched.json"), record.to_string()).unwrap();
        assert!(kept_downloads(&home)[0].verify().unwrap().is_ok());
        fs::write(&file, "abd").unwrap();
        assert!(matches!(kept_downloads(&home)[0].verify(), Some(Err(FetchError::Corrupt { .. }))));
        fs::remove_file(&file).unwrap();
        assert!(matches!(kept_downloads(&home)[0].verify(), Some(Err(FetchError::Io { .. }))));
    }
}
