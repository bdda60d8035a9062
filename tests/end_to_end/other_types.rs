//! A trained run in another type: scores, timed searches, and training that goes on.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::binary::{Zoo, files};

fn trained(zoo: &Zoo, call: &[&str]) -> Value {
    zoo.ends_with(0, &[&["reproduce"][..], call, &["--tier", "smoke", "--format", "json"]].concat()).json()
}

fn of_run(outcome: &Value, at: usize) -> PathBuf {
    PathBuf::from(outcome["runs"][at]["folder"].as_str().unwrap())
}

#[test]
fn a_run_is_scored_in_another_type_beside_its_own_scores() {
    let zoo = Zoo::new();
    let run = of_run(&trained(&zoo, &["shakespeare-char-nanogpt-cpu", "--arms", "fp32"]), 0);
    let before = files(&run);
    let loss = |compute: &[&str]| {
        let call = [&["evaluate", run.to_str().unwrap(), "--format", "json"][..], compute].concat();
        let found = zoo.ends_with(0, &call).part("evaluations");
        let scores = found[0]["scores"].as_array().unwrap();
        let loss = scores.iter().find(|score| score["metric"] == "loss").unwrap();
        (loss["value"].as_f64().unwrap(), found[0]["hypotheses"].as_str().unwrap().to_owned())
    };
    let (own, _) = loss(&[]);
    assert_eq!(files(&run), before);
    let (same, file) = loss(&["--compute", "fp32"]);
    assert_eq!(same, own);
    assert!(run.join("eval/fp32").join(file).is_file());
    for (compute, least, most) in [("fp16", 1e-9, 1e-3), ("bf16", 1e-7, 1e-2)] {
        let (other, file) = loss(&["--compute", compute]);
        let off = (other - own).abs() / own;
        assert!(off > least && off < most, "{compute}: {other}, {own} in FP32");
        assert!(run.join("eval").join(compute).join(file).is_file());
    }
    for (file, digest) in before {
        assert_eq!(files(&run).get(&file), Some(&digest), "{}", file.display());
    }
}

#[test]
fn a_search_of_recordings_is_timed_in_several_types() {
    let zoo = Zoo::new();
    let bench = ["bench", "fsdd-digits", "--tier", "smoke", "--arms", "fp32"];
    let search = ["--decode", "greedy", "--shape", "2x40", "--steps", "2", "--format", "json"];
    let found = zoo.ends_with(0, &[&bench[..], &search, &["--compute", "fp32,bf16"]].concat()).json();
    let arms = found["arms"].as_array().unwrap();
    let computes: Vec<&str> = arms.iter().map(|arm| arm["compute"].as_str().unwrap()).collect();
    assert_eq!(computes, ["fp32", "bf16"]);
    // Two batches of two recordings of 40 frames.
    assert!(arms.iter().all(|arm| arm["tokens"] == 160 && arm["laps"].as_array().unwrap().len() == 2));
    let own = zoo.ends_with(0, &[&bench[..], &search].concat()).json();
    assert_eq!(own["arms"].as_array().unwrap().len(), 1);
    zoo.ends_with(2, &[&bench[..], &["--compute", "bf16"]].concat());
    let short = ["--decode", "greedy", "--shape", "1x1"];
    zoo.ends_with(2, &[&["bench", "deepspeech2-small", "--arms", "fp32"][..], &short].concat());
    let with_model = ["bench", "deepspeech2-large", "--arms", "fp32", "--decode", "beam-4-gram"];
    zoo.ends_with(2, &with_model).says("the search reads a language model or a list of words");
}

#[test]
fn training_goes_on_in_another_type_from_the_run_of_each_arm() {
    let zoo = Zoo::new();
    let outcome = trained(&zoo, &["fsdd-digits-finetuned"]);
    let of = |at: usize| {
        let card: Value =
            serde_json::from_slice(&fs::read(of_run(&outcome, at).join("run.json")).unwrap()).unwrap();
        let words = [&card["arm"], &card["compute"], &card["transfer"]["arm"]];
        words.map(|word| word.as_str().unwrap().to_owned())
    };
    assert_eq!(of(0), ["fp32", "fp32", "fp32"]);
    assert_eq!(of(1), ["mixed", "fp16", "mixed"]);
    assert_eq!(of(2), ["fp32-after-mixed", "fp32", "mixed"]);
    assert_eq!(of(3), ["mixed-after-fp32", "fp16", "fp32"]);
    // One run of each arm of the other recipe was trained.
    assert_eq!(fs::read_dir(zoo.home().join("runs/fsdd-digits.smoke")).unwrap().count(), 2);
}
