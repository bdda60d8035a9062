//! `zoo replay` by the real binary: an update against the log, and in two types.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{Zoo, files, small_copy};

/// Trains the smoke tier of the reversal task, and returns the run's folder. Its states are of the
/// updates 16 and 20, and a line of its log covers five updates.
fn trained(zoo: &Zoo, arm: &str, more: &[&str]) -> PathBuf {
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--format", "json", "--arms", arm];
    let outcome = zoo.ends_with(0, &[&call[..], more].concat()).json();
    PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap())
}

/// The named number of a report on a line of the log.
fn number<'r>(report: &'r Value, name: &str) -> &'r Value {
    let numbers = report["logged"]["numbers"].as_array().unwrap();
    numbers.iter().find(|number| number["name"] == name).unwrap_or_else(|| panic!("{name} in {report}"))
}

fn states(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join("checkpoints")).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn an_update_is_the_same_as_the_line_of_the_log_that_covers_it() {
    let zoo = Zoo::new();
    let run = trained(&zoo, "fp32", &["--threads", "1"]);
    let before = files(zoo.home());
    let replayed = |update: &str| {
        let call = ["replay", "@last", "--threads", "1", "--format", "json", "--update", update];
        let ended = zoo.ends_with(0, &call);
        (ended.json(), ended.stderr)
    };
    // From the state of update 16, which is within the line; and from the start.
    for (update, line, begun) in
        [("18", (16, 20), 16), ("20", (16, 20), 16), ("4", (1, 5), 0), ("16", (16, 20), 0)]
    {
        let (report, stderr) = replayed(update);
        assert_eq!((&report["begun"], &report["changed"]), (&begun.into(), &Value::Array(Vec::new())));
        let logged = &report["logged"];
        assert_eq!((&logged["first"], &logged["last"]), (&line.0.into(), &line.1.into()));
        assert_eq!(logged["same"], true, "{report}");
        for name in ["loss", "grad_norm", "scale", "skipped", "lr", "tokens"] {
            let number = number(&report, name);
            assert!(number["recorded"].is_number() && number["recorded"] == number["replayed"], "{number}");
        }
        assert_eq!(stderr.contains("begins with the start of the recipe"), begun == 0, "{stderr}");
    }
    let text = zoo.ends_with(0, &["replay", "@last", "--threads", "1", "--update", "20"]).stdout;
    for part in [
        "reversal-transformer, tier smoke, fp32, seed 1: update 20 from the state of update 16\n",
        "The line of the log covers updates 16 to 20.",
        "The state has the sums up to update 16.",
        "the same, bit for bit, by the same program on the same machine\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    // Another number of threads may change the last bits. It is named in both cases.
    let other = zoo.run(&["replay", "@last", "--threads", "2", "--update", "20"]);
    assert!([0, 9].contains(&other.code), "{other:?}");
    assert!(other.stdout.contains("threads 1 when recorded, 2 here"), "{}", other.stdout);
    assert_eq!(files(zoo.home()), before, "the run is as it was, and there is no scratch folder");

    // Another loss, of a line that covers one update.
    let log = run.join("log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let end = text.lines().find(|line| line.contains("\"event\":\"end\"")).unwrap();
    let mut line: Value = serde_json::from_str(end).unwrap();
    (line["updates"], line["loss"]) = (1.into(), 1.5.into());
    let changed: Vec<String> =
        text.lines().map(|old| if old == end { line.to_string() } else { old.to_owned() }).collect();
    let kept: Vec<&String> =
        changed.iter().filter(|line| !line.contains("\"update\":20,\"epoch\":1,\"batch\":20,\"m")).collect();
    assert_eq!(kept.len() + 1, changed.len(), "{text}");
    fs::write(&log, kept.into_iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let ended = zoo.ends_with(9, &["replay", "@last", "--threads", "1", "--update", "20"]);
    ended.says("update 20 is not the same: loss");
    assert!(ended.stdout.contains("The line of the log covers update 20 alone."), "{}", ended.stdout);
    assert!(ended.stdout.contains("not the same, by the same program"), "{}", ended.stdout);
}

/// What an update has, in order.
const KINDS: [&str; 4] = ["output", "output-gradient", "weight-gradient", "new-weight"];

#[test]
fn an_update_is_compared_in_two_types_tensor_by_tensor() {
    let zoo = Zoo::new();
    trained(&zoo, "mixed", &[]);
    let before = files(zoo.home());
    let call = ["replay", "@last", "--update", "20", "--compute", "fp32"];
    // A ReLU whose input is close to 0 may pass a gradient in one type only.
    let report = zoo.ends_with(0, &[&call[..], &["--limit", "0.5", "--format", "json"]].concat()).json();
    assert_eq!((&report["compute"], &report["begun"]), (&"fp16".into(), &16.into()));
    let compared = &report["compared"];
    assert_eq!((&compared["compute"], &compared["reference"]), (&"fp32".into(), &"fp32".into()));
    assert_eq!(compared["limits"], serde_json::json!({ "forward": 0.5, "backward": 0.5 }));
    assert_eq!(compared["within"], true);
    assert_eq!(compared["unpaired"], 0);
    let rows = compared["rows"].as_array().unwrap();
    let of = |kind: &str| rows.iter().filter(|row| row["what"] == kind).collect::<Vec<_>>();
    let order: Vec<&str> = rows.iter().map(|row| row["what"].as_str().unwrap()).collect();
    let mut kinds = order.clone();
    kinds.dedup();
    assert_eq!(kinds, KINDS);
    let layers = |kind: &str| -> Vec<(String, u64)> {
        let name =
            |row: &&Value| (row["layer"].as_str().unwrap().to_owned(), row["values"].as_u64().unwrap());
        of(kind).iter().map(name).collect()
    };
    let (outputs, mut gradients) = (layers("output"), layers("output-gradient"));
    assert_eq!(outputs[0].0, "encoder.layers.0.self_attention.key", "{outputs:?}");
    // The backward pass meets the same outputs. Where they do not depend on each other, such as the
    // query, key and value of attention, it goes through them in another order.
    let first = gradients[0].0.clone();
    assert_eq!(first, outputs.last().unwrap().0);
    let mut sorted = outputs.clone();
    sorted.sort();
    gradients.sort();
    assert_eq!(sorted, gradients);
    // Types that round differ, and dropout masks do not: with other masks the errors would be about 1.
    let errors = rows.iter().map(|row| row["relative_error"].as_f64().unwrap());
    assert!(errors.clone().all(|error| error <= 0.5), "{report}");
    assert!(errors.clone().take(outputs.len()).all(|error| error < 1.0 / 256.0), "{report}");
    assert!(errors.filter(|error| *error > 1e-6).count() > rows.len() / 2, "{report}");
    assert!(rows.iter().all(|row| row["not_finite"] == serde_json::json!([0, 0])), "{report}");

    // A limit below every rounding.
    let ended = zoo.ends_with(9, &[&call[..], &["--limit", "1e-9"]].concat());
    ended.says(
        "update 20 in fp16 and fp32: the output of encoder.layers.0.self_attention.key exceeds its limit first",
    );
    assert!(
        ended.stdout.contains(
            "\nforward: the output of encoder.layers.0.self_attention.key exceeds its limit first: "
        ),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .contains(&format!("\nbackward: the output gradient of {first} exceeds its limit first: ")),
        "{}",
        ended.stdout
    );
    // The same type twice, with dropout: nothing differs.
    let same =
        zoo.ends_with(0, &["replay", "@last", "--update", "18", "--compute", "fp16", "--format", "csv"]);
    let lines: Vec<&str> = same.stdout.lines().collect();
    assert!(lines[0].starts_with("tensor,layer,call,values,relative_error,largest_error,"), "{}", lines[0]);
    assert_eq!(lines.len(), rows.len() + 1);
    assert!(lines[1..].iter().all(|line| line.ends_with(",0.0,0.0,0,0,false")), "{}", same.stdout);
    for (compute, forward) in [("fp32", 0.00390625), ("bf16", 0.03125)] {
        let usual = zoo.run(&["replay", "@last", "--update", "20", "--format", "json", "--compute", compute]);
        let compared = usual.json()["compared"].take();
        assert_eq!(compared["limits"], serde_json::json!({ "forward": forward, "backward": 8.0 * forward }));
        let rows = compared["rows"].as_array().unwrap();
        let exceeds = rows.iter().any(|row| {
            let limit = if row["what"] == "output" { forward } else { 8.0 * forward };
            row["relative_error"].as_f64().is_none_or(|error| error > limit)
        });
        assert_eq!((usual.code, compared["within"] == true), (if exceeds { 9 } else { 0 }, !exceeds));
    }
    assert_eq!(files(zoo.home()), before);
}

/// A loss scale that overflows until it has been halved several times.
#[test]
fn the_attempts_of_an_update_that_were_skipped_are_made_again() {
    let zoo = Zoo::new();
    // The first scale is too large for eight attempts at update 1.
    let scaling = "{ kind = \"backoff\", scale_init = 67108864.0, scale_max = 67108864.0, scale_min = 1.0, \
                   step_factor = 2.0, step_window = 2000 }";
    let scaling = format!("--set=precision.loss_scaling={scaling}");
    trained(&zoo, "mixed", &[&scaling, "--threads", "1", "--set", "train.log_every=1"]);
    let call = ["replay", "@last", "--threads", "1", "--format", "json", "--update", "1"];
    let report = zoo.ends_with(0, &call).json();
    assert_eq!(report["logged"]["same"], true, "{report}");
    let skipped = number(&report, "skipped")["replayed"].as_f64().unwrap();
    assert!(skipped > 2.0, "{report}");
    // The second computation begins with the last attempt, so it skips none and nothing differs.
    let report = zoo.ends_with(0, &[&call[..], &["--compute", "fp16"]].concat()).json();
    assert_eq!(report["computed"]["skipped"].as_f64(), Some(skipped));
    assert_eq!(report["compared"]["computed"]["skipped"], 0, "{report}");
    let rows = report["compared"]["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["relative_error"] == 0.0), "{report}");
}

/// The update at which a run diverged: 16 bits are too few at every attempt, and FP32 makes it.
#[test]
fn the_last_attempt_at_an_update_that_was_never_made_is_compared() {
    let zoo = Zoo::new();
    let scaling = "--set=precision.loss_scaling={ kind = \"static\", scale = 1e30 }";
    let call = [
        "reproduce",
        "reversal-transformer",
        "--tier",
        "smoke",
        "--arms",
        "mixed",
        "--threads",
        "1",
        scaling,
    ];
    zoo.ends_with(12, &call);
    let call = ["replay", "@last", "--threads", "1", "--update", "1"];
    let never = zoo.ends_with(2, &call);
    never.says("the run never made update 1: its last one is 0");
    assert!(never.stderr.contains("hint: it diverged there: --compute fp32"), "{}", never.stderr);

    let report = zoo.ends_with(9, &[&call[..], &["--compute", "fp32", "--format", "json"]].concat()).json();
    let (own, other) = (&report["computed"], &report["compared"]["computed"]);
    // A state is left of the end of the first epoch, after 16 of the 20 attempts.
    assert_eq!((&own["skipped"], &own["updates"]), (&4.into(), &0.into()), "{report}");
    assert_eq!((&other["skipped"], &other["updates"]), (&0.into(), &1.into()), "{report}");
    assert_eq!(own["scale"], 1e30);
    // Losses do not have the scale, and outputs come before it.
    let rows = report["compared"]["rows"].as_array().unwrap();
    let not_finite =
        |what: &str| rows.iter().filter(|row| row["what"] == what && row["not_finite"][0] != 0).count();
    assert_eq!(not_finite("output"), 0, "{report}");
    assert!(not_finite("weight-gradient") > 0, "{report}");
}

#[test]
fn what_cannot_be_replayed_is_named() {
    let zoo = Zoo::new();
    let run = trained(&zoo, "fp32", &[]);
    let name = run.to_str().unwrap();
    let replay = |code: i32, more: &[&str]| zoo.ends_with(code, &[&["replay", name][..], more].concat());
    let late = replay(2, &["--update", "21"]);
    late.says("the run never made update 21: its last one is 20");
    assert!(late.stderr.contains("hint: --update 20, or an earlier one"), "{}", late.stderr);
    replay(2, &["--update", "0"]);
    replay(2, &[]);
    replay(2, &["--update", "20", "--limit", "0.1"]);
    replay(2, &["--update", "20", "--compute", "fp16", "--limit", "-1"]);
    replay(8, &["--update", "20", "--device", "cuda"]).says("on the CPU, not on cuda");
    let state = &states(&run)[0];
    let of_state = zoo.ends_with(2, &["replay", state.to_str().unwrap(), "--update", "20"]);
    of_state.says("is a checkpoint");
    zoo.ends_with(2, &["replay", "nowhere", "--update", "20"]).says("no run in");

    // The state before is damaged, so the replay goes back to the start, and renames nothing.
    let bytes = fs::read(state).unwrap();
    fs::write(state, &bytes[..bytes.len() - 1]).unwrap();
    let damaged = files(zoo.home());
    let ended = replay(0, &["--update", "20", "--format", "json"]);
    assert_eq!((&ended.json()["begun"], &ended.json()["logged"]["same"]), (&0.into(), &true.into()));
    assert!(ended.stderr.contains("begins with the start of the recipe"), "{}", ended.stderr);
    assert_eq!(files(zoo.home()), damaged);

    // A run whose weights came from elsewhere has no such start.
    let weights = zoo.home().join("model.safetensors");
    zoo.ends_with(0, &["export", name, weights.to_str().unwrap()]);
    let run = trained(&zoo, "fp32", &["--init-from", weights.to_str().unwrap()]);
    let ended = zoo.ends_with(2, &["replay", run.to_str().unwrap(), "--update", "3"]);
    ended.says("no state of the run is before update 3, and it did not begin with fresh weights: init-from=");
    assert!(ended.stderr.contains("hint: --update 17, or a later one"), "{}", ended.stderr);
}

/// The learning rate of a plateau schedule depends on the validation losses of the epochs before.
#[test]
fn a_replay_from_the_start_validates_where_the_learning_rate_depends_on_it() {
    let zoo = Zoo::new();
    let schedule = "kind = \"transformer-policy\"\nlr = 1.0\nwarmup_updates = 200\nwidth = 128";
    let plateau = "kind = \"plateau\"\nlr = 0.5\nfactor = 0.5\npatience = 0\nmin_lr = 1e-9";
    // Three updates an epoch, and a rate that is too high to do better in each of them.
    let copied = small_copy(
        &zoo,
        &[
            (schedule, plateau),
            ("schedule = { width = 32, warmup_updates = 10 }\n", ""),
            ("log_every = 50", "log_every = 2"),
            ("train = 640", "train = 192"),
            ("max_updates = 20", "max_updates = 30"),
        ],
    );
    let outcome = zoo.run(&["reproduce", &copied, "--arms", "fp32", "--format", "json"]).json();
    let run = PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap());
    let log = fs::read_to_string(run.join("log.jsonl")).unwrap();
    let fallen = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let rate = line["lr"].as_f64().filter(|rate| *rate < 0.5)?;
        Some((line["update"].to_string(), rate))
    };
    let (update, rate) = log.lines().find_map(fallen).unwrap_or_else(|| panic!("it never fell: {log}"));
    let call = ["replay", run.to_str().unwrap(), "--update", &update, "--format", "json"];
    let report = zoo.ends_with(0, &call).json();
    assert_eq!((&report["begun"], &report["logged"]["same"]), (&0.into(), &true.into()), "{report}");
    assert_eq!(number(&report, "lr")["replayed"], rate);
}
