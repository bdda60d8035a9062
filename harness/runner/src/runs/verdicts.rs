//! Recorded verdicts on the runs of a home, read from its ledger without checking its chain.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use rayon::prelude::*;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use zoo_recipes::Statement;
use zoo_results::verdict::Outcome;

use super::found::Found;

/// Maximum bytes that are read from the end of a ledger. 800 records have about 4 MB.
const MOST: u64 = 64 << 20;

/// What a record of runs has and other records lack.
const RUNS: &str = "\"runs\":[";

/// The verdict of the newest record that covers a run, on the first claim that it judged in the
/// run's arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub outcome: Outcome,
    /// Who makes the claim.
    pub statement: Statement,
    /// Training time in the record. It identifies the state of the run that was judged.
    seconds: Option<f64>,
}

/// The newest verdicts of a ledger, by the path of the run below the folder of runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Verdicts(HashMap<String, Recorded>);

/// The fields of a ledger's line that are read.
#[derive(Deserialize)]
struct Line {
    runs: Vec<OfRun>,
    #[serde(default)]
    durations: BTreeMap<String, f64>,
    #[serde(default)]
    judgements: Vec<Judged>,
}

#[derive(Deserialize)]
struct OfRun {
    arm: String,
    seed: u64,
    folder: String,
}

#[derive(Deserialize)]
struct Judged {
    evidence: OfArm,
    verdict: OfVerdict,
}

#[derive(Deserialize)]
struct OfArm {
    arm: Option<String>,
}

#[derive(Deserialize)]
struct OfVerdict {
    outcome: Outcome,
    arm: Option<String>,
    extends: Option<IgnoredAny>,
    own: Option<IgnoredAny>,
}

impl Judged {
    fn is_in(&self, arm: &str) -> bool {
        self.evidence.arm.as_deref().or(self.verdict.arm.as_deref()) == Some(arm)
    }
}

impl OfVerdict {
    fn statement(&self) -> Statement {
        match (&self.own, &self.extends) {
            (Some(_), _) => Statement::Own,
            (None, Some(_)) => Statement::Extended,
            (None, None) => Statement::Published,
        }
    }
}

impl Line {
    /// The verdict on each run of the record.
    fn verdicts(self) -> Vec<(String, Recorded)> {
        let Self { runs, durations, judgements } = self;
        let of = |OfRun { arm, seed, folder }| {
            let judged = judgements.iter().find(|judged| judged.is_in(&arm))?;
            let seconds = durations.get(&format!("train {arm} seed {seed}")).copied();
            let (outcome, statement) = (judged.verdict.outcome, judged.verdict.statement());
            Some((folder, Recorded { outcome, statement, seconds }))
        };
        runs.into_iter().filter_map(of).collect()
    }
}

impl Verdicts {
    /// The verdicts of a ledger; none if the file does not exist. Lines that cannot be read are
    /// skipped.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(ledger: &Path) -> io::Result<Self> {
        let bytes = match end_of(ledger) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            bytes => bytes?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(RUNS)).collect();
        let records: Vec<Option<Line>> =
            lines.par_iter().map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self(records.into_iter().flatten().flat_map(Line::verdicts).collect()))
    }

    /// The verdict on a run that was trained for this time. A run that was trained further has none
    /// until it is judged again.
    pub fn on(&self, found: &Found, seconds: Option<f64>) -> Option<Recorded> {
        let recorded = self.0.get(&found.below())?;
        (recorded.seconds.is_some() && recorded.seconds == seconds).then_some(*recorded)
    }
}

/// The last bytes of a file.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut bytes = Vec::with_capacity(length.min(MOST) as usize + 1);
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use zoo_results::ledger::{Ledger, Record, RunRecord};

    use super::super::found::all;
    use super::super::found::tests::made;
    use super::*;

    fn record(folder: &str, seconds: f64, judgements: Value) -> String {
        let record = Record {
            runs: vec![RunRecord {
                arm: "fp32".into(),
                seed: 1,
                folder: folder.into(),
                ..RunRecord::default()
            }],
            durations: BTreeMap::from([("train fp32 seed 1".to_owned(), seconds)]),
            ..Record::default()
        };
        let mut record = serde_json::to_value(record).unwrap();
        record["judgements"] = judgements;
        format!("{record}\n")
    }

    fn judged(arm: &str, outcome: &str, key: &str) -> Value {
        json!({ "claim": {}, "evidence": { "arm": arm }, "verdict": { "outcome": outcome, "arm": "any", key: "why" } })
    }

    #[test]
    fn the_newest_record_decides_with_its_first_claim_of_the_arm() {
        let home = tempfile::tempdir().unwrap();
        let folder = made(home.path(), "toy", "fp32", 1, "aaa", 10);
        let found = &all(home.path())[0];
        let below = found.below();
        assert!(folder.ends_with(&below));
        let ledger = home.path().join("ledger.jsonl");
        assert_eq!(Verdicts::read(&ledger).unwrap().on(found, Some(1.5)), None);
        let old = record(&below, 1.5, json!([judged("fp32", "NOT-REPRODUCED", "note")]));
        let new = record(
            &below,
            1.5,
            json!([judged("mixed", "NOT-RUN", "own"), judged("fp32", "REPRODUCED", "extends")]),
        );
        let other = record("toy/fp32-seed1-bbb", 1.5, json!([judged("fp32", "NOT-RUN", "own")]));
        std::fs::write(&ledger, format!("{old}{new}{other}{{\"torn")).unwrap();
        let verdicts = Verdicts::read(&ledger).unwrap();
        let recorded = verdicts.on(found, Some(1.5)).unwrap();
        assert_eq!((recorded.outcome, recorded.statement), (Outcome::Reproduced, Statement::Extended));
        // It was trained further, or has not ended.
        assert_eq!(verdicts.on(found, Some(2.5)), None);
        assert_eq!(verdicts.on(found, None), None);
    }

    #[test]
    fn the_lines_are_those_that_a_ledger_writes() {
        let home = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(home.path().join("ledger.jsonl"));
        let run = RunRecord { arm: "fp32".into(), seed: 1, folder: "toy/a".into(), ..RunRecord::default() };
        ledger.append(&Record { runs: vec![run], ..Record::default() }).unwrap();
        let text = std::fs::read_to_string(ledger.path()).unwrap();
        assert!(text.contains(RUNS), "{text}");
        assert!(serde_json::from_str::<Line>(&text).is_ok(), "{text}");
    }
}
