//! Selection of the members of an archive that are written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Selected members: single ones by name, and all members of folders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Paths in the form of [`super::Member::path`]. Each must be in the archive.
    pub named: BTreeSet<String>,
    /// Folders whose matching members are all selected.
    pub folders: BTreeSet<FolderMembers>,
}

/// Members at any depth below a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FolderMembers {
    /// The folder's path, without a `/` at its end.
    pub folder: String,
    /// Suffix of their names, such as `.flac`.
    pub suffix: String,
}

impl FolderMembers {
    /// Whether the member at `path` is selected.
    pub fn takes(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.folder.as_str()).and_then(|rest| rest.strip_prefix('/'));
        below.is_some_and(|name| name.ends_with(&self.suffix))
    }
}

impl Wanted {
    /// Whether the member at `path` is in the folder and has the suffix.
    pub fn takes(&self, path: &str) -> bool {
        self.named.contains(path) || self.folders.iter().any(|folder| folder.takes(path))
    }
}

impl From<BTreeSet<String>> for Wanted {
    fn from(named: BTreeSet<String>) -> Self {
        Self { named, folders: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_folder_are_below_it_and_end_as_they_should() {
        let folder = FolderMembers { folder: "a/b".into(), suffix: ".wav".into() };
        let wanted = Wanted { named: ["c".to_owned()].into(), folders: [folder].into() };
        let taken = |path: &&&str| wanted.takes(path);
        let paths = ["a/b/1.wav", "a/b/c/2.wav", "a/bc/3.wav", "a/b.wav", "a/b/4.flac", "c", "x/a/b/5.wav"];
        assert_eq!(paths.iter().filter(taken).collect::<Vec<_>>(), [&"a/b/1.wav", &"a/b/c/2.wav", &"c"]);
    }
}
