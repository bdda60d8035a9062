//! Folders of runs in a home.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted;

use super::remembered::Remembered;
use super::summary::Summary;

/// Maximum bytes of a small JSON file. A larger one counts as unreadable.
const MOST: u64 = 1 << 20;

/// Bytes that most of these files do not exceed.
const USUAL: usize = 8 << 10;

/// Files that training writes. The newest of them dates a run.
pub(super) const TRAINING: [&str; 3] = ["trained.json", "log.jsonl", "run.json"];

/// A run of the home.
#[derive(Debug, Clone)]
pub struct Found {
    /// Name of the folder above the run's: the recipe, then its tier after a dot.
    pub name: String,
    pub folder: PathBuf,
    /// Identity of the run; `None` if `run.json` cannot be read.
    pub identity: Option<Identity>,
    /// Time at which training wrote the last file. Evaluations do not change it.
    pub written: SystemTime,
    /// The summary of an ended run, if it is remembered.
    pub remembered: Option<Summary>,
}

/// The fields of `run.json` that name a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub recipe: String,
    pub arm: String,
    /// Tier; `None` is the published size.
    #[serde(default)]
    pub tier: Option<String>,
    pub seed: u64,
}

impl Found {
    /// The run in a folder; `None` if the folder has no `run.json`.
    fn read(name: &str, folder: PathBuf) -> Option<Self> {
        let identity = match small_json(&folder.join("run.json")) {
            Ok(identity) => Some(identity),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            // A file in the place of a folder.
            Err(error) if error.kind() == ErrorKind::NotADirectory => return None,
            Err(_) => None,
        };
        let written =
            TRAINING.iter().filter_map(|file| fs::metadata(folder.join(file)).ok()?.modified().ok());
        let written = written.max().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Self { name: name.to_owned(), folder, identity, written, remembered: None })
    }

    /// `NAME/FOLDER`: the path below the home's folder of runs.
    pub fn below(&self) -> String {
        path_below(&self.name, &self.folder)
    }

    /// `NAME:ARM:SEED`; the path below the folder of runs if the identity cannot be read.
    pub fn full_name(&self) -> String {
        match &self.identity {
            Some(Identity { arm, seed, .. }) => format!("{}:{arm}:{seed}", self.name),
            None => self.below(),
        }
    }
}

/// All runs in a home's folder of runs, newest first.
pub fn all(runs: &Path) -> Vec<Found> {
    all_with(runs, &Remembered::default())
}

/// All runs in a home's folder of runs, newest first. Those that are remembered and have not changed
/// are not read.
pub fn all_with(runs: &Path, remembered: &Remembered) -> Vec<Found> {
    let names = names(runs);
    newest_first(names.par_iter().flat_map(|name| folders(runs, name, remembered)).collect())
}

/// The runs below a name, newest first.
pub fn below(runs: &Path, name: &str) -> Vec<Found> {
    newest_first(folders(runs, name, &Remembered::default()))
}

/// For each run of a list that has all runs, newest first, the name that selects exactly it:
/// `NAME:ARM:SEED`, or its path below the folder of runs if a newer run has the former name.
pub fn called(all: &[Found]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |found: &Found| {
        let name = found.full_name();
        if taken.insert(name.clone()) { name } else { found.below() }
    };
    all.iter().map(name).collect()
}

/// Names of the files and folders in a folder, sorted: in that of the runs, the names below which there
/// are runs.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn folders(runs: &Path, name: &str, remembered: &Remembered) -> Vec<Found> {
    let entries = fs::read_dir(runs.join(name)).into_iter().flatten().flatten();
    let folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let found = |folder: PathBuf| match remembered.unchanged(&path_below(name, &folder), &folder) {
        Some((identity, written, summary)) => Some(Found {
            name: name.to_owned(),
            folder,
            identity: Some(identity),
            written,
            remembered: Some(summary),
        }),
        None => Found::read(name, folder),
    };
    folders.into_par_iter().filter_map(found).collect()
}

fn path_below(name: &str, folder: &Path) -> String {
    format!("{name}/{}", folder.file_name().unwrap_or_default().to_string_lossy())
}

fn newest_first(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_unstable_by(|one, other| {
        other.written.cmp(&one.written).then_with(|| one.folder.cmp(&other.folder))
    });
    found
}

/// A small JSON file of ours.
///
/// # Errors
/// The file cannot be read, is too large, or has other content.
pub(super) fn small_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&small(path)?)?)
}

/// The bytes of a small file.
///
/// # Errors
/// The file cannot be read, or is too large.
pub(super) fn small(path: &Path) -> io::Result<Vec<u8>> {
    // A read of most files, and one that finds their end.
    let mut bytes = Vec::with_capacity(USUAL);
    untrusted::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {MOST} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;

    /// Makes a run of a recipe, arm and seed that was last written `written` seconds after 1970.
    pub fn made(runs: &Path, name: &str, arm: &str, seed: u64, key: &str, written: u64) -> PathBuf {
        let folder = runs.join(name).join(format!("{arm}-seed{seed}-{key}"));
        fs::create_dir_all(&folder).unwrap();
        let (recipe, tier) = match name.split_once('.') {
            Some((recipe, tier)) => (recipe, Some(tier)),
            None => (name, None),
        };
        let card =
            serde_json::json!({ "recipe": recipe, "arm": arm, "tier": tier, "seed": seed, "key": key });
        fs::write(folder.join("run.json"), card.to_string()).unwrap();
        dated(&folder.join("run.json"), written);
        folder
    }

    /// Sets the time of a file to `written` seconds after 1970.
    pub fn dated(file: &Path, written: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(written);
        fs::File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn the_newest_run_is_the_one_that_training_wrote_last() {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path();
        assert!(all(runs).is_empty() && all(&runs.join("none")).is_empty());
        made(runs, "toy", "fp32", 1, "aaa", 10);
        made(runs, "toy.smoke", "mixed", 2, "bbb", 20);
        let resumed = made(runs, "toy", "fp32", 1, "ccc", 5);
        fs::write(resumed.join("log.jsonl"), "").unwrap();
        dated(&resumed.join("log.jsonl"), 30);
        fs::create_dir_all(runs.join("toy/no-run")).unwrap();
        fs::write(runs.join("file"), "").unwrap();
        fs::write(runs.join("toy/file"), "").unwrap();
        let found = all(runs);
        let below: Vec<String> = found.iter().map(Found::below).collect();
        assert_eq!(below, ["toy/fp32-seed1-ccc", "toy.smoke/mixed-seed2-bbb", "toy/fp32-seed1-aaa"]);
        assert_eq!(called(&found), ["toy:fp32:1", "toy.smoke:mixed:2", "toy/fp32-seed1-aaa"]);
        assert_eq!(found[1].identity.as_ref().unwrap().tier.as_deref(), Some("smoke"));
    }

    #[test]
    fn a_damaged_run_is_listed_without_its_identity() {
        let home = tempfile::tempdir().unwrap();
        let folder = made(home.path(), "toy", "fp32", 1, "aaa", 10);
        fs::write(folder.join("run.json"), "{").unwrap();
        let found = all(home.path());
        assert_eq!((found.len(), found[0].identity.clone()), (1, None));
        assert_eq!(called(&found), ["toy/fp32-seed1-aaa"]);
    }
}
