//! Seeds and looks: number of runs, and ledger records of runs that ended early.

use serde_json::Value;

use crate::binary::{Zoo, small_copy};

/// Records of the home's ledger.
fn records(zoo: &Zoo) -> Vec<Value> {
    let text = std::fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ends(zoo: &Zoo) -> Vec<(String, Vec<u64>)> {
    let seeds = |record: &Value| {
        record["seeds"].as_array().unwrap().iter().map(|seed| seed.as_u64().unwrap()).collect()
    };
    records(zoo).iter().map(|record| (record["end"].as_str().unwrap().to_string(), seeds(record))).collect()
}

#[test]
fn an_open_claim_takes_the_next_look_and_a_settled_one_does_not() {
    let looks = |recipe: &str| ["reproduce", recipe, "--arms", "fp32", "--seeds", "1,2"].map(str::to_string);
    let call = |zoo: &Zoo, code: i32, recipe: &str| {
        let arguments = looks(recipe);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        zoo.ends_with(code, &arguments)
    };
    let named = |end: &str, seeds: &[u64]| (end.to_string(), seeds.to_vec());

    // A spread this wide leaves every claim open.
    let open = Zoo::new();
    let recipe = small_copy(&open, &[("spread = \"reversal-transformer\"", "sigma = 500.0\nn = 9")]);
    let ended = call(&open, 11, &recipe);
    assert!(ended.stderr.contains("look at 1 of at most 2 seeds"), "{}", ended.stderr);
    let expected =
        [named("started", &[1]), named("finished", &[1]), named("started", &[2]), named("finished", &[1, 2])];
    assert_eq!(ends(&open), expected);
    call(&open, 11, &recipe);
    assert_eq!(ends(&open), expected, "the same again says nothing new");

    // With the same seeds under another plan the claim's level is spent, even for a copy with
    // another margin.
    let judged = &records(&open)[3]["judgements"][0];
    assert_eq!((&judged["evidence"]["rules"], &judged["evidence"]["spent"]), (&2.into(), &Value::Null));
    let other = small_copy(
        &open,
        &[("spread = \"reversal-transformer\"", "sigma = 1.0\nn = 9\nmargin = 90.0\nmargin_reason = \"x\"")],
    );
    for (call, words) in [
        (
            &["reproduce", &other, "--arms", "fp32", "--seeds", "2", "--plan"][..],
            "nothing is left: plan 1,2 (2 seeds on",
        ),
        (&["reproduce", &other, "--arms", "fp32", "--seeds", "2"], "were spent: plan 1,2 (2 seeds on"),
    ] {
        let ended = open.run(call);
        assert!(ended.stdout.contains(words), "{call:?}: {}{}", ended.stdout, ended.stderr);
    }
    let last = records(&open).pop().unwrap();
    let judged = &last["judgements"][0];
    assert_eq!(judged["verdict"]["outcome"], "INCONCLUSIVE");
    assert_eq!(judged["evidence"]["spent"]["looks"][0]["plan"], serde_json::json!([1, 2]));
    open.ends_with(0, &["ledger", "verify"]);
    open.ends_with(0, &["ledger", "recheck"]);

    let settled = Zoo::new();
    let recipe = small_copy(&settled, &[("lr = 1.0", "lr = 0.0")]);
    call(&settled, 10, &recipe);
    assert_eq!(ends(&settled), [named("started", &[1]), named("finished", &[1])]);

    for bad in ["0", "3,1", "2,2", "x"] {
        settled.ends_with(2, &["reproduce", &recipe, "--seeds", bad]);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_in_the_ledger_and_goes_on() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let zoo = Zoo::new();
    let recipe = small_copy(&zoo, &[("max_updates = 20", "max_updates = 4000")]);
    let call = ["reproduce", &recipe, "--arms", "fp32", "--set", "train.log_every=1"];
    let mut child = zoo.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let logged = || {
        let folder = std::fs::read_dir(zoo.home().join("runs/copied")).ok()?.next()?.ok()?.path();
        std::fs::read_to_string(folder.join("log.jsonl")).ok()
    };
    while !logged().is_some_and(|log| log.contains("\"train\"")) {
        assert!(begun.elapsed() < Duration::from_secs(120) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(6));
    let last = records(&zoo).pop().unwrap();
    assert_eq!(last["end"], "interrupted");
    assert!(last["reason"].as_str().unwrap().contains("interrupted"), "{last}");
    zoo.ends_with(0, &["ledger", "verify"]);
}
