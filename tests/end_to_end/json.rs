//! The documents of `--format json`: every command, its example in docs/json.md, and errors.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::binary::{Zoo, in_root, tone};
use crate::json_schema::{definition, errors};

/// The examples of docs/json.md by the title of their section.
fn examples() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(in_root("docs/json.md")).unwrap();
    let sections = text.split("\n### ").skip(1);
    sections
        .map(|section| {
            let title = section.lines().next().unwrap().to_owned();
            let example = section.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
            let example = serde_json::from_str(example.unwrap_or_else(|| panic!("{title} has no example")));
            (title.clone(), example.unwrap_or_else(|error| panic!("{title}: {error}")))
        })
        .collect()
}

/// What differs in the keys of an example and a document. Of lists, the first rows are compared. `{}`
/// in the example stands for an object that is left out.
fn differences(example: &Value, document: &Value, at: &str, found: &mut Vec<String>) {
    match (example, document) {
        (Value::Object(example), Value::Object(document)) if !example.is_empty() => {
            let missing = example.keys().filter(|key| !document.contains_key(*key));
            found.extend(missing.map(|key| format!("{at}: only the example has `{key}`")));
            let new = document.keys().filter(|key| !example.contains_key(*key));
            found.extend(new.map(|key| format!("{at}: the example lacks `{key}`")));
            for (key, one) in example {
                if let Some(other) = document.get(key) {
                    differences(one, other, &format!("{at}/{key}"), found);
                }
            }
        }
        (Value::Array(example), Value::Array(document)) => {
            if let (Some(one), Some(other)) = (example.first(), document.first()) {
                differences(one, other, &format!("{at}/0"), found);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (one, other) => {
            if std::mem::discriminant(one) != std::mem::discriminant(other) {
                found.push(format!("{at}: {one} in the example, {other} in the document"));
            }
        }
    }
}

/// Every document that a home without data can have. [`crate::binary::Ended::json`] checks each
/// against the schema.
#[test]
fn every_command_prints_the_document_of_its_example() {
    let zoo = Zoo::new();
    let lines: String = (0..24).map(|at| format!("1 good film {at}\n0 bad film {at}\n")).collect();
    zoo.file("reviews.txt", &lines);
    zoo.file("ours", "a b c\nd e\n");
    zoo.file("theirs", "a b d\nd e\n");
    zoo.file("page.md", "<!-- runs:begin -->\n<!-- runs:end -->\n");
    std::fs::write(zoo.home().join("said.wav"), tone(141.0, 12_000)).unwrap();
    let fixture = in_root("tests/fixtures/transformer_prenorm_openseq2seq.safetensors");
    let toy = ["reversal-transformer", "--tier", "smoke"];
    let runs = ["fp32", "mixed"].map(|arm| format!("reversal-transformer.smoke:{arm}"));
    let reproduce = [&["reproduce"][..], &toy, &["--threads", "1"]].concat();
    let bench = [&["bench"][..], &toy, &["--arms", "fp32", "--steps", "2"]].concat();
    let with = |call: &[&'static str], more: &[&'static str]| [call, more].concat();
    let calls: Vec<(&str, i32, Vec<&str>)> = vec![
        ("list", 0, vec!["list", "--tag", "toy"]),
        ("list --claims", 0, vec!["list", "--tag", "toy", "--claims"]),
        ("reproduce", 0, reproduce.clone()),
        ("reproduce --plan", 0, with(&reproduce, &["--plan", "--gpu", "h100"])),
        ("show", 0, vec!["show", "transformer-big"]),
        ("check", 2, vec!["check", "reversal-transformer", "no-such"]),
        ("fetch", 0, vec!["fetch", "reversal-transformer"]),
        ("runs", 0, vec!["runs"]),
        ("diff", 0, vec!["diff", &runs[0], &runs[1]]),
        ("bench", 0, bench.clone()),
        ("bench --decode", 0, with(&bench, &["--decode", "beam5"])),
        ("profile", 0, vec!["profile", "@last", "--update", "21"]),
        ("replay", 0, vec!["replay", "@last", "--update", "20", "--threads", "1"]),
        (
            "replay --compute",
            0,
            vec!["replay", "@last", "--update", "20", "--compute", "bf16", "--limit", "1"],
        ),
        ("evaluate", 0, vec!["evaluate", "@last"]),
        ("export", 0, vec!["export", "@last", "model.safetensors"]),
        ("features", 0, vec!["features", "yesno-tdnn", "said.wav", "--out", "said.npy"]),
        ("new", 0, vec!["new", "mine", "--base", "imdb-cnn-keras", "--train", "reviews.txt"]),
        ("score", 0, vec!["score", "--hypotheses", "ours", "--references", "theirs", "--metric", "wer"]),
        ("judge", 11, vec!["judge", "transformer-big", "--scores", "27.1,27.4", "--record"]),
        ("align", 0, vec!["align", "transformer-base", &fixture]),
        ("ledger verify", 0, vec!["ledger", "verify"]),
        ("ledger recheck", 0, vec!["ledger", "recheck"]),
        ("ledger merge", 0, vec!["ledger", "merge", "ledger.jsonl", "--ledger", "other.jsonl"]),
        ("ledger list", 0, vec!["ledger", "list"]),
        ("ledger show", 0, vec!["ledger", "show", "0"]),
        ("ledger export", 0, vec!["ledger", "export"]),
        ("ledger export --rows scores", 0, vec!["ledger", "export", "--rows", "scores"]),
        (
            "regress",
            12,
            vec![
                "regress",
                "--select",
                "reversal-transformer",
                "--baseline",
                "ledger.jsonl",
                "--results",
                "ledger.jsonl",
            ],
        ),
        ("explain", 0, vec!["explain", "@last"]),
        ("bundle", 0, vec!["bundle", "@last", "--out", "run.bundle.json"]),
        ("ledger recheck BUNDLE", 0, vec!["ledger", "recheck", "run.bundle.json"]),
        ("report", 0, vec!["report"]),
        ("report RUN", 0, vec!["report", "@last"]),
        ("report --into", 0, vec!["report", "--into", "page.md"]),
        ("verify", 0, vec!["verify", "reversal-transformer"]),
        ("verify --kernels", 0, vec!["verify", "--kernels", "dropout"]),
        ("doctor", 0, vec!["doctor"]),
        ("pack", 0, vec!["pack", "@last", "--out", "packed"]),
        ("pack --check", 0, vec!["pack", "--check", "packed"]),
        ("track", 0, vec!["track", "@last", "--tensorboard", "curves"]),
        ("cache ls", 0, vec!["cache", "ls"]),
        ("cache ls --entries", 0, vec!["cache", "ls", "hypotheses"]),
        ("cache verify", 0, vec!["cache", "verify"]),
        ("cache gc", 0, vec!["cache", "gc", "--runs", "--keep", "9", "--plan"]),
    ];
    let mut examples = examples();
    let mut wrong = Vec::new();
    for (title, code, call) in calls {
        // A merge needs a ledger to merge into.
        zoo.file("other.jsonl", "");
        let document = zoo.ends_with(code, &[&call[..], &["--format", "json"]].concat()).json();
        let example = examples.remove(title).unwrap_or_else(|| panic!("docs/json.md has no {title}"));
        assert_eq!((&example["version"], &example["command"]), (&json!(1), &document["command"]), "{title}");
        let mut found = Vec::new();
        differences(&example, &document, "", &mut found);
        wrong.extend(found.into_iter().map(|difference| format!("{title}: {difference}")));
    }
    assert!(wrong.is_empty(), "docs/json.md:\n{}", wrong.join("\n"));
    // These need data, a GPU, a model with a language model, or minutes.
    let others: Vec<&str> = examples.keys().map(String::as_str).collect();
    assert_eq!(others, ["bench --kernels", "bench --max-batch", "evaluate --sweep", "fetch --verify"]);
}

#[test]
fn the_examples_that_are_not_printed_here_match_the_schema() {
    let examples = examples();
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(in_root("docs/json.schema.json")).unwrap()).unwrap();
    for (title, name) in [("bench --kernels", "bench_kernels"), ("bench --max-batch", "bench_max_batch")] {
        let mut found = errors(definition(name), &examples[title]);
        // `{}` stands for an object that is left out.
        found.retain(|error| !error.starts_with("/environment"));
        assert_eq!(found, [""; 0], "{title}");
    }
    for title in ["evaluate --sweep", "fetch --verify", "fetch"] {
        assert_eq!(errors(&schema, &examples[title]), [""; 0], "{title}");
    }
    let text = std::fs::read_to_string(in_root("docs/json.md")).unwrap();
    let error = text.split("## Errors").nth(1).unwrap().split("```json\n").nth(1).unwrap();
    let error: Value = serde_json::from_str(error.split("```").next().unwrap()).unwrap();
    assert_eq!(errors(&schema, &error), [""; 0]);
}

#[test]
fn a_failure_is_the_last_line_of_stderr_and_stdout_is_empty() {
    let zoo = Zoo::new();
    zoo.file("broken.toml", "[recipe\n");
    for (call, code, exit, message) in [
        (&["reproduec", "x"][..], 2, "usage", "unrecognized subcommand 'reproduec'"),
        (&["show"], 2, "usage", "the following required arguments were not provided: <RECIPE>"),
        (&["list", "--threads", "0"], 2, "usage", "invalid value '0' for '--threads <N>'"),
        (&[], 2, "usage", "a command is missing"),
        (&["show", "transformer-bgi"], 2, "usage", "there is no recipe `transformer-bgi`"),
        (&["show", "./broken.toml"], 3, "recipe", "the recipe has an error"),
        (&["ledger", "verify", "--ledger", "none.jsonl"], 4, "data", "there is no ledger none.jsonl"),
        (&["reproduce", "transformer-big"], 5, "plan-refused", "computing"),
    ] {
        let ended = zoo.ends_with(code, &[&["--format", "json"][..], call].concat());
        let error = ended.error();
        assert_eq!(ended.stdout, "", "{call:?}");
        assert_eq!((&error["exit"], &error["exit_code"]), (&json!(exit), &json!(code)), "{call:?}");
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].is_string() || exit == "recipe", "{error}");
    }
    let error = zoo.ends_with(3, &["show", "./broken.toml", "--format=json"]).error();
    assert_eq!((&error["file"], &error["line"]), (&json!("./broken.toml"), &json!(1)));
    assert_eq!(error["findings"].as_array().map(Vec::len), Some(1), "{error}");
    // Help is not an error.
    assert!(zoo.ends_with(0, &["show", "--help", "--format", "json"]).stdout.starts_with("Show one recipe"));
}

#[test]
fn stdout_can_have_the_file_of_an_export() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32"];
    zoo.ends_with(0, &call);
    zoo.ends_with(0, &["export", "@last", "model.safetensors"]);
    std::fs::write(zoo.home().join("said.wav"), tone(141.0, 12_000)).unwrap();
    zoo.ends_with(0, &["features", "yesno-tdnn", "said.wav", "--out", "said.npy"]);
    for (call, file) in [
        (&["export", "@last", "-", "--format", "json"][..], "model.safetensors"),
        (&["features", "yesno-tdnn", "said.wav", "--out", "-"], "said.npy"),
    ] {
        let output = zoo.command(call).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == std::fs::read(zoo.home().join(file)).unwrap(), "{call:?}");
        assert!(!zoo.home().join("-").exists());
    }
    let lines = zoo.run_with_input(&["infer", "@last", "--format", "json"], "α β\n");
    assert_eq!(lines.json_line()["text"], "α β");
    assert!(lines.json_line()["translation"].is_string(), "{}", lines.stdout);
}
