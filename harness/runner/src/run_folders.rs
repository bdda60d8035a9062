//! Comparison of records with the folders of their runs, if these still exist.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use zoo_datasets::fetch::sha256_file;
use zoo_results::ledger::{Contradiction, Disagreement, Entry, Record, RunRecord};

use crate::context::Context;

/// Differences between the folders of the home's runs and their records. A folder is compared with
/// the newest record of its run.
pub fn disagreements(context: &Context, entries: &[Entry]) -> Vec<Disagreement> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in entries.iter().rev() {
        for run in entry.record.runs.iter().filter(|run| seen.insert(&run.folder)) {
            let faults = of_run(&context.runs_dir(), &entry.record, run);
            let what = format!("run {} seed {}", run.arm, run.seed);
            found.extend(
                faults
                    .into_iter()
                    .map(|how| Disagreement::of(entry, Contradiction { what: what.clone(), how })),
            );
        }
    }
    found.reverse();
    found
}

fn of_run(runs: &Path, record: &Record, run: &RunRecord) -> Vec<String> {
    let below = Path::new(&run.folder);
    if run.folder.is_empty() || !below.components().all(|step| matches!(step, Component::Normal(_))) {
        return vec![format!("the path {} points outside the folder of runs", run.folder)];
    }
    let folder = runs.join(below);
    if !folder.is_dir() {
        return Vec::new();
    }
    let mut files: Vec<(String, &String)> =
        run.files.iter().map(|(name, digest)| (name.clone(), digest)).collect();
    // A stored hypotheses file has the name of its file in the run's folder, unless it belongs to a
    // point of a trajectory.
    for score in record.scores.iter().filter(|score| score.arm == run.arm && score.seed == run.seed) {
        let Some(file) = &score.hypotheses else { continue };
        let name = file.path.strip_prefix(&run.folder).and_then(|rest| rest.strip_prefix('/'));
        if let Some(name) = name.filter(|name| folder.join("eval").join(name).is_file()) {
            files.push((format!("eval/{name}"), &file.sha256));
        }
    }
    files.sort();
    files.dedup();
    let wrong = files.into_iter().filter_map(|(name, recorded)| {
        let path = folder.join(&name);
        match sha256_file(&path) {
            Ok(found) if found == *recorded => None,
            Ok(found) => Some(format!("{} has SHA-256 {found}, recorded {recorded}", path.display())),
            Err(error) => Some(format!("{}: {error}", path.display())),
        }
    });
    wrong.collect()
}
