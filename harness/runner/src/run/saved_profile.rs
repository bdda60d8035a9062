//! The saved profile of a run: `profile.json` in its folder.
//!
//! The file does not affect the key, the age or the state of a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted;
use zoo_results::profile::Profile;

use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::files::write_json;

/// Name of the file.
const FILE: &str = "profile.json";
/// Value of `format`, by which the file is recognised.
const FORMAT: &str = "zoo-profile-1";

/// What a report needs of a saved profile.
#[derive(Debug, Clone, Deserialize)]
pub struct SavedProfile {
    format: String,
    /// Type of matrix products.
    pub compute: String,
    /// Program and machine that made the profile.
    pub environment: Environment,
    /// The profiled updates.
    pub updates: Profile,
}

impl SavedProfile {
    /// The saved profile in the folder of a run; `None` if there is none.
    ///
    /// # Errors
    /// Why the file is not a saved profile.
    pub fn of(run: &Path) -> std::result::Result<Option<Self>, String> {
        let text = match untrusted::read(&path(run)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(saved) if saved.format == FORMAT && saved.updates.updates.is_empty() => {
                Err("it has no updates".to_owned())
            }
            Ok(saved) if saved.format == FORMAT => Ok(Some(saved)),
            Ok(saved) => Err(format!("its format is `{}`, not `{FORMAT}`", saved.format)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Path of the saved profile of the run in a folder.
pub fn path(run: &Path) -> PathBuf {
    run.join(FILE)
}

/// Checks that a profile may be saved in the folder of a run.
///
/// # Errors
/// A file of this name is there and is not a saved profile.
pub fn check(run: &Path) -> Result<()> {
    #[derive(Deserialize)]
    struct Marked {
        format: String,
    }
    let file = path(run);
    match untrusted::read(&file) {
        Ok(text) if serde_json::from_slice::<Marked>(&text).is_ok_and(|found| found.format == FORMAT) => {
            Ok(())
        }
        Ok(_) => Err(Failure::usage(format!("{} exists and is not a saved profile", file.display()))
            .hint("move the file away; --save overwrites only saved profiles")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::io("read", &file, &error)),
    }
}

/// Saves a report on a profile in the folder of a run.
///
/// # Errors
/// As for [`check`], or the file cannot be written.
pub fn save(run: &Path, report: &impl Serialize) -> Result<()> {
    #[derive(Serialize)]
    struct Marked<'r, R> {
        format: &'static str,
        #[serde(flatten)]
        report: &'r R,
    }
    check(run)?;
    write_json(&path(run), &Marked { format: FORMAT, report })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zoo_results::profile::ProfiledUpdate;

    use super::*;

    #[test]
    fn only_a_saved_profile_is_read_and_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        assert!(SavedProfile::of(run).unwrap().is_none());
        let report = |updates: Profile| json!({ "compute": "fp32", "environment": Environment::current("cpu", 1), "updates": updates });
        let profile = Profile { updates: vec![ProfiledUpdate::default()] };
        let (empty, report) = (report(Profile::default()), report(profile.clone()));
        save(run, &empty).unwrap();
        assert_eq!(SavedProfile::of(run).unwrap_err(), "it has no updates");
        for _ in 0..2 {
            save(run, &report).unwrap();
        }
        let saved = SavedProfile::of(run).unwrap().unwrap();
        assert_eq!((saved.compute.as_str(), saved.updates), ("fp32", profile));
        for other in ["{}", "", "{\"format\":\"zoo-profile-2\"}"] {
            std::fs::write(path(run), other).unwrap();
            assert!(SavedProfile::of(run).is_err(), "{other}");
            let error = save(run, &report).unwrap_err().to_string();
            assert!(error.contains("is not a saved profile"), "{error}");
            assert_eq!(std::fs::read_to_string(path(run)).unwrap(), other);
        }
    }
}
