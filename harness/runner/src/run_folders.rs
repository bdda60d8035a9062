//! Comparison of records with the folders of their runs, if these still exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zoo_datasets::fetch::sha256_file;
use zoo_results::ledger::{Contradiction, Disagreement, Entry, RunRecord};

use crate::context::Context;
use crate::files::is_below;

/// A file of a run's folder that was compared with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the record.
    pub sequence: u64,
    /// How the file differs from the record.
    pub fault: Option<String>,
}

/// Differences between the folders of the home's runs and their records. A folder is compared with
/// the newest record of its run.
pub fn disagreements(context: &Context, entries: &[Entry]) -> Vec<Disagreement> {
    let mut found = Vec::new();
    for (entry, run) in newest(entries) {
        let what = format!("run {} seed {}", run.arm, run.seed);
        let faults = of_run(&context.runs_dir(), entry, run).into_iter().filter_map(|one| one.fault);
        found.extend(faults.map(|how| Disagreement::of(entry, Contradiction { what: what.clone(), how })));
    }
    found.reverse();
    found
}

/// Every file of the home's runs that a record has a digest of, compared with the newest record of
/// its run. `is_read` says whether to read a folder, given by its path below the folder of runs.
pub fn compared<'e>(
    context: &'e Context,
    entries: &'e [Entry],
    is_read: impl Fn(&str) -> bool + 'e,
) -> impl Iterator<Item = Compared> + 'e {
    let chosen = newest(entries).filter(move |(_, run)| is_read(&run.folder));
    chosen.flat_map(|(entry, run)| of_run(&context.runs_dir(), entry, run))
}

/// Each run with its newest record, the newest first.
fn newest(entries: &[Entry]) -> impl Iterator<Item = (&Entry, &RunRecord)> {
    let mut seen = BTreeSet::new();
    let runs = entries.iter().rev().flat_map(|entry| entry.record.runs.iter().map(move |run| (entry, run)));
    runs.filter(move |(_, run)| seen.insert(&run.folder))
}

fn of_run(runs: &Path, entry: &Entry, run: &RunRecord) -> Vec<Compared> {
    let record = &entry.record;
    let below = Path::new(&run.folder);
    let compared = |path: PathBuf, fault: Option<String>| Compared { path, sequence: entry.sequence, fault };
    if !is_below(&run.folder) {
        let fault = format!("the path {} points outside the folder of runs", run.folder);
        return vec![compared(runs.to_owned(), Some(fault))];
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
    let each = files.into_iter().map(|(name, recorded)| {
        let path = folder.join(&name);
        let fault = match sha256_file(&path) {
            Ok(found) if found == *recorded => None,
            Ok(found) => Some(format!("{} has SHA-256 {found}, recorded {recorded}", path.display())),
            Err(error) => Some(format!("{}: {error}", path.display())),
        };
        compared(path, fault)
    });
    each.collect()
}
