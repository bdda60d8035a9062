//! A run that is killed repeatedly gives the weights, moments and losses of an uninterrupted run,
//! bit for bit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use safetensors::SafeTensors;
use serde_json::Value;

use crate::binary::Zoo;

/// Number of batches of the run: enough to kill it ten times, and still a few seconds.
const UPDATES: u64 = 240;

fn arguments() -> Vec<String> {
    let set = |key: &str, value: u64| format!("--set={key}={value}");
    let mut all: Vec<String> =
        ["reproduce", "reversal-transformer", "--tier=smoke", "--arms=mixed"].map(str::to_string).to_vec();
    all.extend([
        set("train.max_updates", UPDATES),
        set("train.log_every", 1),
        set("train.checkpoint.every_updates", 7),
    ]);
    all
}

fn start(zoo: &Zoo) -> Child {
    let arguments = arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    zoo.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn run_folder(zoo: &Zoo) -> Option<PathBuf> {
    let recipe = std::fs::read_dir(zoo.home().join("runs/reversal-transformer.smoke")).ok()?;
    recipe.map(|entry| entry.unwrap().path()).find(|path| path.is_dir())
}

/// Number of the last logged update.
fn logged_update(zoo: &Zoo) -> u64 {
    let text = run_folder(zoo)
        .and_then(|run| std::fs::read_to_string(run.join("log.jsonl")).ok())
        .unwrap_or_default();
    text.lines()
        .rev()
        .find_map(|line| serde_json::from_str::<Value>(line).ok()?["update"].as_u64())
        .unwrap_or(0)
}

/// Everything that must be equal: the arrays of the newest checkpoint as bytes, its state without
/// times, and the losses.
fn end(zoo: &Zoo) -> (BTreeMap<String, Vec<u8>>, Value, Vec<Value>) {
    let run = run_folder(zoo).unwrap();
    let newest = |folder: &Path| {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("state-")).max().unwrap()
    };
    let bytes = std::fs::read(newest(&run.join("checkpoints"))).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let arrays = tensors.iter().map(|(name, view)| (name.to_string(), view.data().to_vec())).collect();
    let trained: Value = serde_json::from_slice(&std::fs::read(run.join("trained.json")).unwrap()).unwrap();
    let log = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
    let kept = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter_map(|mut line| {
        // Only times and session entries may differ.
        line.as_object_mut().unwrap().remove("seconds");
        (line["event"] != "session").then_some(line)
    });
    // The digest of the last state covers its times.
    let trained = without(trained, &["seconds", "commits", "last_state"]);
    (arrays, trained, kept.collect())
}

fn without(mut value: Value, keys: &[&str]) -> Value {
    for key in keys {
        value.as_object_mut().unwrap().remove(*key);
    }
    value
}

#[test]
fn killed_ten_times_equals_left_alone() {
    let alone = Zoo::new();
    let status = start(&alone).wait().unwrap();
    assert_eq!(status.code(), Some(0), "a smoke tier that works ends with 0");
    let expected = end(&alone);

    let killed = Zoo::new();
    // Fixed random updates in ascending order. The run is killed as soon as its log has reached
    // one.
    let mut draw = 0x2545_f491_4f6c_dd1du64;
    let mut places: Vec<u64> = (0..10)
        .map(|_| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1 + (draw >> 33) % (UPDATES - 10)
        })
        .collect();
    places.sort_unstable();
    let mut kills = 0;
    for place in places {
        let mut child = start(&killed);
        let begun = Instant::now();
        while logged_update(&killed) < place && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(120), "no progress to update {place}");
            std::thread::sleep(Duration::from_millis(2));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            kills += 1;
        }
        child.wait().unwrap();
    }
    assert!(kills >= 8, "the run was killed {kills} times only");
    let status = start(&killed).wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let found = end(&killed);
    assert_eq!(expected.0.keys().collect::<Vec<_>>(), found.0.keys().collect::<Vec<_>>());
    assert!(expected.0.keys().any(|name| name.starts_with("optimizer/")), "{:?}", expected.0.keys());
    for (name, bytes) in &expected.0 {
        assert!(bytes == &found.0[name], "{name} differs");
    }
    assert_eq!(expected.1, found.1);
    assert_eq!(expected.2, found.2);
}
