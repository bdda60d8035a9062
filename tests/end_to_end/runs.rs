//! `zoo runs`, names of runs, and `zoo log`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::binary::Zoo;

#[test]
fn a_home_without_runs_says_how_to_make_one() {
    let zoo = Zoo::new();
    let none = zoo.ends_with(0, &["runs", "--format", "json"]);
    assert_eq!(none.part("runs"), json!([]));
    assert!(none.stderr.contains("`zoo reproduce RECIPE` makes one"), "{}", none.stderr);
    let unknown = zoo.ends_with(2, &["infer", "yesno-tdnn"]);
    unknown.says("yesno-tdnn is not a run folder, and no run in");
    assert!(unknown.stderr.contains("`zoo reproduce yesno-tdnn` makes a run"), "{}", unknown.stderr);
    zoo.ends_with(2, &["log", "@last"]).says("@last");
    zoo.ends_with(2, &["runs", "--state", "finished"]);
}

/// The only run of a home.
fn reversal(zoo: &Zoo) -> PathBuf {
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.ends_with(0, &call).json();
    PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap())
}

#[test]
fn a_run_is_listed_named_and_its_log_printed() {
    let zoo = Zoo::new();
    let folder = reversal(&zoo);
    listing(&zoo, &folder);
    names(&zoo, &folder);
    log(&zoo, &folder);
    // Last, because it changes the run.
    states(&zoo, &folder);
}

fn listing(zoo: &Zoo, folder: &Path) {
    let rows = zoo.ends_with(0, &["runs", "--format", "json"]).part("runs");
    let row = &rows[0];
    let of = |key: &str| row[key].clone();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(
        [of("run"), of("recipe"), of("tier"), of("arm"), of("seed"), of("state")],
        [
            json!("reversal-transformer.smoke:fp32:1"),
            json!("reversal-transformer"),
            json!("smoke"),
            json!("fp32"),
            json!(1),
            json!("evaluated")
        ]
    );
    assert_eq!((of("metric"), of("eval"), of("decode")), (json!("bleu"), json!("test"), json!("beam5")));
    assert_eq!((of("verdict"), of("statement")), (json!("NOT-COMPARABLE"), json!("extended")));
    assert!(
        of("score").is_number() && of("updates") == of("of") && of("updates").as_u64() > Some(0),
        "{row}"
    );
    let weights = fs::metadata(newest_state(folder)).unwrap().len();
    assert!(of("bytes").as_u64().unwrap() > weights, "{row}");
    assert_eq!(of("folder").as_str().map(PathBuf::from).as_deref(), Some(folder));

    let text = zoo.ends_with(0, &["runs"]).stdout;
    assert!(text.starts_with("run  "), "{text}");
    assert!(text.contains("reversal-transformer.smoke:fp32:1  evaluated"), "{text}");
    assert!(text.contains("NOT COMPARABLE (extended)"), "{text}");
    let csv = zoo.ends_with(0, &["runs", "--format", "csv"]).stdout;
    assert!(csv.starts_with("run,recipe,tier,arm,seed,state,updates,of,metric,score,"), "{csv}");

    let count = |filters: &[&str]| {
        let listed = zoo.ends_with(0, &[&["runs", "--format", "json"][..], filters].concat()).part("runs");
        listed.as_array().unwrap().len()
    };
    let all =
        ["reversal", "--arms", "mixed,fp32", "--seeds=1", "--tier=smoke", "--state=evaluated", "-n", "3"];
    assert_eq!(count(&all), 1);
    for none in
        [&["--arm", "mixed"][..], &["--seed=2"], &["--tier=full"], &["--state=training"], &["-n", "0"]]
    {
        assert_eq!(count(none), 0, "{none:?}");
    }
    let misspelt = zoo.ends_with(0, &["runs", "reversal-transfromer"]);
    assert!(misspelt.stderr.contains("did you mean `reversal-transformer`?"), "{}", misspelt.stderr);

    // `zoo runs --watch` ends when its reader goes away.
    let mut child =
        zoo.command(&["runs", "--watch=1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

fn newest_state(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    files.max().unwrap()
}

fn names(zoo: &Zoo, folder: &Path) {
    let path = folder.to_str().unwrap();
    let answer = |run: &str| zoo.run_with_input(&["infer", run], "α β γ\n");
    let expected = answer(path);
    assert_eq!((expected.code, expected.stdout.lines().count()), (0, 1), "{}", expected.stderr);
    let below = folder.strip_prefix(zoo.home().join("runs")).unwrap().to_str().unwrap();
    for name in ["@last", "reversal-transformer:fp32:1", "rev", below] {
        let ended = answer(name);
        assert_eq!((ended.code, &ended.stdout), (0, &expected.stdout), "{name}: {}", ended.stderr);
        let says = format!("{name} is the run ");
        assert_eq!(ended.stderr.contains(&says), name != below, "{}", ended.stderr);
    }
    // A path that exists is never read as a name.
    let shadow = zoo.file("rev", "");
    zoo.ends_with(2, &["infer", "rev"]).says("rev is not a run folder");
    fs::remove_file(shadow).unwrap();

    zoo.ends_with(0, &["export", "rev:fp32", "model.safetensors"]);
    zoo.ends_with(0, &["report", "rev:fp32", "-o", "page.html"]);
    zoo.ends_with(0, &["bundle", "@last", "--out", "packed.json"]);
    let listed = zoo.ends_with(0, &["evaluate", "@last", "--format", "json"]).part("evaluations");
    assert_eq!(listed[0]["eval"], "test");
    for (arguments, error) in [
        (&["export", "rev:mixed", "x"][..], "no run of rev has the arm mixed"),
        (&["infer", "reversal:fp32:one"], "`reversal:fp32:one` is not a valid run name"),
        (&["explain", "reversal-transfromer"], "no run in"),
        (&["report", "rev:mixed"], "no run of rev has the arm mixed"),
        // A recipe's exact name is the recipe, at its published size.
        (&["report", "reversal-transformer"], "no run of reversal-transformer is in"),
        (&["reproduce", "reversal-transformer", "--init-from", "none.safetensors"], "none.safetensors"),
        (&["reproduce", "reversal-transformer", "--init-from", "none"], "none is not a run folder"),
    ] {
        let ended = zoo.run(arguments);
        assert!([2, 4].contains(&ended.code), "{arguments:?}: {}", ended.code);
        ended.says(error);
    }
}

fn log(zoo: &Zoo, folder: &Path) {
    let text = zoo.ends_with(0, &["log", "@last"]).stdout;
    for part in [
        "session        from the start, zoo ",
        "\nupdate ",
        " tokens/s",
        "\nend            ended after its updates",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let raw = zoo.ends_with(0, &["log", "@last", "--format", "json", "-n", "1000000"]).stdout;
    assert_eq!(raw, fs::read_to_string(folder.join("log.jsonl")).unwrap());
    let short = zoo.ends_with(0, &["log", "@last", "--format", "json", "-n", "1"]);
    let events = |text: &str| -> Vec<String> {
        let event =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned();
        text.lines().map(event).collect()
    };
    let training = |text: &str| events(text).iter().filter(|event| *event == "train").count();
    assert_eq!(training(&short.stdout), training(&raw).min(1));
    assert_eq!(events(&short.stdout).first().map(String::as_str), Some("session"));
    // The run has ended, so there is nothing to wait for.
    let followed = zoo.ends_with(0, &["log", "@last", "-f"]);
    assert_eq!(followed.stdout, text);
    assert!(followed.stderr.contains("the run is evaluated"), "{}", followed.stderr);
    zoo.ends_with(2, &["log", "@last", "--format", "csv"]).says("no tables");
}

fn states(zoo: &Zoo, folder: &Path) {
    let state = || zoo.ends_with(0, &["runs", "--format", "json"]).part("runs")[0]["state"].clone();
    fs::remove_file(folder.join("trained.json")).unwrap();
    assert_eq!(state(), "interrupted");
    let lock = fs::File::options().write(true).open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(state(), "training");
    // A line that arrives is printed, and the end of the process ends the command.
    let mut following = zoo.command(&["log", "@last", "-f", "-q"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(printed.next().unwrap().unwrap().starts_with("session "));
    let line = "{\"event\":\"epoch\",\"update\":99,\"epoch\":7,\"train_loss\":0.5}\n";
    let mut log = fs::File::options().append(true).open(folder.join("log.jsonl")).unwrap();
    log.write_all(line.as_bytes()).unwrap();
    let arrived = printed.find(|line| line.as_ref().unwrap().starts_with("epoch 7 ")).unwrap().unwrap();
    assert_eq!(arrived, "epoch 7        update 99, train loss 0.5000");
    drop(lock);
    assert!(printed.next().is_none());
    assert_eq!(following.wait().unwrap().code(), Some(0));
    fs::write(folder.join("run.json"), "{").unwrap();
    assert_eq!(state(), "damaged");
    zoo.ends_with(7, &["infer", "rev"]).says("run.json");
}
