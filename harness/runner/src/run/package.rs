//! A package: a run as one folder that can be given away, with its weights in one file.
//!
//! ```text
//! zoo.json               size and SHA-256 of every other file
//! run.json, recipe.toml, trained.json    as in the folder of a run
//! model.safetensors      the weights that the recipe evaluates, in FP32
//! vocabulary/            as in the folder of a run
//! files/                 the files that its searches read; the recipe's paths are relative to this folder
//! README.md              the model card
//! record.bundle.json     the judged record with its evidence
//! ```

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_datasets::fetch::sha256_file;
use zoo_recipes::untrusted;
use zoo_results::exit::Exit;
use zoo_training::weights;

use super::evaluate::Weights;
use super::own_files::FILES;
use crate::error::{Failure, Result};

/// File of [`Manifest`]. It tells a package from the folder of a run.
pub const MANIFEST: &str = "zoo.json";
/// File of the weights.
pub const WEIGHTS: &str = "model.safetensors";

/// Value of [`Manifest::format`].
const FORMAT: &str = "zoo-package";
/// Version of the layout that this program writes and reads.
const VERSION: u32 = 1;
/// Largest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 16 << 20;

/// Content of `zoo.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`].
    format: String,
    /// [`VERSION`].
    version: u32,
    /// The other files, by their path in the package, with `/` between folders.
    pub files: BTreeMap<String, PackedFile>,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Size, in bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl Manifest {
    /// The manifest of these files.
    pub fn new(files: BTreeMap<String, PackedFile>) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, files }
    }

    /// The manifest of a folder; `None` if the folder is not a package.
    ///
    /// # Errors
    /// The file is not a manifest, or is one of a later version.
    pub fn of(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Ok(None);
        }
        let damaged = |why: &str| {
            Failure::new(Exit::Damaged, format!("{}: {why}", path.display()))
                .hint("get the package again; `zoo pack --check` checks it")
        };
        let file = untrusted::open(&path).map_err(|error| Failure::io("read", &path, &error))?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_MANIFEST + 1).read_to_end(&mut bytes);
        read.map_err(|error| Failure::io("read", &path, &error))?;
        if bytes.len() as u64 > MAX_MANIFEST {
            return Err(damaged("larger than 16 MiB"));
        }
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(&error.to_string()))?;
        if found.format != FORMAT {
            return Err(damaged(&format!("its format is {:?}, not {FORMAT:?}", found.format)));
        }
        if found.version != VERSION {
            let message =
                format!("{}: version {}, this program reads {VERSION}", path.display(), found.version);
            return Err(Failure::new(Exit::Data, message).hint("use a newer version of zoo"));
        }
        Ok(Some(found))
    }

    /// What is wrong with a file of a package; `None` if it is as the manifest says.
    pub fn fault(&self, folder: &Path, name: &str) -> Option<String> {
        let Some(expected) = self.files.get(name) else {
            return Some(format!("{MANIFEST} does not list it"));
        };
        let path = folder.join(name);
        // A link may lead out of the package.
        match path.symlink_metadata() {
            Err(error) => return Some(error.to_string()),
            Ok(found) if !found.is_file() => return Some("not a regular file".to_owned()),
            Ok(found) if found.len() != expected.bytes => {
                return Some(format!("it has {} bytes, not {}", found.len(), expected.bytes));
            }
            Ok(_) => {}
        }
        match sha256_file(&path) {
            Err(error) => Some(error.to_string()),
            Ok(found) if found != expected.sha256 => {
                Some(format!("its SHA-256 is {found}, not {}", expected.sha256))
            }
            Ok(_) => None,
        }
    }

    /// The weights of a package.
    ///
    /// # Errors
    /// The file is missing, was changed, or does not contain weights.
    pub fn weights(&self, folder: &Path) -> Result<Weights> {
        let path = folder.join(WEIGHTS);
        if let Some(fault) = self.fault(folder, WEIGHTS) {
            return Err(Failure::new(Exit::Damaged, format!("{}: {fault}", path.display()))
                .hint("get the package again; `zoo pack --check` checks it"));
        }
        let values = weights::read(&path).map_err(|error| Failure::new(Exit::Damaged, error.to_string()))?;
        Ok(Weights { values, files: vec![path], update: None })
    }
}

/// The folder that the paths of a packed recipe are relative to.
pub fn base_of(package: &Path) -> PathBuf {
    package.join(FILES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_which_file_is_not_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::of(folder.path()).unwrap(), None);
        let file = folder.path().join("a");
        std::fs::write(&file, "text").unwrap();
        let packed = PackedFile { bytes: 4, sha256: sha256_file(&file).unwrap() };
        let manifest = Manifest::new(BTreeMap::from([("a".to_owned(), packed)]));
        std::fs::write(folder.path().join(MANIFEST), serde_json::to_string(&manifest).unwrap()).unwrap();
        assert_eq!(Manifest::of(folder.path()).unwrap().as_ref(), Some(&manifest));
        let fault = |name| manifest.fault(folder.path(), name);
        assert_eq!(fault("a"), None);
        assert!(fault("b").unwrap().contains("does not list it"));
        std::fs::write(&file, "texts").unwrap();
        assert_eq!(fault("a").unwrap(), "it has 5 bytes, not 4");
        std::fs::write(&file, "test").unwrap();
        assert!(fault("a").unwrap().contains("its SHA-256 is"));
        std::fs::remove_file(&file).unwrap();
        assert!(fault("a").is_some());
    }

    #[test]
    fn another_file_of_that_name_is_not_a_manifest() {
        let folder = tempfile::tempdir().unwrap();
        for (text, why) in [
            ("{", "EOF"),
            (r#"{"format": "x", "version": 1, "files": {}}"#, "its format is"),
            (r#"{"format": "zoo-package", "version": 2, "files": {}}"#, "this program reads 1"),
        ] {
            std::fs::write(folder.path().join(MANIFEST), text).unwrap();
            let error = Manifest::of(folder.path()).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(MANIFEST), "{error}");
        }
    }
}
