//! `zoo ledger` and `zoo report`.

use sha2::{Digest, Sha256};

use crate::binary::{Zoo, in_root, root};

fn with_entries() -> Zoo {
    let zoo = Zoo::new();
    for scores in ["27.1,27.4", "20.0", "27.5,27.6,27.4"] {
        zoo.run(&["judge", "transformer-big", "--scores", scores, "--record"]);
    }
    zoo
}

#[test]
fn a_whole_ledger_verifies_lists_and_shows() {
    let zoo = with_entries();
    let verified = zoo.ends_with(0, &["ledger", "verify", "--format", "json"]).json();
    assert_eq!(verified["records"], 3);
    let head = verified["head"].as_str().unwrap();
    zoo.ends_with(0, &["ledger", "verify", "--head", head]);
    let rows = zoo
        .ends_with(0, &["ledger", "list", "--recipe", "transformer-big", "--format", "json"])
        .part("records");
    assert_eq!(rows.as_array().unwrap().len(), 3);
    assert!(
        zoo.ends_with(0, &["ledger", "list", "--recipe", "none", "--format", "json"])
            .part("records")
            .as_array()
            .unwrap()
            .is_empty()
    );
    let shown = zoo.ends_with(0, &["ledger", "show", "1"]).stdout;
    assert!(shown.contains("NOT REPRODUCED  claim 1"), "{shown}");
    assert!(shown.contains("external"), "{shown}");
    zoo.ends_with(2, &["ledger", "show", "7"]).says("there is no entry 7");
    let again = zoo.ends_with(0, &["ledger", "recheck", "--format", "json"]).json();
    assert_eq!(again["disagreements"], serde_json::json!([]));
    assert!(again["verdicts"].as_u64().unwrap() >= 9, "{again}");
}

#[test]
fn verdicts_scores_and_claims_become_tables_in_files() {
    let zoo = with_entries();
    let verdicts = zoo.ends_with(0, &["ledger", "export", "--format", "json"]).part("verdicts");
    let verdicts = verdicts.as_array().unwrap();
    let of_first = |row: &&serde_json::Value| row["record"] == 0 && row["verdict"] != "NOT-RUN";
    let first = verdicts.iter().find(of_first).unwrap();
    assert_eq!(
        [&first["recipe"], &first["kind"], &first["metric"], &first["seeds"], &first["external"]],
        [&"transformer-big".into(), &"value".into(), &"bleu".into(), &2.into(), &true.into()]
            as [&serde_json::Value; 5]
    );
    assert_eq!(first["measured"], 27.25);
    let scores =
        zoo.ends_with(0, &["ledger", "export", "--rows", "scores", "--format", "json"]).part("scores");
    let values: Vec<f64> =
        scores.as_array().unwrap().iter().map(|row| row["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [27.1, 27.4, 20.0, 27.5, 27.6, 27.4]);

    // The ending of the file chooses the format, and all of them have the same rows.
    let export = ["ledger", "export", "--rows", "scores", "-o"];
    let file = |name: &'static str| [&export[..], &[name]].concat();
    let noted = zoo.ends_with(0, &file("scores.csv")).stderr;
    assert!(noted.contains("6 scores of 3 records"), "{noted}");
    let read = |name: &str| std::fs::read(zoo.home().join(name)).unwrap();
    let csv = String::from_utf8(read("scores.csv")).unwrap();
    assert_eq!(csv.lines().count(), 7, "{csv}");
    assert!(csv.lines().nth(1).unwrap().contains(",27.1,"), "{csv}");
    zoo.ends_with(0, &file("scores.json"));
    let json: serde_json::Value = serde_json::from_slice(&read("scores.json")).unwrap();
    assert_eq!(json["scores"], scores);
    zoo.ends_with(0, &file("scores.parquet"));
    let parquet = read("scores.parquet");
    assert_eq!((&parquet[..4], &parquet[parquet.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    let ended = zoo.ends_with(2, &file("scores.parquet"));
    ended.says("scores.parquet is there already");
    assert_eq!(read("scores.parquet"), parquet);
    zoo.ends_with(2, &file("scores.xls")).says("does not end in .csv, .json or .parquet");
    let none = ["ledger", "export", "--recipe", "none", "--format", "json"];
    assert_eq!(zoo.ends_with(0, &none).part("verdicts"), serde_json::json!([]));

    // The claims of the catalog have the last verdict of each.
    let claims =
        zoo.ends_with(0, &["list", "--claims", "--tag", "transformer", "--format", "json"]).part("claims");
    let judged = claims.as_array().unwrap().iter().find(|row| row["recipe"] == "transformer-big").unwrap();
    assert_eq!((&judged["claim"], &judged["kind"]), (&1.into(), &"value".into()));
    zoo.ends_with(0, &["list", "--claims", "--tag", "transformer", "-o", "claims.csv"]);
    let rows = String::from_utf8(read("claims.csv")).unwrap().lines().count();
    assert_eq!(rows, claims.as_array().unwrap().len() + 1);
}

#[test]
fn every_kind_of_tampering_is_named() {
    let zoo = with_entries();
    let path = zoo.home().join("ledger.jsonl");
    let whole = std::fs::read(&path).unwrap();
    let head = zoo.ends_with(0, &["ledger", "verify", "--format", "json"]).json()["head"]
        .as_str()
        .unwrap()
        .to_owned();
    // A flipped byte in each line.
    let mut line_start = 0;
    for number in 1..=3 {
        let line_end = line_start + whole[line_start..].iter().position(|byte| *byte == b'\n').unwrap();
        let mut flipped = whole.clone();
        flipped[(line_start + line_end) / 2] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let ended = zoo.ends_with(7, &["ledger", "verify"]);
        assert!(ended.stderr.contains(&format!("ledger.jsonl:{number}: ")), "{}", ended.stderr);
        // A damaged ledger is not extended.
        zoo.ends_with(7, &["judge", "transformer-big", "--scores", "27.5", "--record"]);
        assert_eq!(std::fs::read(&path).unwrap(), flipped);
        line_start = line_end + 1;
    }
    // A removed line, exchanged lines, and a truncated end.
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for damaged in [[lines[0], lines[2]].concat(), [lines[1], lines[0], lines[2]].concat()] {
        std::fs::write(&path, damaged).unwrap();
        zoo.ends_with(7, &["ledger", "verify"]);
    }
    std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    zoo.ends_with(7, &["ledger", "verify"]).says("cut off");
    std::fs::write(&path, [lines[0], lines[1]].concat()).unwrap();
    zoo.ends_with(0, &["ledger", "verify"]);
    zoo.ends_with(7, &["ledger", "verify", "--head", &head]).says("the last record is");
    // `list` still works, and reports that it ignores the ledger.
    std::fs::write(&path, &whole[..10]).unwrap();
    assert!(zoo.ends_with(0, &["list"]).stderr.contains("left aside"));
}

/// Recomputes the hash chain of edited lines, as a forger could.
fn chained_anew(text: &str) -> String {
    let mut previous = "0".repeat(64);
    let mut forged = String::new();
    for line in text.lines() {
        let (sealed, _) = line.rsplit_once(",\"hash\":\"").unwrap();
        let at = sealed.find("\"previous\":\"").unwrap() + "\"previous\":\"".len();
        let sealed = format!("{}{previous}{}", &sealed[..at], &sealed[at + 64..]);
        previous = hex::encode(Sha256::digest(sealed.as_bytes()));
        forged.push_str(&format!("{sealed},\"hash\":\"{previous}\"}}\n"));
    }
    forged
}

#[test]
fn a_verdict_that_was_talked_up_is_caught_by_the_chain_or_by_the_recheck() {
    let zoo = with_entries();
    let path = zoo.home().join("ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(chained_anew(&text), text);
    let forged = text.replacen("NOT-REPRODUCED", "REPRODUCED", 1);
    assert_ne!(text, forged);
    std::fs::write(&path, &forged).unwrap();
    let ended = zoo.ends_with(7, &["ledger", "verify"]);
    ended.says("ledger.jsonl:2: ");
    assert!(ended.stderr.contains("`judgements`"), "{}", ended.stderr);
    std::fs::write(&path, chained_anew(&forged)).unwrap();
    zoo.ends_with(0, &["ledger", "verify"]);
    zoo.ends_with(7, &["ledger", "recheck"]).says("record 1: verdict");
}

#[test]
fn a_run_s_record_is_held_against_its_outputs_its_recipe_and_its_folder() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call);
    let head = outcome.json()["ledger_head"].as_str().unwrap().to_owned();
    assert!(outcome.stderr.contains(&format!("the ledger's last hash is {head}")), "{}", outcome.stderr);
    zoo.ends_with(0, &["ledger", "verify", "--head", &head]);
    zoo.ends_with(0, &["ledger", "recheck"]);
    let path = zoo.home().join("ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();

    // The chain contains a record with the given hash, or it does not.
    zoo.ends_with(0, &["ledger", "verify", "--holds", &head[..12]]);
    zoo.ends_with(7, &["ledger", "verify", "--holds", &"ab".repeat(32)]).says("has the hash abab");
    zoo.ends_with(2, &["ledger", "verify", "--holds", "ab"]).says("less than 12 digits");

    // Edits of the record with a recomputed chain.
    let changed = |change: &dyn Fn(&mut serde_json::Value)| -> String {
        let edited = text.lines().map(|line| {
            let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
            if record["end"] == "finished" {
                change(&mut record);
            }
            let hash = record.as_object_mut().unwrap().remove("hash").unwrap();
            let mut line = record.to_string();
            line.pop();
            format!("{line},\"hash\":{hash}}}\n")
        });
        chained_anew(&edited.collect::<String>())
    };
    assert_eq!(changed(&|_| ()), text);
    // References that equal the hypotheses, stored like the references of a user's recipe.
    let run = std::path::PathBuf::from(outcome.json()["runs"][0]["folder"].as_str().unwrap());
    let hypotheses = std::fs::read(run.join("eval/test.beam5.hyp.txt")).unwrap();
    let digest: String = hex::encode(Sha256::digest(&hypotheses));
    zoo.file(&format!("hypotheses/external/{digest}.txt"), std::str::from_utf8(&hypotheses).unwrap());
    type Change = fn(&mut serde_json::Value);
    let edits: [(&str, Change, &str, bool); 5] = [
        (
            "references of its own",
            |record| {
                record["data"]["references.test"] = record["scores"][0]["hypotheses"]["sha256"].clone();
                record["scores"][0]["value"] = 100.0.into();
            },
            "the references of test are not those of the record",
            false,
        ),
        (
            "no hypotheses",
            |record| {
                record["scores"][0].as_object_mut().unwrap().remove("hypotheses");
            },
            "no outputs were kept: such a score is external",
            true,
        ),
        (
            "another name",
            |record| record["recipe"] = "reversal-rnn-rnn".into(),
            "its hash is that of reversal-transformer, the record names reversal-rnn-rnn",
            false,
        ),
        (
            "another claim",
            |record| record["judgements"][0]["claim"]["source"] = "a better paper".into(),
            "source: recorded",
            false,
        ),
        (
            "another digest of the log",
            |record| record["runs"][0]["files"]["log.jsonl"] = "00".into(),
            "log.jsonl has SHA-256",
            false,
        ),
    ];
    for (name, change, expected, contradicts_itself) in edits {
        std::fs::write(&path, changed(&change)).unwrap();
        let verified = zoo.run(&["ledger", "verify"]);
        assert_eq!(verified.code, if contradicts_itself { 7 } else { 0 }, "{name}: {}", verified.stderr);
        let ended = zoo.ends_with(7, &["ledger", "recheck"]);
        assert!(ended.stdout.contains(expected), "{name}: {}", ended.stdout);
        zoo.ends_with(7, &["ledger", "verify", "--head", &head]);
    }
    std::fs::write(&path, &text).unwrap();

    // Files of the run's folder, which are checked while the folder exists.
    for file in ["run.json", "recipe.toml", "trained.json", "log.jsonl", "eval/test.beam5.hyp.txt"] {
        let whole = std::fs::read_to_string(run.join(file)).unwrap();
        std::fs::write(run.join(file), format!("{whole} ")).unwrap();
        let ended = zoo.ends_with(7, &["ledger", "recheck"]);
        assert!(ended.stdout.contains(&format!("{file} has SHA-256")), "{file}: {}", ended.stdout);
        std::fs::write(run.join(file), whole).unwrap();
    }
    std::fs::remove_dir_all(&run).unwrap();
    zoo.ends_with(0, &["ledger", "recheck"]);
}

#[test]
fn tables_are_put_into_a_file_and_checked() {
    let zoo = with_entries();
    let readme = zoo.file("README.md", "# x\n<!-- results:begin -->\n<!-- results:end -->\nend\n");
    let readme = readme.to_str().unwrap();
    zoo.ends_with(9, &["report", "--into", readme, "--check"]).says("is not what the ledger says");
    zoo.ends_with(0, &["report", "--into", readme]);
    zoo.ends_with(0, &["report", "--into", readme, "--check"]);
    let text = std::fs::read_to_string(readme).unwrap();
    assert!(text.contains("| transformer-big |") && text.ends_with("<!-- results:end -->\nend\n"), "{text}");
    zoo.run(&["judge", "transformer-big", "--scores", "27.5", "--record"]);
    zoo.ends_with(9, &["report", "--into", readme, "--check"]);
    let bare = zoo.file("bare.md", "no markers\n");
    zoo.ends_with(9, &["report", "--into", bare.to_str().unwrap()]).says("no place for generated tables");
}

#[test]
fn the_projects_own_ledger_is_whole_and_its_table_fresh() {
    let zoo = Zoo::new();
    let ledger = in_root("results/data/ledger.jsonl");
    // Before the project's first run there is no ledger, and the table has no rows.
    if root().join("results/data/ledger.jsonl").exists() {
        let head = std::fs::read_to_string(root().join("results/data/ledger.head")).unwrap();
        zoo.ends_with(0, &["ledger", "verify", "--ledger", &ledger, "--head", head.trim()]);
    }
    for file in ["RESULTS.md", "README.md"] {
        zoo.ends_with(0, &["report", "--ledger", &ledger, "--into", &in_root(file), "--check"]);
    }
    zoo.ends_with(4, &["ledger", "verify", "--ledger", "none.jsonl"]).says("there is no ledger none.jsonl");
}
