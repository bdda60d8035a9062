//! Saved profiles of runs, for a report.

use zoo_results::report::page::ProfilePart;

use crate::run::folder::Run;
use crate::run::saved_profile::SavedProfile;

/// The saved profiles of these runs. A run without one has none; one that cannot be read is missing.
pub(super) fn profiles<'r>(
    runs: impl Iterator<Item = &'r Run>,
    missing: &mut Vec<String>,
) -> Vec<ProfilePart> {
    let mut found = Vec::new();
    for (at, run) in runs.enumerate() {
        match SavedProfile::of(&run.folder) {
            Ok(None) => {}
            Ok(Some(saved)) => {
                let here = &saved.environment;
                let from = format!("zoo {}, commit {}, on {}", here.version, here.sources(), here.hardware());
                found.push(ProfilePart { run: at, compute: saved.compute, from, profile: saved.updates });
            }
            Err(why) => {
                let card = &run.card;
                missing.push(format!("{}, seed {}: its profile cannot be read: {why}", card.arm, card.seed));
            }
        }
    }
    found
}
