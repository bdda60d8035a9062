//! The bundle's file: indented JSON whose last member is the SHA-256 of all bytes before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::{Recipe, hash_of_arms};

use super::limits::MAX_BYTES;
use crate::ledger::{Entry, HypothesesFile, Kept};

/// Value of the member `format`.
pub const FORMAT: &str = "zoo-bundle";
/// Version of the layout that is written. Version 1, which can be read too, has no `recipe.bases`.
pub const VERSION: u32 = 2;
/// Text between the sealed bytes and the seal.
const SEAL: &str = ",\n  \"sha256\": \"";

/// All data about one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// [`FORMAT`].
    pub format: String,
    /// 1 to [`VERSION`].
    pub version: u32,
    /// The ledger's line, byte for byte: scores, claims, evidence, verdicts, and its own hash.
    pub record: String,
    /// The recipe.
    pub recipe: BundledRecipe,
    /// Environment of each run; empty if the runs' folders no longer existed.
    pub environments: Vec<RunEnvironment>,
    /// All files of hypotheses that the record names.
    pub hypotheses: Vec<BundledHypotheses>,
    /// Digests of the references that the hypotheses were scored against.
    pub references: Vec<BundledReferences>,
}

/// A recipe, as written and as resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledRecipe {
    /// Name of the file in messages.
    pub file: String,
    /// Text of the file.
    pub text: String,
    /// Texts of the bases that the recipe extends, nearest base first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<String>,
    /// The body, under the empty name, and every arm, resolved, as TOML. The record's recipe hash
    /// covers these.
    pub resolved: BTreeMap<String, String>,
}

/// Binary and machine of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnvironment {
    /// Arm of the run.
    pub arm: String,
    /// Seed of the run.
    pub seed: u64,
    /// The environment as in the run's folder.
    pub environment: serde_json::Value,
}

/// A file of hypotheses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledHypotheses {
    /// Path and digest, as in the record.
    pub file: HypothesesFile,
    /// The content, one hypothesis per line.
    pub text: String,
}

/// References of an evaluation set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledReferences {
    /// Name of the evaluation set.
    pub eval: String,
    /// SHA-256 of the lines, each with its line feed.
    pub sha256: String,
    /// Number of lines.
    pub lines: usize,
}

impl BundledReferences {
    /// The entry for these lines.
    #[must_use]
    pub fn of(eval: &str, lines: &[String]) -> Self {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Self { eval: eval.to_owned(), sha256: sha256(text.as_bytes()), lines: lines.len() }
    }
}

/// Why a file is not a bundle that can be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The file is not a bundle.
    #[error("not a bundle: {0}\nhint: `zoo bundle RUN` writes one")]
    Foreign(String),
    /// A version that this program does not read.
    #[error(
        "a bundle of version {0}; this program reads 1 to {VERSION}\nhint: check it with the zoo that wrote it"
    )]
    Version(u64),
    /// The file exceeds the maximum size of a bundle.
    #[error("the bundle has more than {MAX_BYTES} bytes, which is the limit\nhint: check the ledger itself")]
    TooLarge,
    /// The file was changed after it was written.
    #[error("{0}\nhint: the bundle was changed after it was written; ask for it again")]
    Changed(String),
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

impl Bundle {
    /// The text of the file.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    pub fn encode(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        // Remove the closing brace to append the seal, which covers everything before it.
        text.truncate(text.trim_end_matches(['}', '\n']).len());
        let seal = sha256(text.as_bytes());
        Ok(format!("{text}{SEAL}{seal}\"\n}}\n"))
    }

    /// Reads the text of a file; the seal must match.
    ///
    /// # Errors
    /// See [`BundleError`].
    pub fn decode(text: &str) -> Result<Self, BundleError> {
        if text.len() as u64 > MAX_BYTES {
            return Err(BundleError::TooLarge);
        }
        let foreign = |what: &str| BundleError::Foreign(what.to_owned());
        let looks_like_one = text.get(..200.min(text.len())).is_some_and(|head| head.contains(FORMAT));
        let Some((sealed, seal)) = text.rsplit_once(SEAL).and_then(|(sealed, rest)| {
            let seal = rest.strip_suffix('\n').unwrap_or(rest).strip_suffix("\"\n}")?;
            Some((sealed, seal))
        }) else {
            return Err(match looks_like_one {
                true => BundleError::Changed("the file does not end with a seal".to_owned()),
                false => foreign("the file has no seal"),
            });
        };
        let found = sha256(sealed.as_bytes());
        if found != seal {
            return Err(BundleError::Changed(format!(
                "the seal has SHA-256 {seal}, the bytes before it have {found}"
            )));
        }
        let json: serde_json::Value =
            serde_json::from_str(&format!("{sealed}\n}}")).map_err(|error| foreign(&error.to_string()))?;
        if json["format"] != FORMAT {
            return Err(foreign("its member `format` has a different value"));
        }
        match json["version"].as_u64() {
            Some(version) if (1..=u64::from(VERSION)).contains(&version) => {}
            version => return Err(BundleError::Version(version.unwrap_or(0))),
        }
        serde_json::from_value(json).map_err(|error| foreign(&error.to_string()))
    }

    /// The record, if its line is complete and unchanged.
    ///
    /// # Errors
    /// [`BundleError::Changed`].
    pub fn entry(&self) -> Result<Entry, BundleError> {
        Entry::parse(&self.record).map_err(|what| BundleError::Changed(format!("the record: {what}")))
    }

    /// The resolved recipe of the body and each arm.
    ///
    /// # Errors
    /// [`BundleError::Changed`] if it does not parse.
    pub fn recipes(&self) -> Result<BTreeMap<String, Recipe>, BundleError> {
        let read = |(arm, toml): (&String, &String)| match Recipe::from_toml(toml) {
            Ok(recipe) => Ok((arm.clone(), recipe)),
            Err(error) => Err(BundleError::Changed(format!("the recipe of arm `{arm}`: {error}"))),
        };
        self.recipe.resolved.iter().map(read).collect()
    }

    /// Hash of the recipe in the bundle.
    ///
    /// # Errors
    /// As [`Self::recipes`].
    pub fn recipe_hash(&self) -> Result<String, BundleError> {
        Ok(hash_of_arms(&self.recipes()?))
    }
}

impl Kept for Bundle {
    fn bytes(&self, file: &HypothesesFile) -> Result<Vec<u8>, String> {
        let found = self.hypotheses.iter().find(|one| one.file.path == file.path);
        found
            .map(|one| one.text.clone().into_bytes())
            .ok_or_else(|| format!("the bundle has no {}", file.path))
    }
}
