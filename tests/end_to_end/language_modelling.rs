//! Language modelling: from generated or own text to perplexities, with a state that a resumed run
//! goes on with; lines that are scored, and texts that are continued.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::Zoo;

const RECIPE: &str = "ptb-lstm-pytorch-tied";

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Lines in which each word has one successor: `to be or not`, from a place on and around.
fn rhyme(lines: usize) -> String {
    let words = ["to", "be", "or", "not"];
    (0..lines).map(|line| format!("{}\n", [0, 1, 2, 3].map(|at| words[(line + at) % 4]).join(" "))).collect()
}

/// A small model of own text upon the published one. Two windows of each epoch carry the state.
fn own(zoo: &Zoo, epochs: u32) {
    for (split, lines) in [("train", 120), ("valid", 12)] {
        zoo.file(&format!("{split}.txt"), &rhyme(lines));
    }
    zoo.file(
        "mine.toml",
        &format!(
            r#"[recipe]
name = "mine"
base = "{RECIPE}"
summary = "Mine"
origin = "mine"
status = "private"
without = ["data.corpus", "data.eval"]

[data]
reader = {{ kind = "text", files = {{ train = "train.txt", valid = "valid.txt" }} }}
vocabulary = {{ size = 5, order = "appearance", of = "training" }}
batching = {{ kind = "contiguous", rows = 4, steps = 8, last = "short", state = "carried" }}

[data.eval.valid]
split = "valid"
lines = 12
windows = {{ kind = "contiguous", rows = 2, steps = 7, last = "short", state = "carried" }}

[model]
width = 12
units = 12
dropout = 0.1

[train]
max_epochs = {epochs}
checkpoint = {{ every_updates = 1 }}
schedule = {{ kind = "plateau", lr = 5.0, factor = 0.25, patience = 0, min_lr = 0.0 }}
"#
        ),
    );
}

#[test]
fn generated_text_goes_from_a_recipe_to_records_in_both_arms() {
    let zoo = Zoo::new();
    let call = ["reproduce", RECIPE, "--tier", "smoke", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    assert_eq!(outcome["runs"].as_array().unwrap().len(), 2, "{outcome}");
    let run = PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap());
    let eval = run.join("eval");
    let records = fs::read_to_string(eval.join("test.direct.hyp.txt")).unwrap();
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |key: &str| records.iter().filter_map(|record| record[key].as_f64()).sum::<f64>();
    assert!(records.iter().all(|record| record["state"] == "carried"), "{records:?}");
    let value = json_of(&eval.join("test.direct.json"))["scores"][0]["value"].as_f64().unwrap();
    assert!((value - (sum("nats") / sum("words")).exp()).abs() < 1e-9 * value, "{value}");
    // The references are the words that are predicted: all but the first.
    let references = fs::read_to_string(eval.join("test.ref.txt")).unwrap();
    assert_eq!(references.split_whitespace().count() as f64, sum("words"));
    assert_eq!(references.lines().count(), records.len());
    let samples = json_of(&eval.join("test.direct.samples.json"));
    let text = samples[0]["text"].as_str().unwrap();
    assert!(text.split_whitespace().count() > 50, "{text}");
}

#[test]
fn own_text_is_learned_and_its_lines_are_scored_and_continued() {
    let zoo = Zoo::new();
    own(&zoo, 40);
    let call = ["reproduce", "mine.toml", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let scored = outcome["scores"][0]["scores"][0]["value"].as_f64().unwrap();
    // Only the first word of a line is new to the model: one of four, and in order.
    assert!(scored < 1.6, "{scored}");
    let trained = json_of(&Path::new(run).join("trained.json"));
    assert!(trained["last_loss"].as_f64() < trained["first_loss"].as_f64(), "{trained}");

    // A training text that changed since would number the words in another way.
    zoo.ends_with(0, &["evaluate", run]);
    let others = [
        (rhyme(119), rhyme(12), "the SHA-256 of train is"),
        (rhyme(120).replace("or", "and"), rhyme(12).replace("or", "and"), "they have other units"),
    ];
    for (train, valid, how) in others {
        zoo.file("train.txt", &train);
        zoo.file("valid.txt", &valid);
        let refused = zoo.ends_with(4, &["evaluate", run]);
        refused.says("the data changed since");
        refused.says(how);
    }
    // The run keeps its units: no text is read again.
    for file in ["train.txt", "valid.txt"] {
        fs::remove_file(zoo.home().join(file)).unwrap();
    }
    zoo.file("lines.txt", "be or not to\nbe be be be\n");
    let call = ["infer", run, "--input", "lines.txt", "--format", "json"];
    let lines = zoo.ends_with(0, &call).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let perplexities: Vec<f64> = lines.iter().map(|line| line["perplexity"].as_f64().unwrap()).collect();
    assert_eq!(lines[0]["units"], 5);
    assert!(perplexities[0] < 2.5 && perplexities[1] > 3.0 * perplexities[0], "{perplexities:?}");
    zoo.file("strange.txt", "to be\nto sleep\n");
    zoo.ends_with(4, &["infer", run, "--input", "strange.txt"]).says("\"sleep\"");

    let continued = |more: &[&str]| {
        let call = [&["infer", run, "--prompt", "be or"], more].concat();
        zoo.ends_with(0, &call).stdout
    };
    let likeliest = continued(&["--temperature", "0", "--length", "3"]);
    assert_eq!(likeliest, "be or not to\n");
    let drawn = |seed: &str| continued(&["--length", "60", "--temperature", "3", "--seed", seed]);
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
    assert_eq!(drawn("1").split_whitespace().count() + drawn("1").matches('\n').count() - 1, 62);
    let refused = |more: &[&str], why: &str| {
        let said = zoo.ends_with(2, &[&["infer", run], more].concat()).stderr;
        assert!(said.contains(why), "{said}");
    };
    refused(&["--prompt", "be", "--temperature", "-1"], "from 0 on");
    refused(&["--top-k", "2"], "--prompt");

    let kept = Path::new(run).join("vocabulary/kept.json");
    let json = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, json.replace("\"or\"", "\"and\"")).unwrap();
    zoo.ends_with(7, &["infer", run, "--prompt", "be"]).says("kept.json: it was changed");
    fs::remove_file(&kept).unwrap();
    own(&zoo, 40);
    zoo.ends_with(7, &["infer", run, "--prompt", "be"]).says("vocabulary has no units");
}

#[test]
fn a_gpt_of_characters_is_scored_on_the_same_windows_in_both_arms() {
    let zoo = Zoo::new();
    let call = ["reproduce", "shakespeare-char-nanogpt-cpu", "--tier", "smoke", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    let evals: Vec<PathBuf> =
        [0, 1].map(|at| PathBuf::from(outcome["runs"][at]["folder"].as_str().unwrap()).join("eval")).to_vec();
    let [one, other] = [0, 1].map(|at| fs::read_to_string(evals[at].join("valid.ref.txt")).unwrap());
    assert_eq!(one, other, "windows depend on the recipe's seed for them alone");
    let scores = [0, 1].map(|at| {
        let records = fs::read_to_string(evals[at].join("valid.direct.hyp.txt")).unwrap();
        let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum = |key: &str| records.iter().filter_map(|record| record[key].as_f64()).sum::<f64>();
        assert_eq!((records.len(), sum("characters")), (4, 4.0 * 8.0 * 32.0));
        let value = json_of(&evals[at].join("valid.direct.json"))["scores"][0]["value"].as_f64().unwrap();
        assert!((value - sum("nats") / sum("characters")).abs() < 1e-9, "nats a character: {value}");
        value
    });
    // 24 characters; both arms learn something within 20 updates, and differ by FP16's rounding.
    assert!(scores.iter().all(|loss| *loss < 24f64.ln()), "{scores:?}");
    assert!(scores[0] != scores[1] && (scores[0] - scores[1]).abs() < 0.01, "{scores:?}");
}

#[test]
fn new_writes_recipes_for_one_text_and_for_three() {
    let zoo = Zoo::new();
    zoo.file("poem.txt", &rhyme(400));
    let call = ["new", "poem", "--base", "shakespeare-char-nanogpt-cpu", "--train", "poem.txt"];
    let said = zoo.ends_with(0, &call).stderr;
    assert!(said.contains("zoo reproduce ./poem.toml --tier smoke"), "{said}");
    let text = fs::read_to_string(zoo.home().join("poem.toml")).unwrap();
    assert!(text.contains("summary = \"poem: 400 lines, 8 different characters\""), "{text}");
    assert!(text.contains("lines = 40\n") && text.contains("training_share = 0.9\n"), "{text}");
    let call = ["reproduce", "./poem.toml", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let written = zoo.ends_with(0, &["infer", run, "--prompt", "to be", "--length", "150"]).stdout;
    assert!(written.starts_with("to be") && written.len() > 150, "{written}");

    for (split, lines) in [("train", 120), ("valid", 12), ("test", 13)] {
        zoo.file(&format!("{split}.txt"), &rhyme(lines));
    }
    let new = |more: &[&'static str]| [&["new", "words", "--base", RECIPE], more].concat();
    zoo.ends_with(2, &new(&[])).says("the training text is missing");
    zoo.ends_with(2, &new(&["--train", "a.txt,b.txt"])).says("a language model reads one");
    zoo.ends_with(2, &new(&["--train", "train.txt", "--test", "test.txt"])).says("none to validate on");
    zoo.ends_with(2, &new(&["--train", "train.txt", "--source", "en"])).says("--source is for translation");
    zoo.ends_with(4, &new(&["--train", "test.txt"])).says("too few for");
    let files = ["--train", "train.txt", "--valid", "valid.txt", "--test", "test.txt"];
    zoo.ends_with(0, &new(&files));
    zoo.ends_with(0, &["check", "./words.toml"]);
    let shown = zoo.ends_with(0, &["show", "./words.toml", "--toml"]).stdout;
    assert!(shown.contains("size = 5\n") && shown.contains("lines = 13\n"), "{shown}");
}

#[test]
fn new_counts_the_words_where_the_base_has_a_list() {
    let zoo = Zoo::new();
    let line = |at: usize| format!("to be or not to be or not to be {}\n", ["here", "there"][at % 2]);
    for (split, lines) in [("train", 4000), ("valid", 12)] {
        zoo.file(&format!("{split}.txt"), &(0..lines).map(line).collect::<String>());
    }
    let files = ["--train", "train.txt", "--valid", "valid.txt"];
    zoo.ends_with(0, &[&["new", "own", "--base", "lstm-2048-512-1b"][..], &files].concat());
    zoo.ends_with(0, &["check", "./own.toml"]);
    let shown = zoo.ends_with(0, &["show", "./own.toml", "--toml"]).stdout;
    // `<UNK>`, `to`, `be`, `or`, `not`, `<S>`, `there`, `here`.
    assert!(shown.contains("size = 8\n") && shown.contains("order = \"openseq2seq\"\n"), "{shown}");
}

#[test]
fn the_plan_counts_the_part_of_a_text_that_is_read() {
    let zoo = Zoo::new();
    let plan = zoo.ends_with(0, &["reproduce", "lstm-test-small", "--arms", "fp32", "--plan"]).stdout;
    // 9,004 units are 750 windows of 12, or 4 batches of 160: 2 updates in each of 1,500 epochs.
    // The number of words is an estimate: 33,000 rows of 64 and their biases, and 149,376 in the
    // layers.
    assert!(plan.contains("2,294,376 parameters, at most 3,000 updates"), "{plan}");
}

/// The digests of the arrays of a checkpoint, by name.
fn digests(checkpoint: &Path) -> Value {
    let bytes = fs::read(checkpoint).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..][..length]).unwrap();
    let (_, json) = header["__metadata__"]["zoo"].as_str().unwrap().split_once(' ').unwrap();
    serde_json::from_str::<Value>(json).unwrap()["digests"].clone()
}

#[test]
fn a_run_that_goes_on_within_an_epoch_has_the_same_bits() {
    let zoo = Zoo::new();
    own(&zoo, 2);
    let train = || {
        let outcome = zoo.ends_with(0, &["reproduce", "mine.toml", "--arms", "fp32", "--format", "json"]);
        PathBuf::from(outcome.json()["runs"][0]["folder"].as_str().unwrap())
    };
    let run = train();
    let states = || {
        let entries = fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<PathBuf> =
            entries.filter(|path| path.to_string_lossy().contains("state-")).collect();
        found.sort();
        found
    };
    let last = states().pop().unwrap();
    let at_once = digests(&last);
    let state = at_once["weights/state.1.running_c"].clone();
    assert!(state.is_string(), "the carried state is saved: {at_once}");
    // Back to the state before the last update, which is within the second epoch.
    fs::remove_file(&last).unwrap();
    fs::remove_file(run.join("trained.json")).unwrap();
    fs::remove_dir_all(run.join("eval")).unwrap();
    assert_ne!(digests(&states().pop().unwrap())["weights/state.1.running_c"], state);
    assert_eq!(train(), run);
    assert_eq!(states().pop().unwrap(), last);
    assert_eq!(digests(&last), at_once);
}

#[test]
fn what_a_language_recipe_lacks_is_said() {
    let zoo = Zoo::new();
    let show = |key: &str| zoo.ends_with(3, &["show", RECIPE, "--set", key]).stderr;
    let tied = show("model.width=100");
    assert!(tied.contains("`width` 100 equal to `units` 200"), "{tied}");
    let together = show("train.batches_per_update=2");
    assert!(together.contains("needs one batch in an update"), "{together}");
    zoo.ends_with(2, &["bench", RECIPE, "--decode", "direct"]).says("no searches");
    let shown = zoo.ends_with(0, &["show", RECIPE]).stdout;
    assert!(shown.contains("parameters  2,653,200\n"), "{shown}");
}
