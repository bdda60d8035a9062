//! The smoke tiers, trained, decoded, scored and judged by the real binary.

use safetensors::SafeTensors;
use std::path::{Path, PathBuf};

use crate::binary::{Zoo, in_root, run_folders};

/// Exit code of a smoke tier that works, although its scores are not comparable with published
/// ones.
const WORKED: i32 = 0;
/// Exit code of a run with a changed key.
const NOTHING_COMPARABLE: i32 = 12;

const REVERSAL: [&str; 5] = ["reproduce", "reversal-transformer", "--tier", "smoke", "--format=json"];

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn reversal_goes_from_recipe_to_verdicts_and_is_not_done_twice() {
    let zoo = Zoo::new();
    let first = zoo.ends_with(WORKED, &REVERSAL);
    let next = "next: `zoo reproduce reversal-transformer --plan`";
    assert!(first.stderr.contains(next), "{}", first.stderr);
    let outcome = first.json();
    let judged = outcome["claims"].as_array().unwrap();
    let kinds: Vec<(&str, &str)> = (judged.iter())
        .map(|one| (one["verdict"]["kind"].as_str().unwrap(), one["arm"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, [("bound", "fp32"), ("bound", "mixed"), ("parity", "mixed")]);
    for one in judged {
        assert_eq!(one["verdict"]["outcome"], "NOT-COMPARABLE", "{one}");
        assert!(one["verdict"]["measured"].is_number(), "{one}");
    }
    let runs = run_folders(&outcome);
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let names: Vec<String> = files_below(run).iter().map(|f| f.display().to_string()).collect();
        for part in ["run.json", "recipe.toml", "log.jsonl", "trained.json", "eval"] {
            assert!(names.iter().any(|name| name.contains(part)), "{part} is not among {names:?}");
        }
    }

    // The second call reuses all results.
    let again = zoo.ends_with(WORKED, &REVERSAL);
    assert_eq!(again.json()["claims"], outcome["claims"]);
    assert!(!again.stderr.contains("train"), "{}", again.stderr);

    // The recorded results can be recomputed.
    let listed = zoo.ends_with(0, &["ledger", "list", "--format", "json"]).part("records");
    assert!(!listed.as_array().unwrap().is_empty());
    assert!(listed.as_array().unwrap().iter().all(|row| row["tier"] == "smoke"), "{listed}");
    zoo.ends_with(0, &["ledger", "verify"]);
    let recheck = zoo.ends_with(0, &["ledger", "recheck", "--format", "json"]).json();
    assert!(
        recheck["scores"].as_u64().unwrap() >= 2 && recheck["verdicts"].as_u64().unwrap() >= 3,
        "{recheck}"
    );
    let shown = zoo.ends_with(0, &["show", "reversal-transformer", "--format", "json"]).json();
    assert!(["smoke", "small-run", "full-run"].contains(&shown["evidence"].as_str().unwrap()), "{shown}");

    // The weights can be used, and a damaged file is reported by name.
    let run = runs[0].to_str().unwrap();
    let lines = zoo.run_with_input(&["infer", run], "α β γ\n\nδ ε\n");
    assert_eq!((lines.code, lines.stdout.lines().count()), (0, 3), "{}", lines.stderr);
    let scores = zoo.ends_with(0, &["evaluate", run, "--format", "json"]).part("evaluations");
    assert_eq!(scores[0]["eval"], "test");
    assert_eq!(scores[0]["scores"][0]["value"], outcome["claims"][0]["verdict"]["measured"]);
    zoo.ends_with(2, &["evaluate", run, "--eval", "tset"]).says("no evaluation set `tset`");
    zoo.ends_with(2, &["infer", run, "--decode", "beam50"]).says("no search `beam50`");
    let files = files_below(&runs[0]);
    let hypotheses = (files.iter())
        .find(|f| {
            let name = f.display().to_string();
            name.contains("eval") && !name.ends_with(".json") && !name.contains("reference")
        })
        .unwrap_or_else(|| panic!("no hypotheses among {files:?}"));
    flip(hypotheses);
    let damaged = zoo.ends_with(7, &REVERSAL);
    damaged.says(hypotheses.file_name().unwrap().to_str().unwrap());
}

/// The weights of the newest state of a run.
fn newest_weights(run: &Path) -> Vec<f32> {
    let mut states = files_below(&run.join("checkpoints")).into_iter();
    let newest = states.rfind(|file| file.file_name().unwrap().to_str().unwrap().starts_with("state-"));
    let bytes = std::fs::read(newest.unwrap()).unwrap();
    let arrays = SafeTensors::deserialize(&bytes).unwrap();
    let weights = arrays.iter().filter(|(name, _)| name.starts_with("weights/"));
    weights.flat_map(|(_, view)| view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))).collect()
}

#[test]
fn arms_without_masters_go_from_recipe_to_verdicts_and_keep_weights_of_their_type() {
    let zoo = Zoo::new();
    let arms = ["fp32", "mixed-no-masters", "bf16-no-masters"];
    let list = arms.join(",");
    let name = "reversal-transformer-precision";
    let outcome =
        zoo.ends_with(WORKED, &["reproduce", name, "--tier=smoke", "--arms", &list, "--format=json"]).json();
    for one in outcome["claims"].as_array().unwrap() {
        let judged = arms.contains(&one["arm"].as_str().unwrap());
        assert_eq!(one["verdict"]["measured"].is_number(), judged, "{one}");
    }
    // fp16 has 13 bits less than FP32 and multiples of 2^-24; bf16 has 16 bits less.
    let is_fp16 = |x: &f32| x.to_bits().is_multiple_of(1 << 13) && (x * 2f32.powi(24)).fract() == 0.0;
    let is_bf16 = |x: &f32| x.to_bits().is_multiple_of(1 << 16);
    let runs = run_folders(&outcome);
    assert_eq!(runs.len(), 3);
    for (arm, run) in arms.iter().zip(&runs) {
        let weights = newest_weights(run);
        assert!(weights.len() > 1_000, "{arm}");
        let (fp16, bf16) = (weights.iter().all(is_fp16), weights.iter().all(is_bf16));
        match *arm {
            "fp32" => assert!(!fp16 && !bf16),
            "mixed-no-masters" => assert!(fp16 && !bf16),
            // Most values of bf16 are values of fp16 too.
            _ => assert!(bf16),
        }
    }
    // A second call reuses the runs, and they are used like any other.
    assert_eq!(
        zoo.ends_with(WORKED, &["reproduce", name, "--tier=smoke", "--arms", &list, "--format=json"]).json()
            ["claims"],
        outcome["claims"]
    );
    zoo.run_with_input(&["infer", runs[1].to_str().unwrap()], "α β γ\n");
}

#[test]
fn every_recipe_has_a_smoke_tier_that_runs_offline() {
    let zoo = Zoo::new();
    let all = zoo.ends_with(0, &["list", "--format", "json"]).part("recipes");
    for row in all.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        if name == "reversal-transformer" {
            continue;
        }
        let arguments = ["reproduce", name, "--tier", "smoke", "--offline", "--format", "json"];
        let outcome = zoo.ends_with(WORKED, &arguments).json();
        for one in outcome["claims"].as_array().unwrap() {
            let verdict = &one["verdict"];
            assert!(
                ["NOT-COMPARABLE", "NOT-RUN", "NOT-JUDGEABLE"]
                    .contains(&verdict["outcome"].as_str().unwrap()),
                "{name}: {one}"
            );
        }
    }
    zoo.ends_with(0, &["ledger", "verify"]);
    zoo.ends_with(0, &["ledger", "recheck"]);
}

/// The reversal recipe at a small size, without a tier, so that its claims are judged.
fn small_copy(zoo: &Zoo) -> PathBuf {
    let mut text =
        std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
            .unwrap();
    for (old, new) in [
        ("name = \"reversal-transformer\"", "name = \"small\""),
        ("max_length = 50", "max_length = 6"),
        ("train = 10000", "train = 256"),
        ("valid = 1000", "valid = 16"),
        ("test = 2000", "test = 16"),
        ("lines = 1000", "lines = 16"),
        ("lines = 2000", "lines = 16"),
        ("sentences = 64", "sentences = 16"),
        ("max_updates = 800", "max_updates = 20"),
    ] {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    zoo.file("small.toml", &text)
}

#[test]
fn a_changed_run_reproduces_nothing_unless_the_key_is_free() {
    let zoo = Zoo::new();
    let recipe = small_copy(&zoo);
    let reproduce = |set: &str, code: i32| {
        let arguments =
            ["reproduce", recipe.to_str().unwrap(), "--arms", "fp32", "--set", set, "--format", "json"];
        zoo.ends_with(code, &arguments).json()
    };
    let changed = reproduce("train.max_updates=10", NOTHING_COMPARABLE);
    let why = changed["claims"][0]["verdict"]["explanation"].as_str().unwrap().to_owned();
    assert!(why.contains("--set train.max_updates=10"), "{why}");
    let free = reproduce("train.log_every=1", 10);
    assert_eq!(free["claims"][0]["verdict"]["outcome"], "NOT-REPRODUCED");
}

#[test]
fn another_search_of_the_same_name_is_another_evaluation() {
    let zoo = Zoo::new();
    let call = [&REVERSAL[..], &["--arms", "fp32"]].concat();
    let first = zoo.ends_with(WORKED, &call).json();
    let eval = run_folders(&first)[0].join("eval");
    let before: Vec<(PathBuf, Vec<u8>)> =
        files_below(&eval).into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
    let changed =
        [&call[..], &["--set", "decode.beam5.beam=1", "--set", "decode.beam5.max_length.extra=0"]].concat();
    for _ in 0..2 {
        let second = zoo.ends_with(WORKED, &changed).json();
        assert_eq!(run_folders(&second), run_folders(&first), "training is the same");
        for (file, bytes) in &before {
            assert_eq!(&std::fs::read(file).unwrap(), bytes, "{} was overwritten", file.display());
        }
        let evaluations =
            files_below(&eval).iter().filter(|file| file.extension().unwrap() == "json").count();
        assert_eq!(evaluations, before.len() / 3 + 1, "decoded once more, and not again");
    }
    assert_eq!(zoo.ends_with(WORKED, &call).json()["scores"], first["scores"]);
}
