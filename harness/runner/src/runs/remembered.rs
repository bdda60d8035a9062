//! What the last `zoo runs` read of runs that have ended, and of the ledger. It holds while the files
//! are the same: a thousand runs would cost fifty thousand system calls.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::found::{Found, Identity, TRAINING};
use super::summary::{Summary, folders_and_evaluations};
use super::verdicts::Verdicts;
use crate::files::{Stamp, write_whole};

/// Name of the file in the home.
pub const FILE: &str = "runs.json";

/// Files that changed so shortly before a call are not remembered: the next change could have the same
/// time.
const SETTLED: Duration = Duration::from_secs(2);

/// Ended runs and verdicts as they were read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Remembered {
    /// The program that wrote this; another one may read the same files differently.
    program: Option<Stamp>,
    /// By path below the folder of runs.
    runs: HashMap<String, Run>,
    verdicts: Option<(Stamp, Verdicts)>,
    #[serde(skip)]
    is_changed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Run {
    /// What the rest depends on, by path below the run's folder. `None` is a file that did not exist.
    watched: Vec<(PathBuf, Option<Stamp>)>,
    identity: Identity,
    written: SystemTime,
    summary: Summary,
}

impl Remembered {
    /// What is remembered in a home; nothing if another program wrote it.
    pub fn of(home: &Path) -> Self {
        let read = || serde_json::from_slice::<Self>(&fs::read(home.join(FILE)).ok()?).ok();
        let program = Stamp::of_program();
        match read() {
            Some(remembered) if remembered.program.is_some() && remembered.program == program => remembered,
            _ => Self { program, ..Self::default() },
        }
    }

    /// The run of a folder; `None` if it is not remembered or has changed.
    pub(super) fn unchanged(&self, below: &str, folder: &Path) -> Option<(Identity, SystemTime, Summary)> {
        let Run { watched, identity, written, summary } = self.runs.get(below)?;
        let is_same = |(path, stamp): &(PathBuf, Option<Stamp>)| Stamp::of(&folder.join(path)) == *stamp;
        watched.iter().all(is_same).then(|| (identity.clone(), *written, summary.clone()))
    }

    /// The verdicts of a ledger.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn verdicts(&mut self, ledger: &Path) -> io::Result<Verdicts> {
        let Some(stamp) = Stamp::of(ledger) else { return Verdicts::read(ledger) };
        if let Some((of, verdicts)) = &self.verdicts
            && *of == stamp
        {
            return Ok(verdicts.clone());
        }
        let verdicts = Verdicts::read(ledger)?;
        self.verdicts = Some((stamp, verdicts.clone()));
        self.is_changed = true;
        Ok(verdicts)
    }

    /// Takes over the runs that have ended, and forgets those that are gone. `all` are the runs of the
    /// home, `read` those of which there is a summary, as they were at the time `began`.
    pub fn update(&mut self, all: &[Found], read: &[(&Found, &Summary)], began: SystemTime) {
        let settled = began.checked_sub(SETTLED).unwrap_or(SystemTime::UNIX_EPOCH);
        let fresh =
            read.par_iter().filter(|(found, summary)| found.remembered.is_none() && summary.state.is_final());
        let fresh: Vec<(String, Run)> =
            fresh.filter_map(|(found, summary)| Run::of(found, summary, settled)).collect();
        let before = self.runs.len();
        let present: HashMap<String, bool> =
            all.iter().map(|found| (found.below(), found.remembered.is_some())).collect();
        self.runs.retain(|below, _| present.get(below) == Some(&true));
        self.is_changed |= self.runs.len() != before || !fresh.is_empty();
        self.runs.extend(fresh);
    }

    /// Writes what has changed to a home that exists. What cannot be kept is read again the next time.
    pub fn keep(&self, home: &Path) {
        if !self.is_changed || self.program.is_none() || !home.is_dir() {
            return;
        }
        if let Ok(bytes) = serde_json::to_vec(self) {
            write_whole(&home.join(FILE), &bytes).ok();
        }
    }
}

impl Run {
    /// `None` if a file was written after the time `settled`, or the run has no identity.
    fn of(found: &Found, summary: &Summary, settled: SystemTime) -> Option<(String, Self)> {
        let identity = found.identity.clone()?;
        let paths = TRAINING.iter().map(PathBuf::from).chain(folders_and_evaluations(&found.folder));
        let watched: Vec<(PathBuf, Option<Stamp>)> =
            paths.map(|path| (path.clone(), Stamp::of(&found.folder.join(path)))).collect();
        let is_settled = watched.iter().all(|(_, stamp)| stamp.is_none_or(|stamp| stamp.is_before(settled)));
        let run = Self { watched, identity, written: found.written, summary: summary.clone() };
        is_settled.then(|| (found.below(), run))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::found::all_but;
    use super::super::found::tests::made;
    use super::super::summary::State;
    use super::*;

    /// Summaries of the runs of a home, in a call that began `after` now.
    fn listed(home: &Path, after: Duration) -> Vec<Summary> {
        let mut remembered = Remembered::of(home);
        let found = all_but(&home.join("runs"), &remembered);
        let summaries: Vec<Summary> = found.iter().map(Summary::of).collect();
        let read: Vec<(&Found, &Summary)> = found.iter().zip(&summaries).collect();
        remembered.update(&found, &read, SystemTime::now() + after);
        remembered.keep(home);
        summaries
    }

    fn kept(home: &Path) -> Option<String> {
        fs::read_to_string(home.join(FILE)).ok()
    }

    /// Changes the number of updates in what is kept.
    fn falsified(home: &Path) {
        let text = kept(home).unwrap();
        assert!(text.contains("\"updates\":7"), "{text}");
        fs::write(home.join(FILE), text.replace("\"updates\":7", "\"updates\":99")).unwrap();
    }

    #[test]
    fn a_run_that_has_ended_is_read_once_until_one_of_its_files_changes() {
        const LATER: Duration = Duration::from_secs(60);
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let folder = made(&home.join("runs"), "toy", "fp32", 1, "aaa", 10);
        listed(home, LATER);
        assert_eq!(kept(home), None, "the run has not ended");
        let trained = json!({ "ending": { "kind": "max-epochs" }, "updates": 7, "seconds": 1.5 });
        fs::write(folder.join("trained.json"), trained.to_string()).unwrap();
        fs::create_dir(folder.join("eval")).unwrap();
        fs::write(folder.join("eval/test.beam.json"), "{}").unwrap();
        listed(home, Duration::ZERO);
        assert_eq!(kept(home), None, "the files are too new");
        for (what, path, text) in [
            ("a file was added", "eval/dev.beam.json", "{}"),
            ("a file was made", "log.jsonl", ""),
            ("a file has grown", "log.jsonl", "{}"),
            ("an evaluation has changed", "eval/test.beam.json", "[]\n"),
        ] {
            assert_eq!(listed(home, LATER)[0].updates, 7);
            falsified(home);
            assert_eq!(listed(home, LATER)[0].updates, 99, "it is not read again");
            fs::write(folder.join(path), text).unwrap();
            assert_eq!(listed(home, LATER)[0].updates, 7, "{what}");
        }
        fs::write(home.join(FILE), "{").unwrap();
        assert_eq!(listed(home, LATER)[0].state, State::Evaluated);
        fs::remove_dir_all(folder).unwrap();
        assert!(listed(home, LATER).is_empty());
        assert!(Remembered::of(home).runs.is_empty());
    }

    #[test]
    fn verdicts_are_read_again_when_the_ledger_has_grown() {
        let home = tempfile::tempdir().unwrap();
        let ledger = home.path().join("ledger.jsonl");
        let mut remembered = Remembered::of(home.path());
        remembered.verdicts(&ledger).unwrap();
        assert!(!remembered.is_changed);
        for text in ["{}\n", "{}\n{}\n"] {
            fs::write(&ledger, text).unwrap();
            remembered.is_changed = false;
            remembered.verdicts(&ledger).unwrap();
            assert!(remembered.is_changed);
            remembered.is_changed = false;
            remembered.verdicts(&ledger).unwrap();
            assert!(!remembered.is_changed);
        }
    }
}
