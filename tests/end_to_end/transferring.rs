//! A classifier that takes the words and weights of a language model's run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::Zoo;

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The folders of the runs of a recipe in a home.
fn runs(zoo: &Zoo, recipe: &str) -> Vec<PathBuf> {
    let folders = fs::read_dir(zoo.home().join("runs").join(recipe)).into_iter().flatten().flatten();
    folders.map(|entry| entry.path()).filter(|path| path.join("run.json").is_file()).collect()
}

#[test]
fn a_tier_trains_the_language_model_first_and_takes_its_weights_and_words() {
    let zoo = Zoo::new();
    let call = ["reproduce", "sst-imdb-lstm-small", "--tier", "smoke", "--format", "json"];
    let ended = zoo.ends_with(0, &call);
    assert!(ended.stderr.contains("tier smoke, which is trained first"), "{}", ended.stderr);
    let taken = "taken: embedding, layers.0, layers.0.forget_norm,";
    let rest = "(25 parameters); not taken: softmax; fresh here: output";
    assert!(ended.stderr.contains(taken) && ended.stderr.contains(rest), "{}", ended.stderr);
    assert!(ended.stderr.contains("taken: nothing (0 parameters)"), "fp32-scratch: {}", ended.stderr);
    let outcome = ended.json();
    assert_eq!(outcome["runs"].as_array().unwrap().len(), 3, "{outcome}");
    let [source] = &runs(&zoo, "imdb-lstm-small.smoke")[..] else { panic!("one run of the language model") };

    // The run says which weights it began with, and so does its record.
    let run = PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap());
    let card = json_of(&run.join("run.json"));
    let digest = card["transfer"]["sha256"].as_str().unwrap().to_owned();
    assert_eq!((&card["transfer"]["recipe"], digest.len()), (&"imdb-lstm-small".into(), 64));
    assert_eq!(card["overrides"].as_array().unwrap().len(), 0, "the recipe names the weights, not the user");
    let ledger = fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap();
    let began = format!(
        "fp32 seed 1: began with weights of imdb-lstm-small, tier smoke, fp32 seed 1, sha256:{digest}"
    );
    assert!(ledger.contains(&began), "{ledger}");

    // The same call uses the runs again, and another seed of the language model is another start.
    let again = zoo.ends_with(0, &call);
    assert!(!again.stderr.contains("trained first") && !again.stderr.contains("taken:"), "{}", again.stderr);
    let folders = |found: &Value| -> Vec<Value> {
        found["runs"].as_array().unwrap().iter().map(|run| run["folder"].clone()).collect()
    };
    let again = again.json();
    assert_eq!(folders(&again), folders(&outcome));
    assert!(again["runs"].as_array().unwrap().iter().all(|run| run["reused"] == true), "{again}");
    let other = ["reproduce", "imdb-lstm-small", "--tier", "smoke", "--arms", "fp32", "--seed", "2"];
    zoo.ends_with(0, &other);
    let of_seed = runs(&zoo, "imdb-lstm-small.smoke").into_iter().find(|run| run != source).unwrap();
    let given = ["--arms", "fp32", "--init-from", of_seed.to_str().unwrap()];
    let started = zoo.ends_with(0, &[&call[..], &given].concat()).json();
    assert_ne!(folders(&started)[0], folders(&outcome)[0]);
    let card = json_of(&Path::new(started["runs"][0]["folder"].as_str().unwrap()).join("run.json"));
    assert_eq!((&card["transfer"]["seed"], card["overrides"].as_array().unwrap().len()), (&2.into(), 1));

    // The run keeps the words: the language model's run is needed no more.
    fs::remove_dir_all(zoo.home().join("runs/imdb-lstm-small.smoke")).unwrap();
    zoo.ends_with(0, &["evaluate", run.to_str().unwrap()]);
    zoo.file("lines.txt", "a good film\n\n");
    let classes = zoo.ends_with(0, &["infer", run.to_str().unwrap(), "lines.txt"]).stdout;
    assert_eq!(classes.lines().count(), 2, "{classes}");
}

#[test]
fn a_recipe_without_the_run_that_it_needs_says_how_to_make_it() {
    let zoo = Zoo::new();
    let refused = zoo.ends_with(4, &["reproduce", "imdb-wkt2", "--arms", "fp32", "--offline", "--yes"]);
    refused.says("takes weights from a run of lstm-wkt2-fp32, and this home has none that ended");
    assert!(
        refused.stderr.contains("hint: zoo reproduce lstm-wkt2-fp32 --arms fp32; or"),
        "{}",
        refused.stderr
    );
    // A plan needs none, and says so.
    let plan = zoo.ends_with(0, &["reproduce", "imdb-wkt2", "--arms", "fp32", "--plan"]).stdout;
    assert!(
        plan.contains("20,199,938 parameters") && plan.contains("zoo reproduce lstm-wkt2-fp32"),
        "{plan}"
    );

    // Other sizes are refused with both.
    let wider = "train.transfer.parameters=[{ from = \"embedding\", to = \"output\" }]";
    let call = ["reproduce", "sst-wkt2", "--tier", "smoke", "--arms", "fp32", "--set", wider];
    zoo.ends_with(4, &call)
        .says("takes `embedding.weight`, which is [42, 16], for `output.weight`, which is [2, 32]");
    for (recipe, parameters) in
        [("imdb-wkt103", "83,404,802"), ("sst-wkt2", "20,200,450"), ("sst-imdb-lstm-small", "1,596,418")]
    {
        let shown = zoo.ends_with(0, &["show", recipe]).stdout;
        assert!(shown.contains(parameters), "{shown}");
    }
}

#[test]
fn openseq2seqs_classifiers_run_in_their_smoke_tiers() {
    let zoo = Zoo::new();
    for recipe in ["imdb-wkt103", "imdb-wkt2", "sst-wkt2"] {
        let ended = zoo.ends_with(0, &["reproduce", recipe, "--tier", "smoke", "--format", "json"]);
        assert_eq!(ended.json()["runs"].as_array().unwrap().len(), 2);
        let fresh = "fresh here: embedding, ";
        assert!(
            ended.stderr.contains(fresh) && ended.stderr.contains("not taken: embedding, "),
            "{}",
            ended.stderr
        );
        // Of the first layer imdb-wkt103 takes the norms alone.
        assert_eq!(
            ended.stderr.contains("fresh here: embedding, layers.1.layers.0, "),
            recipe == "imdb-wkt103"
        );
    }
    assert_eq!(runs(&zoo, "lstm-wkt2-fp32.smoke").len(), 1);
}
