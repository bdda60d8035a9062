//! Units of a model, kept in a folder, so that a text can be scored and continued without the texts
//! that number them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::tasks::language_modelling::LanguageDataSpec;
use zoo_recipes::{atomic, untrusted};

use super::error::LanguageDataError;
use super::prepared::PreparedLanguage;
use super::units::Units;

/// File of [`Kept`].
const KEPT: &str = "kept.json";

/// Content of `kept.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// SHA-256 of the units as JSON.
    sha256: String,
    /// The units in the order of their numbers.
    units: Vec<String>,
}

fn failed(path: &Path, reason: &dyn Display) -> LanguageDataError {
    LanguageDataError::Kept { path: path.into(), reason: reason.to_string() }
}

fn digest(units: &[String]) -> String {
    hex::encode(Sha256::digest(serde_json::json!(units).to_string().as_bytes()))
}

impl PreparedLanguage {
    /// Writes the units into a folder.
    ///
    /// # Errors
    /// [`LanguageDataError::Kept`] if the file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<(), LanguageDataError> {
        let path = folder.join(KEPT);
        let units = self.units.names().to_vec();
        let kept = Kept { sha256: digest(&units), units };
        let json = serde_json::to_vec_pretty(&kept).map_err(|error| failed(&path, &error))?;
        atomic::write_whole(&path, &json).map_err(|error| failed(&path, &error))
    }

    /// Reads what [`Self::keep`] wrote for the recipe's data. It has no splits. `None` if nothing
    /// was kept.
    ///
    /// # Errors
    /// [`LanguageDataError::Kept`] if the file was changed or cannot be read;
    /// [`LanguageDataError::NoUnknown`] if the units lack the recipe's unknown word.
    pub fn kept(data: &LanguageDataSpec, folder: &Path) -> Result<Option<Self>, LanguageDataError> {
        let path = folder.join(KEPT);
        if !path.is_file() {
            return Ok(None);
        }
        let json = untrusted::read(&path).map_err(|error| failed(&path, &error))?;
        let Kept { sha256, units } = serde_json::from_slice(&json).map_err(|error| failed(&path, &error))?;
        if digest(&units) != sha256 {
            return Err(failed(&path, &"it was changed: the SHA-256 of the units is another"));
        }
        Ok(Some(Self { splits: BTreeMap::new(), units: Units::of_names(&data.unit, units)? }))
    }
}
