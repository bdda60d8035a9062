//! `zoo ledger merge`: records and outputs of another machine.

use crate::binary::{Zoo, small_copy};

fn ledger(zoo: &Zoo) -> std::path::PathBuf {
    zoo.home().join("ledger.jsonl")
}

fn run(zoo: &Zoo, recipe: &str) {
    zoo.ends_with(0, &["reproduce", recipe, "--tier", "smoke", "--arms", "fp32"]);
}

/// Merges a ledger, with this exit code, into that of a home.
fn merge(here: &Zoo, there: &Zoo, code: i32) -> crate::binary::Ended {
    here.ends_with(code, &["ledger", "merge", ledger(there).to_str().unwrap(), "--format", "json"])
}

fn count(zoo: &Zoo) -> usize {
    std::fs::read_to_string(ledger(zoo)).unwrap().lines().count()
}

#[test]
fn records_of_another_machine_are_taken_over_once_with_their_outputs() {
    let (here, there) = (Zoo::new(), Zoo::new());
    run(&here, "reversal-transformer");
    let first = std::fs::read(ledger(&here)).unwrap();
    std::fs::write(ledger(&there), &first).unwrap();
    run(&there, "reversal-rnn-rnn");
    run(&here, "reversal-conv-conv");
    let other = ledger(&there).display().to_string();
    let merged = here.ends_with(0, &["ledger", "merge", &other, "--format", "json"]).json();
    // A start and an end; the two that both have are left out.
    assert_eq!((&merged["records"], &merged["known"], &merged["files"]), (&2.into(), &2.into(), &1.into()));
    let head = merged["head"].as_str().unwrap();
    here.ends_with(0, &["ledger", "verify", "--head", head]);
    let rechecked = here.ends_with(0, &["ledger", "recheck", "--format", "json"]).json();
    assert_eq!(rechecked["disagreements"], serde_json::json!([]));
    let listed = here.ends_with(0, &["ledger", "list", "--format", "json"]).part("records");
    let recipes: Vec<&str> =
        listed.as_array().unwrap().iter().map(|record| record["recipe"].as_str().unwrap()).collect();
    let due = ["reversal-transformer", "reversal-conv-conv", "reversal-rnn-rnn"];
    assert_eq!(recipes, due.map(|recipe| [recipe; 2]).concat());
    let again = here.ends_with(0, &["ledger", "merge", &other]).stdout;
    assert!(again.contains("0 records and 0 files taken over, 4 records were there"), "{again}");

    // Nothing is appended if an output is missing or differs.
    let third = Zoo::new();
    third.ends_with(7, &["ledger", "merge", &other]).says("reversal-transformer");
    std::fs::write(ledger(&third), first).unwrap();
    let outputs = there.home().join("hypotheses/reversal-rnn-rnn.smoke");
    let run = std::fs::read_dir(outputs).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::read_dir(run).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, "changed").unwrap();
    third.ends_with(7, &["ledger", "merge", &other]).says("does not have the digest");
    assert_eq!(third.ends_with(0, &["ledger", "verify", "--format", "json"]).json()["records"], 2);
    assert!(!third.home().join("hypotheses").exists());
    std::fs::write(&file, whole).unwrap();
    third.ends_with(0, &["ledger", "merge", &other]);
    third.ends_with(4, &["ledger", "merge", "nothing.jsonl"]).says("there is no ledger");
}

#[test]
fn an_output_of_the_same_name_with_other_content_is_not_overwritten() {
    let (here, there) = (Zoo::new(), Zoo::new());
    run(&there, "reversal-transformer");
    let outputs = there.home().join("hypotheses/reversal-transformer.smoke");
    let folder = std::fs::read_dir(outputs).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let place = file.strip_prefix(there.home()).unwrap().to_str().unwrap().to_owned();
    run(&here, "reversal-rnn-rnn");
    here.file(&place, "of another run\n");
    let before = std::fs::read(ledger(&here)).unwrap();
    merge(&here, &there, 7).says("is the output of another run");
    assert_eq!(std::fs::read(ledger(&here)).unwrap(), before);
    assert_eq!(std::fs::read_to_string(here.home().join(place)).unwrap(), "of another run\n");
}

#[test]
fn verdicts_that_do_not_count_an_earlier_plan_of_this_ledger_are_refused() {
    let plan = |zoo: &Zoo, seeds: &str| {
        // A spread this wide leaves every claim open.
        let recipe = small_copy(zoo, &[("spread = \"reversal-transformer\"", "sigma = 500.0\nn = 9")]);
        zoo.ends_with(11, &["reproduce", &recipe, "--arms", "fp32", "--seeds", seeds]);
    };
    let (here, there) = (Zoo::new(), Zoo::new());
    plan(&here, "1");
    plan(&there, "2");
    let before = count(&here);
    merge(&here, &there, 7).says("spent before it");
    assert_eq!(count(&here), before);
    // Without a plan of its own, a ledger takes the records over.
    let other = Zoo::new();
    std::fs::write(ledger(&other), "").unwrap();
    merge(&other, &there, 0);
    other.ends_with(0, &["ledger", "verify"]);
}

#[test]
fn references_that_are_kept_beside_the_other_ledger_come_along() {
    let (here, there) = (Zoo::new(), Zoo::new());
    let reference: String = (0..2000).map(|i| format!("a{} b c{} d e\n", i % 7, i % 5)).collect();
    let references = there.file("ref", &reference);
    let hypotheses = there.file("hyp", &reference.replacen("b c3", "x y", 40));
    let (references, hypotheses) = (references.to_str().unwrap(), hypotheses.to_str().unwrap());
    let judge = ["judge", "transformer-big", "--arm", "mixed", "--record"];
    there.run(&[&judge[..], &["--hypotheses", hypotheses, "--references", references]].concat());
    run(&here, "reversal-transformer");
    merge(&here, &there, 0);
    let rechecked = here.ends_with(0, &["ledger", "recheck", "--format", "json"]).json();
    assert_eq!(rechecked["disagreements"], serde_json::json!([]));
    assert!(rechecked["scores"].as_u64().unwrap() >= 2, "{rechecked}");
}
