//! `zoo track`, and the trackers of `zoo reproduce` and `zoo judge`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Zoo, files, small_copy};

/// CRC-32C, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// The data of the records of an event file.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let masked = |bytes: &[u8]| crc(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    let (bytes, mut at, mut found) = (fs::read(path).unwrap(), 0, Vec::new());
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        assert_eq!(bytes[at + 8..at + 12], masked(&bytes[at..at + 8]));
        let data = &bytes[at + 12..at + 12 + length];
        assert_eq!(bytes[at + 12 + length..at + 16 + length], masked(data));
        found.push(data.to_vec());
        at += length + 16;
    }
    assert_eq!(at, bytes.len());
    found
}

/// Fields of a message: number, and the bytes or the number.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>, u64)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                found.push((key >> 3, Vec::new(), varint(&mut bytes)));
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            5 => 4,
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, bytes[..length].to_vec(), 0));
        bytes = &bytes[length..];
    }
    found
}

fn field(bytes: &[u8], number: u64) -> Option<(Vec<u8>, u64)> {
    fields(bytes).into_iter().find(|(field, ..)| *field == number).map(|(_, bytes, value)| (bytes, value))
}

/// The scalars of an event file by tag: step, time, value.
fn scalars(path: &Path) -> BTreeMap<String, Vec<(u64, f64, f32)>> {
    let records = records(path);
    assert_eq!(field(&records[0], 3).unwrap().0, b"brain.Event:2");
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for event in &records[1..] {
        let time = f64::from_le_bytes(field(event, 1).unwrap().0.try_into().unwrap());
        let step = field(event, 2).unwrap().1;
        for (number, value, _) in fields(&field(event, 5).unwrap().0) {
            assert_eq!(number, 1);
            let tag = String::from_utf8(field(&value, 1).unwrap().0).unwrap();
            let plugin = field(&field(&field(&value, 9).unwrap().0, 1).unwrap().0, 1).unwrap().0;
            let tensor = field(&value, 8).unwrap().0;
            if plugin == b"text" {
                assert!(!field(&tensor, 8).unwrap().0.is_empty());
                continue;
            }
            assert_eq!(plugin, b"scalars");
            assert_eq!(field(&tensor, 1).unwrap().1, 1, "DT_FLOAT");
            let value = f32::from_le_bytes(field(&tensor, 5).unwrap().0.try_into().unwrap());
            found.entry(tag).or_default().push((step, time, value));
        }
    }
    found
}

/// The only event file below a folder.
fn event_file(folder: &Path) -> PathBuf {
    let all: Vec<PathBuf> = files(folder).into_keys().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

fn log(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("log.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines<'l>(log: &'l [Value], event: &str) -> Vec<&'l Value> {
    log.iter().filter(|line| line["event"] == event).collect()
}

#[test]
fn a_run_is_tracked_while_it_trains_and_afterwards_with_the_same_bytes() {
    let zoo = Zoo::new();
    let call =
        ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "mixed", "--format", "json"];
    let live = ["--tensorboard", "live/tb", "--mlflow", "live/mlruns"];
    let ended = zoo.ends_with(0, &[&call[..], &live].concat());
    assert!(
        ended.stderr.contains("tensorboard: live/tb/reversal-transformer.smoke/mixed-seed1-"),
        "{}",
        ended.stderr
    );
    let run = PathBuf::from(ended.json()["runs"][0]["folder"].as_str().unwrap());

    // Everything that the log and the evaluation have.
    let file = event_file(&zoo.home().join("live/tb"));
    let below = file.parent().unwrap().strip_prefix(zoo.home().join("live/tb")).unwrap().to_owned();
    assert_eq!(zoo.home().join("runs").join(below), run);
    let (log, found) = (log(&run), scalars(&file));
    let train = lines(&log, "train");
    assert_eq!(train.len(), 4);
    for (tag, key) in [
        ("train/loss", "loss"),
        ("train/learning_rate", "lr"),
        ("train/gradient_norm", "grad_norm"),
        ("train/loss_scale", "scale"),
        ("train/skipped_updates", "skipped"),
    ] {
        let due: Vec<(u64, u32)> = train
            .iter()
            .map(|line| {
                (line["update"].as_u64().unwrap(), (line[key].as_f64().unwrap_or(f64::NAN) as f32).to_bits())
            })
            .collect();
        let is: Vec<(u64, u32)> =
            found[tag].iter().map(|(step, _, value)| (*step, value.to_bits())).collect();
        assert_eq!(is, due, "{tag}");
    }
    let started = lines(&log, "session")[0]["time"].as_f64().unwrap();
    let seconds: f64 = train.iter().map(|line| line["seconds"].as_f64().unwrap()).sum();
    let last = found["train/loss"].last().unwrap().1;
    assert!(started > 1.7e9 && (last - started - seconds).abs() < 1e-3, "{started} {seconds} {last}");
    let name = train[0]["terms"].as_object().unwrap().keys().next().unwrap();
    assert_eq!(found[&format!("train/terms/{name}")].len(), 4);
    assert_eq!(found["train/tokens_per_second"].len(), 4);
    let evaluation: Value =
        serde_json::from_slice(&fs::read(run.join("eval/test.beam5.json")).unwrap()).unwrap();
    let bleu = evaluation["scores"][0]["value"].as_f64().unwrap();
    let score = found["test/beam5/bleu"][0];
    assert_eq!((score.0, score.2.to_bits()), (20, (bleu as f32).to_bits()));

    // Afterwards, with the same bytes, and only once.
    let call = ["track", "@last", "--tensorboard", "after/tb", "--mlflow", "live/mlruns", "--format", "json"];
    let table = &zoo.ends_with(0, &call).json()["runs"];
    assert_eq!((&table[0]["written"], &table[1]["written"]), (&"new".into(), &"unchanged".into()), "{table}");
    assert_eq!(table[0]["run"], "reversal-transformer.smoke:mixed:1");
    let after = event_file(&zoo.home().join("after/tb"));
    assert_eq!((fs::read(&after).unwrap(), after.file_name()), (fs::read(&file).unwrap(), file.file_name()));
    let before = files(&zoo.home().join("after"));
    zoo.ends_with(0, &["track", "@last", "--tensorboard", "after/tb"]);
    assert_eq!(files(&zoo.home().join("after")), before);

    mlflow(&zoo, &found);
    regrown(&zoo, &run, &after);
    judged(&zoo, bleu);
    outside(&zoo, &run);
}

/// MLflow's files have the same values.
fn mlflow(zoo: &Zoo, scalars: &BTreeMap<String, Vec<(u64, f64, f32)>>) {
    let store = zoo.home().join("live/mlruns");
    let found = files(&store);
    let ends: Vec<&PathBuf> = found.keys().filter(|path| path.ends_with("meta.yaml")).collect();
    assert_eq!(ends.len(), 2, "an experiment and a run");
    let folder =
        ends.iter().map(|path| path.parent().unwrap()).max_by_key(|path| path.components().count()).unwrap();
    let text = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
    for (tag, points) in scalars {
        let lines: Vec<(u64, f32)> = text(&format!("metrics/{tag}"))
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                (words[2].parse().unwrap(), words[1].parse::<f64>().unwrap() as f32)
            })
            .collect();
        let due: Vec<(u64, f32)> = points.iter().map(|(step, _, value)| (*step, *value)).collect();
        assert_eq!(format!("{lines:?}"), format!("{due:?}"), "{tag}");
    }
    assert_eq!(text("tags/mlflow.runName"), "reversal-transformer.smoke:mixed:1");
    assert_eq!(text("tags/zoo.arm"), "mixed");
    assert_eq!(text("params/train.max_updates"), "20");
    assert_eq!(text("params/precision.compute"), "fp16");
    let meta = text("meta.yaml");
    assert!(
        meta.contains("status: 3\n") && meta.contains("run_name: 'reversal-transformer.smoke:mixed:1'"),
        "{meta}"
    );
    assert!(!meta.contains("end_time: null"), "{meta}");
}

/// A log that grew is appended to; one that lost lines gets a new file in the place of the old one.
fn regrown(zoo: &Zoo, run: &Path, file: &Path) {
    let path = run.join("log.jsonl");
    let (whole, events) = (fs::read_to_string(&path).unwrap(), fs::read(file).unwrap());
    fs::remove_dir_all(run.join("eval")).unwrap();
    let cut = whole.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
    let track = || zoo.ends_with(0, &["track", "@last", "--tensorboard", "grown"]);
    fs::write(&path, &cut).unwrap();
    track();
    let grown = event_file(&zoo.home().join("grown"));
    let start = fs::read(&grown).unwrap();
    assert!(events.starts_with(&start) && start.len() < events.len());
    // A torn last line is not read yet.
    fs::write(&path, format!("{cut}{{\"event\":\"train\",\"upd")).unwrap();
    track();
    assert_eq!(fs::read(&grown).unwrap(), start);
    fs::write(&path, &whole).unwrap();
    track();
    let longer = fs::read(&grown).unwrap();
    assert!(longer.starts_with(&start) && longer.len() > start.len());
    fs::write(&path, &cut).unwrap();
    track();
    let replaced = event_file(&zoo.home().join("grown"));
    assert!(replaced.to_str().unwrap().ends_with(".zoo.2"), "{replaced:?}");
    assert_eq!(fs::read(&replaced).unwrap(), start);
    fs::write(&path, &whole).unwrap();
}

/// Names in the files of a run do not lead out of the tracker's folder.
fn outside(zoo: &Zoo, run: &Path) {
    let (card, log) = (run.join("run.json"), run.join("log.jsonl"));
    let (text, mut lines) = (fs::read_to_string(&card).unwrap(), fs::read_to_string(&log).unwrap());
    lines.push_str("{\"event\":\"train\",\"update\":21,\"terms\":{\"../../../../../../../out\":{\"mean\":1.0},\"../../../../../../near\":{\"mean\":1.0}}}\n");
    fs::write(&log, lines).unwrap();
    let run = run.to_str().unwrap();
    zoo.ends_with(0, &["track", run, "--mlflow", "deep/mlruns"]);
    assert!(!zoo.home().join("deep/near").exists() && !zoo.home().join("out").exists());
    fs::write(&card, text.replace("\"mixed\"", "\"../../../x\"")).unwrap();
    let ended = zoo.ends_with(7, &["track", run, "--tensorboard", "deep/tb"]);
    ended.says("is not a name of a folder");
    assert!(!zoo.home().join("deep/tb").exists() && !zoo.home().join("x-seed1").exists());
}

/// The scores of a tracked run are judged as those of any other program.
fn judged(zoo: &Zoo, bleu: f64) {
    let claims = ["judge", "reversal-transformer", "--claim", "1"];
    let of = |more: &[&str]| zoo.run(&[&claims[..], more, &["--format", "json"]].concat());
    let tag = ["--tensorboard", "live/tb", "--tag", "test/beam5/bleu", "--as-given"];
    let found = of(&tag).json();
    assert_eq!(found["scores"][0]["step"], 20, "{found}");
    assert_eq!(
        found["claims"][0]["verdict"]["measured"].as_f64().map(|value| value as f32),
        Some(bleu as f32)
    );
    let metric = ["--mlflow", "live/mlruns", "--metric", "test/beam5/bleu", "--as-given"];
    assert_eq!(of(&metric).json()["claims"][0]["verdict"]["measured"].as_f64(), Some(bleu));
    // One run is one seed, however often it is named.
    let twice = ["--tensorboard", "live/tb", "--tensorboard", "live", "--tag", "test/beam5/bleu"];
    of(&twice).says("are the same");
    of(&["--mlflow", "live/mlruns", "--mlflow", "live/mlruns", "--metric", "test/beam5/bleu"])
        .says("are the same");
    let best = of(&[&tag[..], &["--at", "best"]].concat()).json();
    assert!(best["notes"][0].as_str().unwrap().starts_with("--at best: "), "{best}");
    let text = zoo.run(&[&claims[..], &tag, &["--at", "best"]].concat());
    assert!(text.stdout.contains("\nSCORES\nrun"), "{}", text.stdout);
    assert!(text.stderr.contains("--at best: each score is the best"), "{}", text.stderr);
    of(&["--tensorboard", "live/tb", "--tag", "test/bleu"]).says("has the tag `test/bleu`");
    of(&["--mlflow", "live/tb", "--metric", "test/bleu"]).says("has no runs of MLflow");
    zoo.ends_with(2, &[&claims[..], &["--tensorboard", "live/tb"]].concat());
    zoo.ends_with(2, &[&claims[..], &["--scores", "1", "--at", "best"]].concat());
    // Damage names the file and the place.
    let file = event_file(&zoo.home().join("live/tb"));
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let ended = of(&tag);
    assert_eq!(ended.code, 7, "{}", ended.stderr);
    ended.says("the data of the record at byte ");
    assert!(ended.stderr.contains(".zoo: "), "{}", ended.stderr);
}

/// Killed between two saves, the run makes some updates again.
#[test]
fn an_event_file_grows_with_its_run_and_a_killed_run_leaves_no_updates_twice() {
    // Seconds of training: the run must not end before it is killed.
    const UPDATES: u64 = 1500;
    let zoo = Zoo::new();
    let updates = format!("train.max_updates={UPDATES}");
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32", "--set", &updates];
    let call =
        [&call[..], &["--set", "train.log_every=1", "--set", "train.checkpoint.every_updates=70"]].concat();
    let call = [&call[..], &["--tensorboard", "tb", "--mlflow", "mlruns"]].concat();
    let mut child = zoo.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let size = || -> usize {
        let folder = zoo.home().join("tb");
        if folder.exists() { files(&folder).values().map(Vec::len).sum() } else { 0 }
    };
    let begun = Instant::now();
    let mut wait_beyond = |bytes: usize| {
        while size() <= bytes {
            assert!(child.try_wait().unwrap().is_none(), "the run ended before its file grew");
            assert!(begun.elapsed() < Duration::from_secs(120));
            sleep(Duration::from_millis(5));
        }
        size()
    };
    let first = wait_beyond(0);
    wait_beyond(first);
    child.kill().unwrap();
    child.wait().unwrap();
    // Whole records.
    let before = scalars(&event_file(&zoo.home().join("tb")));
    assert!(!before["train/loss"].is_empty());
    let meta = |status: &str| {
        let found = files(&zoo.home().join("mlruns")).into_values();
        found.filter(|bytes| String::from_utf8_lossy(bytes).contains(status)).count()
    };
    assert_eq!(meta("status: 1\n"), 1, "it was running");

    zoo.ends_with(0, &call);
    let file = event_file(&zoo.home().join("tb"));
    let steps: Vec<u64> = scalars(&file)["train/loss"].iter().map(|(step, ..)| *step).collect();
    assert_eq!(steps, (1..=UPDATES).collect::<Vec<_>>());
    zoo.ends_with(0, &["track", "@last", "--tensorboard", "after"]);
    assert_eq!(fs::read(event_file(&zoo.home().join("after"))).unwrap(), fs::read(file).unwrap());
    assert_eq!(meta("status: 3\n"), 1);
    let metrics = files(&zoo.home().join("mlruns"));
    let (_, losses) = metrics.iter().find(|(path, _)| path.ends_with("metrics/train/loss")).unwrap();
    let steps: Vec<u64> = String::from_utf8_lossy(losses)
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(steps, (1..=UPDATES).collect::<Vec<_>>());
}

#[test]
fn several_processes_write_their_runs_and_mlflow_shows_a_stopped_one_as_killed() {
    let zoo = Zoo::new();
    let recipe = small_copy(&zoo, &[]);
    let call = ["reproduce", &recipe, "--arms", "fp32", "--seeds", "2", "--jobs", "2", "--yes"];
    zoo.run(&[&call[..], &["--tensorboard", "tb", "--mlflow", "mlruns"]].concat());
    let events = files(&zoo.home().join("tb"));
    assert_eq!(events.len(), 2, "{:?}", events.keys());
    let of = |name: &str| -> Vec<String> {
        let found = files(&zoo.home().join("mlruns")).into_iter().filter(|(path, _)| path.ends_with(name));
        found.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
    };
    let mut seeds = of("tags/zoo.seed");
    seeds.sort();
    assert_eq!(seeds, ["1", "2"]);
    // Without a result and without a process, the run was stopped.
    let run = events.keys().next().unwrap().parent().unwrap().strip_prefix(zoo.home().join("tb")).unwrap();
    fs::remove_file(zoo.home().join("runs").join(run).join("trained.json")).unwrap();
    zoo.ends_with(0, &["track", "--all", "--mlflow", "mlruns"]);
    let statuses = of("meta.yaml").concat();
    assert!(statuses.contains("status: 5\n") && statuses.contains("status: 3\n"), "{statuses}");
}

#[test]
fn what_cannot_be_tracked_says_why() {
    let zoo = Zoo::new();
    zoo.ends_with(2, &["track", "@last"]).says("no tracker is named");
    zoo.ends_with(2, &["track", "--tensorboard", "tb"]);
    zoo.ends_with(2, &["track", "no-such-run", "--tensorboard", "tb"]).says("no-such-run");
    let empty = zoo.ends_with(0, &["track", "--all", "--tensorboard", "tb", "--format", "json"]);
    assert_eq!(empty.json()["runs"], serde_json::json!([]));
    assert!(empty.stderr.contains("this home has no runs"), "{}", empty.stderr);
}
