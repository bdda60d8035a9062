//! The ledger under every kind of damage to its file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};
use zoo_results::ledger::{
    Entry, HypothesesFile, Judgement, Ledger, LedgerError, NoReferences, Record, Rescored, Rescorer, RunEnd,
    ScoreRecord, recheck,
};
use zoo_results::report::{Format, ledger_table, render};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Evidence, Interval, Outcome, Rules, RunScore};

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn record(seed: u64) -> Record {
    Record {
        time: "2026-01-31T23:59:59Z".into(),
        recipe: "reversal".into(),
        recipe_hash: "ab".repeat(32),
        arm: Some("fp32".into()),
        seeds: vec![seed],
        durations: [("train".to_owned(), 12.5)].into(),
        ..Record::default()
    }
}

fn three(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("ledger.jsonl");
    let ledger = Ledger::open(&path).unwrap();
    for seed in 1..=3 {
        assert_eq!(ledger.append(&record(seed)).unwrap().sequence, seed - 1);
    }
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

#[test]
fn what_was_added_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = three(folder.path());
    let ledger = Ledger::open(&path).unwrap();
    let entries = ledger.entries().unwrap();
    assert_eq!(
        entries.iter().map(|e| e.record.clone()).collect::<Vec<_>>(),
        (1..=3).map(record).collect::<Vec<_>>()
    );
    assert_eq!(ledger.verify(None).unwrap(), (3, entries[2].hash.clone()));
    assert_eq!(ledger.find("1").unwrap().as_ref(), Some(&entries[1]));
    assert_eq!(ledger.find(&entries[2].hash[..12]).unwrap().as_ref(), Some(&entries[2]));
    assert_eq!(ledger.find("7").unwrap(), None);
    let before = ledger.digests().unwrap();
    ledger.append(&Record { recipe: "toy".into(), ..record(9) }).unwrap();
    let after = ledger.digests().unwrap();
    assert_eq!((before.len(), after.len(), &before["reversal"]), (1, 2, &after["reversal"]));
    assert_eq!(ledger.entries_of("reversal").unwrap(), entries);
    assert_eq!(ledger.entries_of("toy").unwrap()[0].record.seeds, [9]);
    assert_eq!(ledger.entries_of("to").unwrap(), []);
    let cut = fs::read(&path).unwrap();
    fs::write(&path, cut.strip_suffix(b"\n").unwrap()).unwrap();
    assert_eq!(ledger.entries_of("toy").unwrap().len(), 1, "only the newline is missing");
    // Appending leaves the existing content unchanged.
    ledger.append(&record(4)).unwrap();
    assert!(fs::read(&path).unwrap().starts_with(&bytes));
    let none = Ledger::open(folder.path().join("none.jsonl")).unwrap();
    assert!(none.entries().unwrap().is_empty() && none.entries_of("toy").unwrap().is_empty());
    assert_eq!(none.digests().unwrap().len(), 0);
    let more = ledger.digests().unwrap();
    assert_eq!(more["toy"], after["toy"]);
    assert_ne!(more["reversal"], after["reversal"]);
}

#[test]
fn every_flipped_byte_is_found_on_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = three(folder.path());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let line = 1 + bytes[..at].iter().filter(|b| **b == b'\n').count();
        match Ledger::at(&path).verify(None) {
            Err(LedgerError::Damaged { line: found, .. } | LedgerError::Torn { line: found, .. }) => {
                assert_eq!(found, line, "byte {at}");
            }
            other => panic!("byte {at} of line {line}: {other:?}"),
        }
        // Lines of other recipes are checked, too.
        let of_another = Ledger::at(&path).entries_of("toy");
        assert!(of_another.is_err(), "byte {at} of line {line}: {of_another:?}");
        assert_eq!(Ledger::at(&path).digests(), None, "byte {at}");
    }
}

#[test]
fn the_edited_field_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = three(folder.path());
    let text = String::from_utf8(bytes).unwrap();
    for (old, new, field) in [
        ("\"seeds\":[2]", "\"seeds\":[9]", "seeds"),
        ("\"recipe\":\"reversal\"", "\"recipe\":\"inversal\"", "recipe"),
        ("\"train\":12.5", "\"train\":10.5", "durations"),
        ("\"arm\":\"fp32\"", "\"arm\":null", "arm"),
        ("\"dirty\":false,", "", "dirty"),
        ("\"sequence\":1", "\"sequence\":5", "sequence"),
    ] {
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(i, l)| if i == 1 { l.replacen(old, new, 1) } else { l.to_owned() })
            .collect();
        assert_ne!(lines.join("\n") + "\n", text, "{old} is not there");
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let error = Ledger::at(&path).verify(None).unwrap_err();
        let LedgerError::Damaged { line: 2, field: Some(found), .. } = &error else { panic!("{error:?}") };
        assert_eq!(found, field);
        assert!(error.to_string().contains(":2: ") && error.to_string().contains("hint:"), "{error}");
    }
}

#[test]
fn removed_moved_doubled_and_cut_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = three(folder.path());
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let ledger = Ledger::at(&path);
    for (order, at) in [(vec![1, 2], 1), (vec![0, 2], 2), (vec![0, 2, 1], 2), (vec![0, 0, 1, 2], 2)] {
        fs::write(&path, order.iter().map(|i| format!("{}\n", lines[*i])).collect::<String>()).unwrap();
        let error = ledger.verify(None).unwrap_err();
        let LedgerError::Damaged { line, field, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*line, field.as_deref()), (at, Some("sequence")), "{order:?}: {error}");
        assert!(ledger.entries_of("toy").is_err(), "{order:?}");
    }
    // Removing lines from the end leaves a valid chain. Only the hash in the README reveals it.
    let head = Ledger::at(&path);
    fs::write(&path, &text).unwrap();
    let (_, last) = head.verify(None).unwrap();
    fs::write(&path, format!("{}\n{}\n", lines[0], lines[1])).unwrap();
    assert_eq!(ledger.verify(None).unwrap().0, 2);
    assert!(matches!(ledger.verify(Some(&last)), Err(LedgerError::OtherHead { .. })));
    // A line that was being written when the machine stopped.
    fs::write(&path, &text[..text.len() - 40]).unwrap();
    let error = ledger.verify(None).unwrap_err();
    let LedgerError::Torn { line: 3, whole, .. } = error else { panic!("{error:?}") };
    assert!(ledger.entries_of("toy").is_err(), "a torn ledger was read");
    assert!(ledger.append(&record(4)).is_err(), "a torn ledger was added to");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(whole).unwrap();
    assert_eq!(ledger.append(&record(3)).unwrap().sequence, 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_missing_last_newline_costs_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = three(folder.path());
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let ledger = Ledger::at(&path);
    let entries = ledger.entries().unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(ledger.line(&entries[2]).unwrap() + "\n", last_line(&bytes));
    assert_eq!(ledger.append(&record(4)).unwrap().sequence, 3);
    assert!(fs::read(&path).unwrap().starts_with(&bytes));
    assert_eq!(ledger.verify(None).unwrap().0, 4);
}

fn last_line(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    text.split_inclusive('\n').next_back().unwrap().to_owned()
}

/// A limit on the file size stands in for a full disk. It applies to a whole process, so this test
/// runs itself under a shell.
#[cfg(unix)]
#[test]
fn a_line_that_the_disk_has_no_room_for_is_taken_back() {
    const LEDGER: &str = "ZOO_TEST_FULL_LEDGER";
    if let Ok(path) = std::env::var(LEDGER) {
        let error = Ledger::at(path).append(&record(4)).unwrap_err().to_string();
        assert!(error.contains("hint: free some space"), "{error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let ledger = Ledger::at(&path);
    // `ulimit -f` counts blocks of 512 bytes. The space left after the last line is less than a
    // line.
    let limit = 4096;
    let with_note = |bytes: usize| Record { notes: vec!["x".repeat(bytes)], ..record(1) };
    ledger.append(&with_note(0)).unwrap();
    let length = fs::metadata(&path).unwrap().len() as usize;
    fs::remove_file(&path).unwrap();
    ledger.append(&with_note(limit - length - 200)).unwrap();
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len(), limit - 200);
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$1\" --exact \"$2\"", limit / 512);
    let name = "ledger::a_line_that_the_disk_has_no_room_for_is_taken_back";
    let ended = std::process::Command::new("/bin/sh")
        .args(["-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(LEDGER, &path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    // A test of another name would pass without having run.
    assert!(ended.status.success() && told.contains("1 passed"), "{told}");
    assert_eq!(fs::read(&path).unwrap(), whole, "half a line was left");
    assert_eq!(ledger.append(&record(4)).unwrap().sequence, 1);
}

#[test]
fn a_line_with_a_new_hash_breaks_the_chain_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = three(folder.path());
    let text = String::from_utf8(bytes).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (sealed, _) = lines[1].rsplit_once(",\"hash\":\"").unwrap();
    let forged = sealed.replace("\"seeds\":[2]", "\"seeds\":[9]");
    lines[1] = format!("{forged},\"hash\":\"{}\"}}", hash(forged.as_bytes()));
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = Ledger::at(&path).verify(None).unwrap_err();
    let LedgerError::Damaged { line: 3, field: Some(field), .. } = &error else { panic!("{error:?}") };
    assert_eq!(field, "previous");
}

#[test]
fn writers_at_the_same_time_keep_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/ledger.jsonl");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let ledger = Ledger::open(path).unwrap();
                for i in 0..5 {
                    ledger.append(&record(10 * writer + i)).unwrap();
                }
            });
        }
    });
    let mut seeds: Vec<u64> =
        Ledger::open(&path).unwrap().entries().unwrap().iter().map(|e| e.record.seeds[0]).collect();
    seeds.sort_unstable();
    assert_eq!(seeds, (0..4).flat_map(|w| (0..5).map(move |i| 10 * w + i)).collect::<Vec<_>>());
}

/// Share of lines that equal the reference's, in percent: a metric for this test only.
struct ExactLines;

impl ExactLines {
    fn value(hypotheses: &[String], references: &[String]) -> f64 {
        let equal = hypotheses.iter().zip(references).filter(|(h, r)| h == r).count();
        100.0 * equal as f64 / references.len() as f64
    }
}

impl Rescorer for ExactLines {
    fn references(&mut self, _: &Record, eval: &str) -> Result<Vec<String>, NoReferences> {
        if eval != "test" {
            return Err(NoReferences::Absent(format!("no set {eval}")));
        }
        Ok((0..10).map(|i| format!("line {i}")).collect())
    }

    fn needs_no_references(&self, score: &ScoreRecord) -> bool {
        score.metric == "not-wrong"
    }

    fn score(
        &mut self,
        score: &ScoreRecord,
        hypotheses: &[String],
        references: &[String],
    ) -> Result<Rescored, String> {
        if score.metric == "not-wrong" {
            let right = hypotheses.iter().filter(|line| *line != "wrong").count();
            let value = 100.0 * right as f64 / references.len() as f64;
            return Ok(Rescored { value, ..Rescored::default() });
        }
        Ok(Rescored { value: Self::value(hypotheses, references), ..Rescored::default() })
    }

    fn difference(
        &mut self,
        _: &ScoreRecord,
        ours: &[String],
        baseline: &[String],
        references: &[String],
        level: f64,
    ) -> Result<Interval, String> {
        let difference = Self::value(ours, references) - Self::value(baseline, references);
        Ok(Interval { low: difference - 1.0, high: difference + 1.0, level })
    }
}

/// A judged pair of arms with kept hypotheses: nine of ten lines are right in both.
fn judged(folder: &Path) -> Record {
    let claim = |kind: &str| {
        serde_json::from_value(json!({"kind": kind, "metric": "accuracy", "value": 90.0, "margin": 5.0,
            "assumed_sigma": 1.0, "source": kind}))
        .unwrap()
    };
    let mut scores = Vec::new();
    let mut run = |arm: &str, wrong: usize| {
        let line = |i| if i == wrong { "wrong\n".to_owned() } else { format!("line {i}\n") };
        let text: String = (0..10).map(line).collect();
        let path = format!("{arm}/1.txt");
        fs::create_dir_all(folder.join(arm)).unwrap();
        fs::write(folder.join(&path), &text).unwrap();
        let sha256 = hash(text.as_bytes());
        scores.push(ScoreRecord {
            eval: "test".into(),
            arm: arm.into(),
            seed: 1,
            metric: "accuracy".into(),
            value: 90.0,
            hypotheses: Some(HypothesesFile { path, sha256: sha256.clone() }),
            ..ScoreRecord::default()
        });
        RunScore { hypotheses: Some(sha256), ..RunScore::scored(1, 90.0) }
    };
    let (fp32, mut mixed) = (run("fp32", 3), run("mixed", 7));
    let plan = LookPlan::fixed(1);
    let (of_fp32, of_mixed) = (Some("fp32".to_owned()), Some("mixed".to_owned()));
    let value = Evidence {
        rules: Rules::First,
        arm: of_fp32.clone(),
        runs: vec![fp32.clone()],
        plan: plan.clone(),
        ..Evidence::default()
    };
    mixed.difference = Some(Interval { low: -1.0, high: 1.0, level: 0.9 });
    let parity = Evidence {
        rules: Rules::First,
        arm: of_mixed,
        baseline: of_fp32,
        runs: vec![mixed],
        baseline_runs: vec![fp32],
        plan,
        ..Evidence::default()
    };
    let judgements = vec![Judgement::of(claim("value"), value), Judgement::of(claim("parity"), parity)];
    assert!(judgements.iter().all(|j| j.verdict.outcome == Outcome::Reproduced), "{judgements:?}");
    Record { arm: None, scores, judgements, ..record(1) }
}

fn entries(folder: &Path, record: &Record) -> Vec<Entry> {
    let path = folder.join("recheck.jsonl");
    let _ = fs::remove_file(&path);
    let ledger = Ledger::open(&path).unwrap();
    ledger.append(record).unwrap();
    ledger.entries().unwrap()
}

#[test]
fn recheck_agrees_with_what_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let entries = entries(folder.path(), &judged(folder.path()));
    let report = recheck(&entries, &folder.path().to_owned(), &mut ExactLines);
    assert_eq!(report.disagreements, vec![]);
    assert_eq!((report.scores, report.verdicts, report.taken_from_record), (2, 2, 0));
    let table = ledger_table(&entries).render(Format::Csv);
    assert!(table.contains("REPRODUCED, REPRODUCED"), "{table}");
    let readme = render(&[], &entries).results;
    assert!(
        readme.contains("| value accuracy |") && readme.contains("Runs of reversal: 1 finished"),
        "{readme}"
    );
    assert!(readme.contains(&entries[0].hash));
}

#[test]
fn recheck_names_what_does_not_agree() {
    let folder = tempfile::tempdir().unwrap();
    let good = judged(folder.path());
    let found = |record: &Record| {
        let report = recheck(&entries(folder.path(), record), &folder.path().to_owned(), &mut ExactLines);
        report.disagreements.iter().map(|d| format!("{}: {}", d.what, d.how)).collect::<Vec<_>>().join("\n")
    };
    let mut score = good.clone();
    score.scores[1].value = 91.0;
    assert!(found(&score).contains("mixed seed 1: recorded 91, derived 90"), "{}", found(&score));
    let mut verdict = good.clone();
    verdict.judgements[0].verdict.outcome = Outcome::NotReproduced;
    assert!(found(&verdict).contains("recorded NOT REPRODUCED, derived REPRODUCED"));
    // A score raised in the evidence and in its verdict: the hypotheses contradict it.
    let mut raised = good.clone();
    raised.judgements[0].evidence.runs[0].score = Some(95.0);
    raised.judgements[0] = {
        let j = &raised.judgements[0];
        Judgement::of(j.claim.clone(), j.evidence.clone())
    };
    assert!(found(&raised).contains("measured: recorded 95, derived 90"), "{}", found(&raised));
    let mut outside = good.clone();
    outside.scores[0].hypotheses.as_mut().unwrap().path = "../fp32/1.txt".into();
    assert!(found(&outside).contains("leads out of the folder"));
    let mut other = good.clone();
    other.scores[0].eval = "valid".into();
    assert!(found(&other).contains("no set valid"));
    fs::write(folder.path().join("fp32/1.txt"), "tampered\n").unwrap();
    assert!(found(&good).contains("fp32/1.txt is not the file that was scored"));
    fs::remove_file(folder.path().join("fp32/1.txt")).unwrap();
    assert!(found(&good).contains("fp32/1.txt: "));
}

#[test]
fn what_needs_no_references_is_derived_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = judged(folder.path());
    for score in &mut record.scores {
        (score.eval, score.metric) = ("valid".into(), "not-wrong".into());
    }
    let again = |record: &Record| {
        recheck(&entries(folder.path(), record), &folder.path().to_owned(), &mut ExactLines)
    };
    let report = again(&record);
    assert_eq!((report.scores, report.disagreements.len()), (2, 0), "{:?}", report.disagreements);
    record.scores[1].value = 91.0;
    let wrong = again(&record).disagreements;
    assert!(wrong.len() == 1 && !wrong[0].unseen && wrong[0].how.contains("derived 90"), "{wrong:?}");
    // Absent references do not hide a change of a kept file.
    record.scores[1].metric = "accuracy".into();
    assert!(again(&record).disagreements.iter().all(|one| one.unseen));
    fs::write(folder.path().join("mixed/1.txt"), "tampered\n").unwrap();
    assert!(
        again(&record).disagreements.iter().any(|one| !one.unseen && one.how.contains("is not the file"))
    );
}

#[test]
fn external_scores_are_judged_from_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let claim =
        serde_json::from_value(json!({"kind": "value", "metric": "bleu", "value": 27.5, "margin": 0.5,
        "assumed_sigma": 0.2, "source": "somewhere"}))
        .unwrap();
    let runs = vec![RunScore::external(27.1), RunScore::external(27.4)];
    let evidence = Evidence { runs, plan: LookPlan::fixed(2), external: true, ..Evidence::default() };
    let record =
        Record { end: RunEnd::External, judgements: vec![Judgement::of(claim, evidence)], ..record(1) };
    let report = recheck(&entries(folder.path(), &record), &folder.path().to_owned(), &mut ExactLines);
    assert_eq!((report.verdicts, report.taken_from_record, report.disagreements.len()), (1, 2, 0));
}
