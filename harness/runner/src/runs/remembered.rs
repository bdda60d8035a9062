//! What the last `zoo runs` read of ended runs and of the ledger. It holds while the files are the
//! same. Without it, a thousand runs would cost fifty thousand system calls.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted;

use super::found::{Found, Identity, TRAINING};
use super::summary::{Summary, folders_and_evaluations};
use super::verdicts::Verdicts;
use crate::environment::Program;
use crate::files::{Stamp, write_whole};

/// Name of the file in the home.
pub const FILE: &str = "runs.json";

/// Maximum bytes of the file. A thousand runs have less than 1 MB.
const MOST: u64 = 256 << 20;

/// Files that changed so shortly before a call are not remembered: the next change could have the same
/// time.
const SETTLED: Duration = Duration::from_secs(2);

/// Ended runs and verdicts as they were read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Remembered {
    /// The program that wrote this; another one may read the same files differently.
    program: Option<Program>,
    /// By path below the folder of runs.
    runs: HashMap<String, Run>,
    verdicts: Option<(Stamp, Verdicts)>,
    /// Files that changed later are not remembered.
    #[serde(skip)]
    settled: Option<SystemTime>,
    #[serde(skip)]
    is_changed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Run {
    /// What the rest depends on, by path below the run's folder. `None` is a file that did not exist.
    watched: Vec<(String, Option<Stamp>)>,
    identity: Identity,
    written: SystemTime,
    summary: Summary,
}

impl Remembered {
    /// What is remembered in a home, for a call that began at this time; nothing if another program
    /// wrote it.
    pub fn of(home: &Path, began: SystemTime) -> Self {
        let program = Some(Program::current());
        let settled = began.checked_sub(SETTLED);
        let read = || {
            let mut bytes = Vec::new();
            untrusted::open(&home.join(FILE)).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
            serde_json::from_slice::<Self>(&bytes).ok()
        };
        match read().filter(|remembered| remembered.program == program) {
            Some(remembered) => Self { settled, ..remembered },
            None => Self { program, settled, ..Self::default() },
        }
    }

    /// The run of a folder; `None` if it is not remembered or has changed.
    pub(super) fn unchanged(&self, below: &str, folder: &Path) -> Option<(Identity, SystemTime, Summary)> {
        let Run { watched, identity, written, summary } = self.runs.get(below)?;
        let is_same = |(path, stamp): &(String, Option<Stamp>)| Stamp::of(&folder.join(path)) == *stamp;
        watched.iter().all(is_same).then(|| (identity.clone(), *written, summary.clone()))
    }

    /// The verdicts of a ledger.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn verdicts(&mut self, ledger: &Path) -> io::Result<Verdicts> {
        let stamp = Stamp::of(ledger);
        if let Some((of, verdicts)) = &self.verdicts
            && Some(*of) == stamp
        {
            return Ok(verdicts.clone());
        }
        let verdicts = Verdicts::read(ledger)?;
        if let Some(stamp) = stamp.filter(|stamp| self.is_settled(*stamp)) {
            self.verdicts = Some((stamp, verdicts.clone()));
            self.is_changed = true;
        }
        Ok(verdicts)
    }

    /// Takes over the runs that have ended, and forgets those that are gone. `all` are the runs of the
    /// home, `read` those of which there is a summary.
    pub fn update(&mut self, all: &[Found], read: &[(&Found, &Summary)]) {
        let is_fresh =
            |(found, summary): &&(&Found, &Summary)| found.remembered.is_none() && summary.state.is_final();
        let fresh = read.par_iter().filter(is_fresh).filter_map(|(found, summary)| self.run(found, summary));
        let fresh: Vec<(String, Run)> = fresh.collect();
        let kept = all.iter().filter(|found| found.remembered.is_some());
        let kept: HashMap<String, Run> =
            kept.filter_map(|found| self.runs.remove_entry(&found.below())).collect();
        // What is left is gone or has changed.
        self.is_changed |= !self.runs.is_empty() || !fresh.is_empty();
        self.runs = kept;
        self.runs.extend(fresh);
    }

    /// Writes what has changed to a home that exists. What cannot be kept is read again the next time.
    pub fn keep(&self, home: &Path) {
        if !self.is_changed || !home.is_dir() {
            return;
        }
        if let Ok(bytes) = serde_json::to_vec(self) {
            write_whole(&home.join(FILE), &bytes).ok();
        }
    }

    fn is_settled(&self, stamp: Stamp) -> bool {
        self.settled.is_some_and(|settled| stamp.is_before(settled))
    }

    /// `None` if the run is not as it was read, changed a moment ago, or cannot be written down.
    fn run(&self, found: &Found, summary: &Summary) -> Option<(String, Run)> {
        let identity = found.identity.clone()?;
        found.written.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let folders = folders_and_evaluations(&found.folder, summary)?;
        let folders = folders.iter().map(|path| path.to_str()).collect::<Option<Vec<&str>>>()?;
        let files = TRAINING.into_iter().chain(["recipe.toml"]).chain(folders);
        let watched: Vec<(String, Option<Stamp>)> =
            files.map(|path| (path.to_owned(), Stamp::of(&found.folder.join(path)))).collect();
        let is_settled = watched.iter().all(|(_, stamp)| stamp.is_none_or(|stamp| self.is_settled(stamp)));
        let run = Run { watched, identity, written: found.written, summary: summary.clone() };
        is_settled.then(|| (found.below(), run))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::json;

    use super::super::found::all_with;
    use super::super::found::tests::made;
    use super::super::summary::State;
    use super::*;

    /// Summaries of the runs of a home, in a call that began `after` now.
    fn listed(home: &Path, after: Duration) -> Vec<Summary> {
        let mut remembered = Remembered::of(home, SystemTime::now() + after);
        let found = all_with(&home.join("runs"), &remembered);
        let summaries: Vec<Summary> = found.iter().map(Summary::of).collect();
        let read: Vec<(&Found, &Summary)> = found.iter().zip(&summaries).collect();
        remembered.update(&found, &read);
        remembered.keep(home);
        summaries
    }

    fn kept(home: &Path) -> Option<String> {
        fs::read_to_string(home.join(FILE)).ok()
    }

    /// Replaces a text in what is kept.
    fn falsified(home: &Path, old: &str, new: &str) {
        let text = kept(home).unwrap();
        assert!(text.contains(old), "{text}");
        fs::write(home.join(FILE), text.replace(old, new)).unwrap();
    }

    const LATER: Duration = Duration::from_secs(60);
    const EVALUATION: &str = r#"{"eval":"test","decode":"beam","scores":[{"metric":"bleu","value":1.0}]}"#;

    /// Makes a run that has ended and was evaluated.
    fn evaluated(home: &Path) -> PathBuf {
        let folder = made(&home.join("runs"), "toy", "fp32", 1, "aaa", 10);
        let trained = json!({ "ending": { "kind": "max-epochs" }, "updates": 7, "seconds": 1.5 });
        fs::write(folder.join("trained.json"), trained.to_string()).unwrap();
        fs::create_dir(folder.join("eval")).unwrap();
        fs::write(folder.join("eval/test.beam.json"), EVALUATION).unwrap();
        folder
    }

    #[test]
    fn a_run_that_has_ended_is_read_once_until_one_of_its_files_changes() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let folder = evaluated(home);
        listed(home, Duration::ZERO);
        assert_eq!(kept(home), None, "the files are too new");
        for (what, path, text) in [
            ("a file was added", "eval/dev.beam.json", EVALUATION),
            ("a file was made", "log.jsonl", ""),
            ("a file has grown", "log.jsonl", "{}"),
            ("an evaluation has changed", "eval/test.beam.json", &EVALUATION.replace("1.0", "2.0")),
            ("the recipe was edited", "recipe.toml", "[train]\n"),
        ] {
            assert_eq!(listed(home, LATER)[0].updates, 7);
            falsified(home, "\"updates\":7", "\"updates\":99");
            assert_eq!(listed(home, LATER)[0].updates, 99, "it is not read again");
            fs::write(folder.join(path), text).unwrap();
            assert_eq!(listed(home, LATER)[0].updates, 7, "{what}");
        }
        fs::write(home.join(FILE), "{").unwrap();
        assert_eq!(listed(home, LATER)[0].state, State::Evaluated);
        falsified(home, &Program::current().commit, "another");
        falsified(home, "\"updates\":7", "\"updates\":99");
        assert_eq!(listed(home, LATER)[0].updates, 7, "another program wrote it");
        fs::remove_dir_all(folder).unwrap();
        assert!(listed(home, LATER).is_empty());
        assert!(Remembered::of(home, SystemTime::now()).runs.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_copy_that_sets_the_times_of_folders_back_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let eval = evaluated(home).join("eval");
        let bytes = listed(home, LATER)[0].bytes;
        let written = fs::metadata(&eval).unwrap().modified().unwrap();
        fs::write(eval.join("hypotheses.txt"), "text").unwrap();
        fs::File::open(&eval).unwrap().set_modified(written).unwrap();
        assert_eq!(listed(home, LATER)[0].bytes, bytes + 4);
    }

    #[test]
    fn only_runs_that_ended_and_could_be_read_are_remembered() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let folder = made(&home.join("runs"), "toy", "fp32", 1, "aaa", 10);
        listed(home, LATER);
        assert_eq!(kept(home), None, "the run has not ended");
        fs::remove_dir_all(folder).unwrap();
        let folder = evaluated(home);
        fs::write(folder.join("eval/test.beam.json"), "{}").unwrap();
        assert_eq!(listed(home, LATER)[0].state, State::Evaluated);
        assert_eq!(kept(home), None, "its score could not be read");
        let found = &super::super::found::all(&home.join("runs"))[0];
        let summary = Summary::of(found);
        fs::write(folder.join("eval/test.beam.json"), EVALUATION).unwrap();
        let remembered = Remembered::of(home, SystemTime::now() + LATER);
        assert!(remembered.run(found, &summary).is_none(), "it has changed since");
        assert!(remembered.run(found, &Summary::of(found)).is_some());
    }

    #[test]
    fn verdicts_are_read_again_when_the_ledger_has_grown() {
        let home = tempfile::tempdir().unwrap();
        let ledger = home.path().join("ledger.jsonl");
        let mut remembered = Remembered::of(home.path(), SystemTime::now() + LATER);
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
        let mut fresh = Remembered::of(home.path(), SystemTime::now());
        fresh.verdicts(&ledger).unwrap();
        assert!(!fresh.is_changed, "the ledger is too new");
    }
}
