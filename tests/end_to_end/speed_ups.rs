//! Claims about speed: the real binary times both arms on this machine, and judges claims that name
//! this machine.

use serde_json::Value;

use crate::binary::{Zoo, small_copy};

/// Name of this machine in records.
fn this_machine(zoo: &Zoo) -> String {
    zoo.ends_with(0, &["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32"]);
    let ledger = std::fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap();
    let last: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    last["hardware"].as_str().unwrap_or_else(|| panic!("{last}")).to_string()
}

/// A recipe with an arm that has a sixteenth of the batch, which makes more updates per second on
/// any machine.
fn recipe(zoo: &Zoo, hardware: &str, protocol: &str) -> String {
    let claim = |metric: &str, protocol: &str, value: f64, hardware: &str| {
        format!(
            "\n[[claim]]\nkind = \"ratio\"\nmetric = \"{metric}\"\narm = \"small\"\nbaseline = \"fp32\"\n\
             value = {value:?}\nmargin = 0.01\nmargin_reason = \"test\"\ndirection = \"higher\"\n\
             protocol = \"{protocol}\"\nhardware = {hardware:?}\nsource = \"test\"\n"
        )
    };
    let claims = [
        claim("updates-per-second", protocol, 0.5, hardware),
        claim("updates-per-second", protocol, 500.0, hardware),
        claim("updates-per-second", protocol, 0.5, "64x Abacus"),
    ];
    let arm = "[arm.small.data.batching]\nsentences = 4\n";
    let place = small_copy(zoo, &[]);
    let text = std::fs::read_to_string(&place).unwrap();
    let (before, _) = text.split_once("[[claim]]").unwrap();
    std::fs::write(&place, format!("{before}{arm}{}", claims.concat())).unwrap();
    place
}

#[test]
fn arms_are_timed_and_judged_on_the_claims_own_machine() {
    let zoo = Zoo::new();
    let hardware = this_machine(&zoo);
    let recipe = recipe(&zoo, &hardware, "as-published");
    let call = ["reproduce", recipe.as_str(), "--arms", "fp32,small", "--format", "json"];
    let ended = zoo.ends_with(10, &call);
    let found = ended.json();
    let judged = found["claims"].as_array().unwrap();
    let outcomes: Vec<&str> = judged.iter().map(|one| one["verdict"]["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes[..3], ["REPRODUCED", "NOT-REPRODUCED", "NOT-COMPARABLE"], "{found}");
    let speed = |claim: usize| &judged[claim]["evidence"]["speed"];
    // On a machine other than the source's, the ratio is measured and reported as well.
    let ratio = speed(2)["ratio"].as_f64().unwrap();
    assert!(ratio > 1.05, "{ratio}");
    assert_eq!(judged[2]["verdict"]["measured"].as_f64(), Some(ratio));
    assert!(judged[2]["verdict"]["explanation"].as_str().unwrap().contains("64x Abacus"));
    assert_eq!((speed(0)["batch"].as_u64(), speed(0)["baseline_batch"].as_u64()), (Some(4), Some(64)));

    // A stored timing is reused.
    let again = zoo.ends_with(10, &call).json();
    assert_eq!(again["claims"], found["claims"]);
    zoo.ends_with(0, &["ledger", "verify"]);
}

#[test]
fn an_arm_that_was_not_run_is_not_timed() {
    let zoo = Zoo::new();
    let recipe = recipe(&zoo, "64x Abacus", "as-published");
    let found = zoo.ends_with(12, &["reproduce", &recipe, "--arms", "small", "--format", "json"]).json();
    let judged = found["claims"].as_array().unwrap();
    assert!(judged.iter().all(|one| one["verdict"]["outcome"] == "NOT-RUN"), "{found}");
    assert!(judged[0]["evidence"]["speed"].is_null());
}

#[test]
fn equal_batches_are_the_baselines() {
    let zoo = Zoo::new();
    let recipe = recipe(&zoo, "64x Abacus", "equal-batch");
    let call = ["reproduce", &recipe, "--tier", "smoke", "--arms", "fp32,small", "--format", "json"];
    let found = zoo.ends_with(0, &call).json();
    let speed = &found["claims"][0]["evidence"]["speed"];
    assert_eq!((speed["batch"].as_u64(), speed["baseline_batch"].as_u64()), (Some(16), Some(16)), "{found}");
}
