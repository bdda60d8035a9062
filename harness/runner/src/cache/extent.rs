//! Number, size and age of files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Number of files, sum of their lengths in bytes, and the time of the last write to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    pub files: u64,
    pub bytes: u64,
    pub written: Option<SystemTime>,
}

impl Extent {
    /// A file, or a folder with all below it, without the paths in `except`. A symbolic link counts
    /// as a file of its own length. What cannot be read counts as nothing.
    pub fn of(path: &Path, except: &BTreeSet<PathBuf>) -> Self {
        let mut sum = Self::default();
        let mut paths = vec![path.to_owned()];
        while let Some(path) = paths.pop() {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            if except.contains(&path) {
                continue;
            }
            if about.is_dir() {
                paths.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
                continue;
            }
            sum.add(Self { files: 1, bytes: about.len(), written: about.modified().ok() });
        }
        sum
    }

    /// Adds other files.
    pub fn add(&mut self, other: Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.written = self.written.max(other.written);
    }

    /// Time since the last write. Zero for a time in the future.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        Some(now.duration_since(self.written?).unwrap_or_default())
    }
}

/// Whether the path itself is a symbolic link.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
}

/// Whether the path itself is a folder, and not a link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

/// The paths in a folder, sorted. None if it is a symbolic link.
pub fn paths_in(folder: &Path) -> Vec<PathBuf> {
    if !is_folder(folder) {
        return Vec::new();
    }
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_without_exceptions_and_without_following_links() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("large"), [0; 1000]).unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/one"), [0; 10]).unwrap();
        fs::write(folder.path().join("a/two"), [0; 5]).unwrap();
        let all = Extent::of(folder.path(), &BTreeSet::new());
        assert_eq!((all.files, all.bytes), (2, 15));
        let rest = Extent::of(folder.path(), &BTreeSet::from([folder.path().join("a/b")]));
        assert_eq!((rest.files, rest.bytes), (1, 5));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(other.path(), folder.path().join("link")).unwrap();
            let all = Extent::of(folder.path(), &BTreeSet::new());
            assert!(all.files == 3 && all.bytes < 1000, "{all:?}");
            assert_eq!(paths_in(&folder.path().join("link")), [""; 0].map(PathBuf::from));
        }
    }
}
