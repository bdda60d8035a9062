//! Saved profiles of runs, for a report.

use zoo_results::report::page::ProfilePart;

use crate::run::folder::Run;
use crate::run::saved_profile::SavedProfile;

/// The saved profiles of these runs. A run without a saved profile is left out; an unreadable file is
/// listed in `missing`.
pub(super) fn profiles<'r>(
    runs: impl Iterator<Item = &'r Run>,
    missing: &mut Vec<String>,
) -> Vec<ProfilePart> {
    let mut found = Vec::new();
    for (at, run) in runs.enumerate() {
        match SavedProfile::of(&run.folder) {
            Ok(None) => {}
            Ok(Some(saved)) => {
                let made_by = &saved.environment;
                let (version, sources) = (&made_by.version, made_by.sources());
                let from = format!("zoo {version}, commit {sources}, on {}", made_by.hardware());
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
