//! Text classification: from generated or own texts to verdicts, and the class of a line.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::Zoo;

/// Recipes with their parameters.
const RECIPES: [(&str, &str); 7] = [
    ("imdb-fasttext-keras", "1,000,051"),
    ("imdb-cnn-keras", "350,751"),
    ("trec-cnn-kim", "2,991,606"),
    ("imdb-fasttext-bigrams-keras", "60,272,201"),
    ("imdb-bilstm-keras", "2,658,945"),
    ("imdb-cnn-lstm-keras", "2,638,895"),
    ("mr-cnn-kim", "5,990,702"),
];

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn generated_texts_go_from_a_recipe_to_records_in_both_arms() {
    let zoo = Zoo::new();
    for (recipe, _) in RECIPES {
        let call = ["reproduce", recipe, "--tier", "smoke", "--format", "json"];
        let outcome = zoo.ends_with(0, &call).json();
        assert_eq!(outcome["runs"].as_array().unwrap().len(), 2, "{outcome}");
        let eval = PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap()).join("eval");
        let records = fs::read_to_string(eval.join("test.direct.hyp.txt")).unwrap();
        let first: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
        let classes = first["scores"].as_array().unwrap().len();
        assert_eq!((records.lines().count(), classes), (64, if recipe == "trec-cnn-kim" { 6 } else { 2 }));
        let labels = fs::read_to_string(eval.join("test.ref.txt")).unwrap();
        assert!(labels.lines().all(|label| label.parse::<usize>().is_ok_and(|label| label < classes)));
        let samples = json_of(&eval.join("test.direct.samples.json"));
        assert_eq!(samples[0]["title"], "Confusion matrix");
        let right = samples[0]["scores"]["right"].as_u64().unwrap();
        let scored = json_of(&eval.join("test.direct.json"))["scores"][0]["value"].as_f64().unwrap();
        assert!((scored - 100.0 * right as f64 / 64.0).abs() < 1e-9, "{recipe}: {scored} {right}");
        assert_eq!(samples[0]["scores"]["texts"], 64);
        // The words of an error are kept, if there is one.
        if let Some(error) = samples.get(1) {
            assert!(error["text"].as_str().unwrap().split(' ').count() >= 8, "{error}");
        }
    }
}

/// A small model of own texts upon a published one.
const OWN: &str = r#"
[data]
reader = { kind = "labelled-lines", files = { train = "train.txt", test = "test.txt" } }
tokenizer = { kind = "keras", words = 20 }
length = { kind = "last", positions = 8 }
batching = { texts = 4, order = "shuffled", remainder = "short" }
eval.test = { split = "test", lines = 2 }

[train]
max_epochs = 150
schedule = { kind = "fixed", lr = 0.02 }
"#;

#[test]
fn own_lines_are_learned_and_told_apart() {
    let zoo = Zoo::new();
    let lines: String = (0..8)
        .map(|i| format!("{} it's a {} film\n", ["no", "yes"][i % 2], ["bad, bad", "good GOOD"][i % 2]))
        .collect();
    zoo.file("train.txt", &lines);
    let test = "yes a good film\nno a bad one\n";
    zoo.file("test.txt", test);
    let about = "[recipe]\nname = \"mine\"\nbase = \"imdb-fasttext-keras\"\nsummary = \"Mine\"\norigin = \"mine\"\n\
                 status = \"private\"\nwithout = [\"data.corpus\", \"data.eval\"]\n";
    zoo.file("mine.toml", &format!("{about}{OWN}"));
    let outcome = zoo.ends_with(0, &["reproduce", "mine.toml", "--arms", "fp32", "--format", "json"]).json();
    assert_eq!(outcome["scores"][0]["scores"][0]["value"], 100.0, "{outcome}");
    let run = outcome["runs"][0]["folder"].as_str().unwrap();

    let plan = || zoo.ends_with(0, &["reproduce", "mine.toml", "--arms", "fp32", "--plan"]).stdout;
    assert!(plan().contains("trained already"), "{}", plan());

    // Training texts that changed since would number the words of the test in another way.
    zoo.ends_with(0, &["evaluate", run]);
    let fewer: String = lines.split_inclusive('\n').skip(2).collect();
    let movies = (lines.replace("film", "movie"), test.replace("film", "movie"));
    let others =
        [(fewer, test.to_owned(), "the SHA-256 of train is"), (movies.0, movies.1, "they have other words")];
    for (train, tested, how) in others {
        zoo.file("train.txt", &train);
        zoo.file("test.txt", &tested);
        let refused = zoo.ends_with(4, &["evaluate", run]);
        refused.says("the data changed since");
        refused.says(how);
    }
    // The run keeps its words and classes: the training texts are not read again.
    for file in ["train.txt", "test.txt"] {
        fs::remove_file(zoo.home().join(file)).unwrap();
    }
    zoo.file("lines.txt", "a good one\nbad\n");
    assert_eq!(zoo.ends_with(0, &["infer", run, "lines.txt"]).stdout, "yes\nno\n");
    let call = ["infer", run, "--input", "lines.txt", "--format", "json"];
    let found: Vec<Value> =
        zoo.ends_with(0, &call).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&found[1]["text"], &found[1]["class"]), (&"bad".into(), &"no".into()));
    let both = zoo.ends_with(0, &["infer", run, "lines.txt", "--nbest", "2"]).stdout;
    let shares: Vec<f64> =
        both.lines().map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect();
    assert!(shares.len() == 4 && (shares[0] + shares[1] - 1.0).abs() < 1e-3, "{both}");
    zoo.ends_with(2, &["infer", run, "lines.txt", "train.txt"]).says("several files are named");

    fs::write(Path::new(run).join("vocabulary/words.txt"), "bad\n").unwrap();
    zoo.ends_with(7, &["infer", run, "lines.txt"]).says("words.txt: it was changed");
    // Other training texts would number the words in another way: they are not read instead.
    zoo.file("train.txt", &lines);
    fs::remove_dir_all(Path::new(run).join("vocabulary")).unwrap();
    zoo.ends_with(7, &["infer", run, "lines.txt"]).says("vocabulary has no words and classes");

    // A text that changed makes another run of it, and a class that training lacks is refused.
    zoo.file("train.txt", &lines.replace("film", "movie"));
    zoo.file("test.txt", test);
    assert!(!plan().contains("trained already"), "{}", plan());
    zoo.file("test.txt", "maybe a film\nno a film\n");
    zoo.ends_with(4, &["reproduce", "mine.toml", "--arms", "fp32"]).says("has the class maybe");
}

#[test]
fn the_plan_of_a_cross_validation_counts_every_model() {
    let zoo = Zoo::new();
    let plan = zoo.ends_with(0, &["reproduce", "mr-cnn-kim", "--arms", "fp32", "--plan"]).stdout;
    // Ten models of 5,990,702; each of 25 epochs has nine tenths of 10,662 texts ten times, 50
    // together.
    assert!(plan.contains("59,907,020 parameters, at most 48,000 updates"), "{plan}");
}

/// Labelled lines of some classes in turn.
fn labelled(lines: usize, classes: &[&str]) -> String {
    (0..lines).map(|i| format!("{0} a text about {0} number {i}\n", classes[i % classes.len()])).collect()
}

#[test]
fn new_writes_recipes_for_labelled_lines() {
    let zoo = Zoo::new();
    zoo.file("mails.txt", &labelled(40, &["spam", "ham"]));
    let call = ["new", "mails", "--base", "imdb-fasttext-keras", "--train", "mails.txt"];
    let said = zoo.ends_with(0, &call).stderr;
    assert!(said.contains("zoo reproduce ./mails.toml --tier smoke"), "{said}");
    let text = fs::read_to_string(zoo.home().join("mails.toml")).unwrap();
    assert!(text.contains("summary = \"mails: 40 texts, 2 classes\""), "{text}");
    assert!(text.contains("texts = 4\n") && text.contains("lines = 4\n"), "{text}");
    assert!(!text.contains("[model]") && !text.contains("classes ="), "{text}");
    let call = ["reproduce", "./mails.toml", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    zoo.file("lines.txt", "a text about ham\n");
    let class =
        zoo.ends_with(0, &["infer", outcome["runs"][0]["folder"].as_str().unwrap(), "lines.txt"]).stdout;
    assert!(["spam\n", "ham\n"].contains(&class.as_str()), "{class}");

    // Another number of classes needs another last layer and loss.
    for (split, lines) in [("train", 30), ("valid", 6), ("test", 9)] {
        zoo.file(&format!("{split}.txt"), &labelled(lines, &["red", "green", "blue"]));
    }
    let new = |name: &'static str, base: &'static str, more: &[&'static str]| {
        [&["new", name, "--base", base], more].concat()
    };
    let files = ["--train", "train.txt", "--valid", "valid.txt", "--test", "test.txt"];
    zoo.ends_with(0, &new("colours", "imdb-cnn-keras", &files));
    zoo.ends_with(0, &["check", "./colours.toml"]);
    let shown = zoo.ends_with(0, &["show", "./colours.toml", "--toml"]).stdout;
    assert!(shown.contains("classes = 3\n") && shown.contains("units = 3\n"), "{shown}");
    assert!(shown.contains("kind = \"cross-entropy\"") && shown.contains("lines = 9\n"), "{shown}");
    // A base that selects no epoch needs no validation if there is a test.
    zoo.ends_with(
        0,
        &new("tested", "imdb-cnn-keras", &files[..2].iter().chain(&files[4..]).copied().collect::<Vec<_>>()),
    );
    let text = fs::read_to_string(zoo.home().join("tested.toml")).unwrap();
    assert!(text.contains("[data.eval.test]") && !text.contains("held_out"), "{text}");

    // The folds of the base are left out. Its batches have 50 texts and are whole.
    zoo.ends_with(4, &new("folds", "mr-cnn-kim", &["--train", "mails.txt"])).says("a batch has 50");
    zoo.file("mails.txt", &labelled(80, &["spam", "ham"]));
    zoo.ends_with(0, &new("folds", "mr-cnn-kim", &["--train", "mails.txt"]));
    let text = fs::read_to_string(zoo.home().join("folds.toml")).unwrap();
    assert!(text.contains("\"data.folds\"") && text.contains("texts = 8\n"), "{text}");

    let wrong = |more: &[&'static str]| new("wrong", "trec-cnn-kim", more);
    zoo.ends_with(2, &wrong(&[])).says("the training text is missing");
    zoo.ends_with(2, &wrong(&["--train", "a.txt,b.txt"])).says("a classifier of texts reads one");
    zoo.ends_with(2, &wrong(&["--train", "train.txt", "--source", "en"])).says("--source is for translation");
    zoo.file("one.txt", &labelled(9, &["red"]));
    zoo.ends_with(4, &wrong(&["--train", "one.txt"])).says("the class red only");
}

#[test]
fn texts_that_are_shorter_than_a_kernel_are_refused() {
    let zoo = Zoo::new();
    zoo.file("train.txt", &"no bad\nyes good\n".repeat(4));
    let recipe = "[recipe]\nname = \"short\"\nbase = \"mr-cnn-kim\"\nsummary = \"Short\"\norigin = \"mine\"\n\
                  status = \"private\"\nwithout = [\"data.corpus\", \"data.folds\", \"data.eval\"]\n\n[data]\n\
                  reader = { kind = \"labelled-lines\", files = { train = \"train.txt\", valid = \"train.txt\" } }\n\
                  length = { kind = \"longest\", margin = 1 }\n\
                  batching = { texts = 4, order = \"shuffled\", remainder = \"short\" }\n\
                  eval.valid = { split = \"valid\", lines = 8 }\n";
    zoo.file("short.toml", recipe);
    // One word and two positions of padding.
    zoo.ends_with(4, &["reproduce", "short.toml", "--arms", "fp32"]).says("a kernel of 4 is longer");
}

#[test]
fn what_a_text_recipe_lacks_is_said() {
    let zoo = Zoo::new();
    let show = |recipe: &str, key: &str| zoo.ends_with(3, &["show", recipe, "--set", key]).stderr;
    let classes = show("trec-cnn-kim", "data.classes=5");
    assert!(classes.contains("the last layer has 6 units, and the loss needs 5"), "{classes}");
    let search = show("imdb-cnn-keras", "decode.beam.beam=4");
    assert!(search.contains("no key `decode`"), "{search}");
    zoo.ends_with(2, &["bench", "imdb-cnn-keras", "--decode", "direct"]).says("no searches");
    zoo.ends_with(2, &["bench", "trec-cnn-kim", "--shape", "4x3"]).says("a kernel of 4 is longer");
    for (recipe, parameters) in RECIPES {
        let shown = zoo.ends_with(0, &["show", recipe]).stdout;
        assert!(shown.contains(&format!("parameters  {parameters}\n")), "{shown}");
    }
}
