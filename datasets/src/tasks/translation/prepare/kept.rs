//! Sub-words and vocabularies of a model, kept in a folder, so that a text can be translated without
//! the training text.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::tasks::translation::TextDataSpec;
use zoo_recipes::{atomic, untrusted};

use super::error::PrepareError;
use super::pipeline::TextPipeline;
use super::prepared::{PrepareOptions, PreparedTranslation};
use super::store::Folder;

/// File of [`Kept`]. It is written last.
const KEPT: &str = "kept.json";

/// Content of `kept.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// SHA-256 of each other file.
    files: BTreeMap<String, String>,
}

fn failed(file: &Path, problem: &dyn Display) -> PrepareError {
    PrepareError::Kept { file: file.into(), problem: problem.to_string() }
}

fn digests(pipeline: &TextPipeline) -> BTreeMap<String, String> {
    let digest = |(name, bytes): (String, Vec<u8>)| (name, hex::encode(Sha256::digest(bytes)));
    pipeline.files().into_iter().map(digest).collect()
}

fn listed(folder: &Path) -> Result<Option<BTreeMap<String, String>>, PrepareError> {
    let path = folder.join(KEPT);
    if !path.is_file() {
        return Ok(None);
    }
    let json = untrusted::read(&path).map_err(|error| failed(&path, &error))?;
    let Kept { files } = serde_json::from_slice(&json).map_err(|error| failed(&path, &error))?;
    Ok(Some(files))
}

impl PreparedTranslation {
    /// Writes sub-words and vocabularies into a folder.
    ///
    /// # Errors
    /// [`PrepareError::Kept`] if a file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<(), PrepareError> {
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            atomic::write_whole(&path, bytes).map_err(|error| failed(&path, &error))
        };
        for (name, bytes) in self.pipeline.files() {
            write(&name, &bytes)?;
        }
        let kept = Kept { files: digests(&self.pipeline) };
        let json = serde_json::to_vec_pretty(&kept).map_err(|error| failed(&folder.join(KEPT), &error))?;
        write(KEPT, &json)
    }

    /// Whether a folder has the sub-words and vocabularies of this data; `None` if nothing was kept.
    ///
    /// # Errors
    /// [`PrepareError::Kept`] if the list of kept files cannot be read.
    pub fn is_kept(&self, folder: &Path) -> Result<Option<bool>, PrepareError> {
        Ok(listed(folder)?.map(|files| files == digests(&self.pipeline)))
    }

    /// Reads what [`Self::keep`] wrote for the recipe's data. It has no splits. `None` if nothing
    /// was kept.
    ///
    /// # Errors
    /// [`PrepareError::Kept`] if a file is missing, was changed, or cannot be read.
    pub fn kept(
        data: &TextDataSpec,
        options: PrepareOptions,
        folder: &Path,
    ) -> Result<Option<Self>, PrepareError> {
        let Some(files) = listed(folder)? else { return Ok(None) };
        let mut due = |name: &str| {
            let missing = || failed(&folder.join(KEPT), &format!("it does not list `{name}`"));
            files.get(name).cloned().ok_or_else(missing)
        };
        let begin = (data.begin_token_in_source, options.begin_token_in_target);
        let pipeline = Folder { path: folder }.pipeline(&files, data, begin, &mut due);
        let pipeline = pipeline.map_err(|error| match error {
            PrepareError::Damaged { file, problem, .. } => failed(&file, &problem),
            other => other,
        })?;
        let targets = data.reader.targets().into_iter().map(String::from).collect();
        Ok(Some(Self { pipeline, targets, splits: BTreeMap::new() }))
    }
}
