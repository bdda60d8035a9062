//! `zoo report RUN`: a page on the content of run folders.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::binary::{Zoo, run_folders};

fn reproduce(zoo: &Zoo, recipe: &str, more: &[&str]) -> Vec<PathBuf> {
    let call = [&["reproduce", recipe, "--tier", "smoke", "--format", "json"][..], more].concat();
    run_folders(&zoo.ends_with(0, &call).json())
}

fn read(zoo: &Zoo, name: &str) -> String {
    std::fs::read_to_string(zoo.home().join(name)).unwrap()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_page_of_translation_shows_both_arms_and_their_verdicts() {
    let zoo = Zoo::new();
    let runs = reproduce(&zoo, "reversal-transformer", &[]);
    let made =
        zoo.ends_with(0, &["report", "reversal-transformer", "--tier", "smoke", "--format", "json"]).json();
    assert_eq!(
        (&made["file"], &made["verdicts"], &made["evaluations"], &made["missing"]),
        (&json!("reversal-transformer.smoke.report.html"), &json!(3), &json!(2), &json!([]))
    );
    let page = read(&zoo, "reversal-transformer.smoke.report.html");
    has(
        &page,
        &[
            "As recorded: entry 2 of the ledger",
            "NOT COMPARABLE",
            "tier smoke is not the published run",
            "OpenSeq2Seq@8681d381",
            "ended after its updates",
            "Training loss",
            "Training perplexity",
            "Validation perplexity",
            "Loss scale",
            "tokens a second",
            "mixed, seed 1",
            "published bound 90.00",
            "the worst",
            "<dt>source</dt>",
            "source tokens",
            "As resolved: mixed",
        ],
    );
    assert!(!page.contains(zoo.home().to_str().unwrap()), "nothing of this machine's folders");

    // A single run by its folder, with a checkpoint's scores over updates.
    let checkpoint =
        std::fs::read_dir(runs[0].join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = checkpoint
        .filter(|path| path.extension().is_some_and(|ending| ending == "safetensors"))
        .min()
        .unwrap();
    zoo.ends_with(0, &["evaluate", checkpoint.to_str().unwrap()]);
    let of_checkpoint = runs[0].join("eval").join(checkpoint.file_stem().unwrap());
    assert!(of_checkpoint.join("test.beam5.json").is_file());
    assert!(!of_checkpoint.join("test.beam5.src.txt").exists(), "no example of a checkpoint is shown");
    zoo.ends_with(0, &["report", runs[0].to_str().unwrap(), "-o", "out/one.html"]);
    let one = read(&zoo, "out/one.html");
    has(&one, &["bleu of checkpoints", "As recorded: entry 2", "fp32, seed 1"]);
    assert!(!one.contains("mixed, seed 1</th>"), "only the run that was named");

    // A report is replaced, any other file is not.
    zoo.ends_with(
        0,
        &["report", "reversal-transformer", "--tier", "smoke", "--arms", "mixed", "-o", "out/one.html"],
    );
    assert_ne!(read(&zoo, "out/one.html"), one);
    zoo.file("mine.html", "<p>mine</p>");
    let refused = zoo.ends_with(2, &["report", runs[0].to_str().unwrap(), "-o", "mine.html"]);
    refused.says("mine.html exists and is not a report");
    assert_eq!(read(&zoo, "mine.html"), "<p>mine</p>");

    // Damaged hypotheses are left out with a message.
    let hypotheses = runs[1].join("eval/test.beam5.hyp.txt");
    std::fs::write(&hypotheses, "x\n").unwrap();
    let ended = zoo.ends_with(0, &["report", runs[1].to_str().unwrap(), "-o", "damaged.html"]);
    assert!(ended.stderr.contains("An evaluation is left out"), "{}", ended.stderr);
    has(&read(&zoo, "damaged.html"), &["An evaluation is left out", "No outputs were decoded yet."]);
}

#[test]
fn a_page_of_speech_shows_errors_pictures_and_sounds() {
    let zoo = Zoo::new();
    let runs = reproduce(&zoo, "yesno-tdnn", &["--arms", "fp32"]);
    let eval = runs[0].join("eval");
    std::fs::write(eval.join("mel.svg"), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let list = json!([{ "title": "One", "text": "a b", "files": ["mel.svg", "../run.json", "none.wav"] }]);
    std::fs::write(eval.join("test.lexicon.samples.json"), list.to_string()).unwrap();
    zoo.ends_with(0, &["report", "yesno-tdnn", "--tier", "smoke", "-o", "page.html"]);
    has(
        &read(&zoo, "page.html"),
        &[
            "wer by run",
            "Character error rate",
            "Error rate by length of the reference",
            "Worst utterances",
            "substituted",
            "frames a second",
            "seconds",
            "data:image/svg+xml;base64,",
            "../run.json, a sample of test, is left out: it does not lie beside its list.",
            "none.wav, a sample of test, is left out",
        ],
    );
}

/// Turns a run into one that was stopped before its first evaluation.
fn stop_half_way(run: &Path) {
    std::fs::remove_file(run.join("trained.json")).unwrap();
    std::fs::remove_dir_all(run.join("eval")).unwrap();
    let log = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
    std::fs::write(run.join("log.jsonl"), &log[..log.len() / 2]).unwrap();
}

#[test]
fn a_run_that_has_not_ended_and_one_without_a_record_get_a_page_too() {
    let zoo = Zoo::new();
    let runs = reproduce(&zoo, "reversal-transformer", &[]);
    std::fs::remove_file(zoo.home().join("ledger.jsonl")).unwrap();
    stop_half_way(&runs[1]);
    zoo.ends_with(0, &["report", "reversal-transformer", "--tier", "smoke", "-o", "page.html"]);
    has(
        &read(&zoo, "page.html"),
        &[
            "Judged for this page, on the 1 of 2 runs that have ended",
            "not ended",
            "Training loss",
            "no record",
            "1 lines of its log cannot be read",
        ],
    );
    stop_half_way(&runs[0]);
    zoo.ends_with(0, &["report", "reversal-transformer", "--tier", "smoke", "-o", "page.html"]);
    has(&read(&zoo, "page.html"), &["no run has ended", "NOT RUN", "No outputs were decoded yet."]);
}

#[test]
fn what_cannot_be_reported_is_told() {
    let zoo = Zoo::new();
    zoo.ends_with(2, &["report", "transformer-bgi"]).says("there is no recipe `transformer-bgi`");
    let none = zoo.ends_with(2, &["report", "yesno-tdnn"]);
    none.says("no run of yesno-tdnn is in");
    let runs = reproduce(&zoo, "reversal-transformer", &["--arms", "fp32"]);
    let run = runs[0].to_str().unwrap();
    let full = zoo.ends_with(2, &["report", "reversal-transformer"]);
    assert!(full.stderr.contains("--tier smoke has some"), "{}", full.stderr);
    zoo.ends_with(2, &["report", run, "--seeds", "7"]).says("no run matches the given arms and seeds");
    let other = reproduce(&zoo, "multi30k-transformer-tiny", &["--arms", "fp32", "--offline"]);
    zoo.ends_with(2, &["report", run, other[0].to_str().unwrap()]).says("are of different recipes");
    for arguments in [
        &["report", "-o", "x.html"][..],
        &["report", run, "--into", "README.md"],
        &["report", "--tier", "smoke"],
    ] {
        zoo.ends_with(2, arguments);
    }
    std::fs::write(runs[0].join("run.json"), "{").unwrap();
    zoo.ends_with(7, &["report", run]).says("run.json");
}
