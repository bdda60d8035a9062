//! `zoo regress`: comparisons with recorded results, and reuse of runs.

use crate::binary::{Zoo, in_root};

/// A home whose ledger has these external scores of transformer-big.
fn scored(scores: &str) -> (Zoo, String) {
    let zoo = Zoo::new();
    zoo.run(&["judge", "transformer-big", "--scores", scores, "--arm", "mixed", "--record"]);
    let ledger = zoo.home().join("ledger.jsonl").to_str().unwrap().to_owned();
    (zoo, ledger)
}

/// Line number of a recipe's first claim.
fn claim_line(recipe: &str) -> usize {
    let text = std::fs::read_to_string(in_root(recipe)).unwrap();
    1 + text.lines().position(|line| line == "[[claim]]").unwrap()
}

#[test]
fn a_planted_loss_of_two_points_turns_red_at_the_claims_line() {
    let (zoo, baseline) = scored("27.4,27.6,27.5");
    let (_kept, worse) = scored("25.4");
    let regress = |results: &str, code: i32, rest: &[&str]| {
        let all = [
            "regress",
            "--select",
            "transformer-big",
            "--tier",
            "full",
            "--results",
            results,
            "--baseline",
            &baseline,
        ];
        zoo.ends_with(code, &[&all[..], rest].concat())
    };
    let red = regress(&worse, 10, &["--junit", "out/regress.xml", "--github", "--format", "json"]);
    let found = red.json();
    let rows = found["comparisons"].as_array().unwrap();
    let quality = rows.iter().find(|row| row["check"] == "quality").unwrap();
    assert_eq!((&quality["outcome"], &quality["standing"]), (&"NOT-REPRODUCED".into(), &"WORSE".into()));
    let file = "recipes/catalog/translation/transformer-big.toml";
    assert_eq!((&quality["file"], &quality["line"]), (&file.into(), &claim_line(file).into()));
    assert_eq!((&quality["recipe"], &quality["tier"]), (&"transformer-big".into(), &serde_json::Value::Null));
    let annotation = format!("::error file={file},line={},title=transformer-big", claim_line(file));
    assert!(red.stderr.lines().any(|line| line.starts_with(&annotation)), "{}", red.stderr);
    let xml = std::fs::read_to_string(zoo.home().join("out/regress.xml")).unwrap();
    assert!(
        xml.contains("type=\"WORSE\"") && xml.contains(&format!("line=\"{}\"", claim_line(file))),
        "{xml}"
    );

    // Scores within the noise pass, and so do better ones.
    for scores in ["27.4,27.5,27.45", "29.5"] {
        let (_kept, fine) = scored(scores);
        let found = regress(&fine, 0, &["--format", "json"]).json();
        let quality = found["comparisons"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["check"] == "quality")
            .unwrap()
            .clone();
        assert_eq!(quality["outcome"], "REPRODUCED", "{quality}");
    }
    let text = regress(&worse, 10, &[]).stdout;
    assert!(text.contains("a drop of more than") && text.contains(" alarms, "), "{text}");
}

#[test]
fn the_summary_of_a_step_is_added_to() {
    let (zoo, baseline) = scored("27.4");
    let summary = zoo.file("summary.md", "before\n");
    let arguments = [
        "regress",
        "--select",
        "transformer-big",
        "--tier",
        "full",
        "--github",
        "--baseline",
        &baseline,
        "--results",
        &baseline,
    ];
    let ended = zoo.command(&arguments).env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
    assert!(ended.status.code().is_some_and(|code| [0, 11].contains(&code)), "{ended:?}");
    let text = std::fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("before\n## zoo regress\n") && text.contains("| transformer-big |"), "{text}");
}

#[test]
fn a_smoke_run_is_held_against_the_recorded_one() {
    let zoo = Zoo::new();
    let smoke = ["reproduce", "reversal-transformer", "--tier", "smoke"];
    zoo.ends_with(0, &smoke);
    let baseline = zoo.home().join("baseline.jsonl");
    std::fs::copy(zoo.home().join("ledger.jsonl"), &baseline).unwrap();
    let baseline = baseline.to_str().unwrap();
    // Another home on the same machine gives bit-identical results.
    let other = Zoo::new();
    let regress = ["regress", "--select", "reversal-transformer", "--baseline", baseline, "--format", "json"];
    let found = other.ends_with(0, &regress).json();
    let standings: Vec<(&str, &str)> = (found["comparisons"].as_array().unwrap().iter())
        .filter(|row| row["check"] == "quality")
        .map(|row| (row["of"].as_str().unwrap(), row["standing"].as_str().unwrap()))
        .collect();
    assert_eq!(standings, [("bleu test beam5 fp32", "unchanged"), ("bleu test beam5 mixed", "unchanged")]);
    // An empty baseline has nothing to compare with, which is not a success.
    let empty = other.file("empty.jsonl", "");
    let regress = ["regress", "--select", "reversal-transformer", "--baseline", empty.to_str().unwrap()];
    let ended = other.ends_with(12, &regress);
    assert!(ended.stdout.contains("there is no earlier record"), "{}", ended.stdout);
}

/// The value `run` that all rows of a call have.
fn made(rows: &serde_json::Value) -> String {
    let rows = rows["comparisons"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["run"] == rows[0]["run"]), "{rows:?}");
    rows[0]["run"].as_str().unwrap().to_owned()
}

/// Changes the log of every run of the reversal recipe in this home.
fn change_logs(zoo: &Zoo, change: &dyn Fn(&str) -> String) {
    for run in std::fs::read_dir(zoo.home().join("runs/reversal-transformer.smoke")).unwrap().flatten() {
        let log = run.path().join("log.jsonl");
        let Ok(text) = std::fs::read_to_string(&log) else { continue };
        std::fs::write(&log, change(&text)).unwrap();
    }
}

#[test]
fn a_run_by_another_program_is_run_again_and_stays_where_it_is() {
    let zoo = Zoo::new();
    zoo.run(&["reproduce", "reversal-transformer", "--tier", "smoke"]);
    std::fs::copy(zoo.home().join("ledger.jsonl"), zoo.home().join("baseline.jsonl")).unwrap();
    let call =
        ["regress", "--select", "reversal-transformer", "--baseline", "baseline.jsonl", "--format", "json"];
    let runs = || std::fs::read_dir(zoo.home().join("runs/reversal-transformer.smoke")).unwrap().count();
    // This program's own run is reused. It is not a second measurement next to the recorded one.
    let reused = zoo.run(&call);
    assert_eq!((made(&reused.json()).as_str(), runs()), ("reused, same program", 2));
    assert!(reused.stdout.contains("the only record is this run itself"), "{}", reused.stdout);

    // Another commit, another lock and other changes of one commit each make another program.
    let key = |log: &str, key: &str| {
        let session: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        session["environment"][key].as_str().map(str::to_owned)
    };
    let anew = |count: usize| {
        let junit = [&call[..], &["--junit", "r.xml"]].concat();
        let ended = zoo.ends_with(0, &junit);
        assert_eq!((made(&ended.json()).as_str(), runs()), ("new", count));
        let xml = std::fs::read_to_string(zoo.home().join("r.xml")).unwrap();
        assert!(xml.contains("<property name=\"run\" value=\"new\"/>"), "{xml}");
        assert_eq!(made(&zoo.run(&call).json()), "reused, same program");
    };
    change_logs(&zoo, &|log| {
        log.replace(&key(log, "commit").unwrap(), "0123456789abcdef0123456789abcdef01234567")
    });
    anew(4);
    let lock = |log: &str| log.replace(&key(log, "lock").unwrap(), &"ab".repeat(32));
    change_logs(&zoo, &lock);
    anew(6);
    change_logs(&zoo, &|log| match key(log, "dirt") {
        Some(dirt) => log.replace(&dirt, &"cd".repeat(32)),
        None => log.replace("\"dirty\":false", "\"dirty\":true"),
    });
    anew(8);
    // A log without content.
    change_logs(&zoo, &|_| String::new());
    anew(10);
    // `reproduce` reuses a run by another program, and prints which one.
    let zoo_says = zoo.run(&["reproduce", "reversal-transformer", "--tier", "smoke"]);
    assert!(zoo_says.stderr.contains("is reused; it was made by another program, "), "{}", zoo_says.stderr);
    assert!(zoo_says.stdout.contains("(reused, by "), "{}", zoo_says.stdout);
}

#[test]
fn a_recipe_that_fails_is_red_and_the_others_are_still_held_against_theirs() {
    let (zoo, ledger) = scored("27.4");
    // Its data is not on this machine and must not be fetched.
    let select = "multi30k-transformer-tiny";
    let arguments = [
        "regress",
        "--select",
        select,
        "--tier",
        "full",
        "--yes",
        "--offline",
        "--baseline",
        &ledger,
        "--junit",
        "r.xml",
    ];
    let ended = zoo.ends_with(4, &arguments);
    ended.says("multi30k-transformer-tiny: ");
    assert!(ended.stdout.contains("FAILED"), "{}", ended.stdout);
    let xml = std::fs::read_to_string(zoo.home().join("r.xml")).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.contains("type=\"FAILED\""), "{xml}");
}

#[test]
fn what_cannot_be_checked_says_why() {
    let zoo = Zoo::new();
    zoo.ends_with(4, &["regress", "--baseline", "none.jsonl"]).says("there is no ledger none.jsonl");
    let (zoo, ledger) = scored("27.4");
    zoo.ends_with(2, &["regress", "--baseline", &ledger, "--select", "transfromer-big"])
        .says("there is no recipe");
    zoo.ends_with(2, &["regress", "--baseline", &ledger, "--alarm-rate", "2"]).says("--alarm-rate 2");
    zoo.ends_with(4, &["regress", "--baseline", &ledger, "--results", "none"])
        .says("there is no ledger none");
    // The other recipes were not run. They are listed, and this is not a success.
    let all = ["regress", "--baseline", &ledger, "--results", &ledger, "--select", "toy", "--tier", "full"];
    let ended = zoo.ends_with(12, &all);
    assert!(ended.stderr.contains("these recipes were not run: reversal-conv-conv"), "{}", ended.stderr);
    assert!(ended.stderr.contains(", reversal-transformer"), "{}", ended.stderr);
}
