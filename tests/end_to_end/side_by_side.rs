//! `zoo reproduce --jobs`: the runs of several processes are those of one process.

use serde_json::Value;

use crate::binary::{Zoo, small_copy};

fn run_folders(zoo: &Zoo, recipe: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(zoo.home().join("runs").join(recipe)).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn records(zoo: &Zoo) -> Vec<Value> {
    let text = std::fs::read_to_string(zoo.home().join("ledger.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn runs_of_several_processes_are_those_of_one() {
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--seeds", "2", "--threads", "1"];
    let ended = |jobs: &str| {
        let zoo = Zoo::new();
        let ended = zoo.ends_with(0, &[&call[..], &["--jobs", jobs, "--format", "json"]].concat());
        (zoo, ended)
    };
    let ((alone, one), (zoo, several)) = (ended("1"), ended("3"));
    let (of_one, told) = (one.json(), several.json());
    assert_eq!(told["scores"], of_one["scores"]);
    assert_eq!(told["scores"].as_array().unwrap().len(), 4);
    let reused = |found: &Value| -> Vec<Value> {
        found["runs"].as_array().unwrap().iter().map(|run| run["reused"].clone()).collect()
    };
    assert_eq!(reused(&told), reused(&of_one));
    let losses = |zoo: &Zoo| -> Vec<Value> {
        let logs = run_folders(zoo, "reversal-transformer.smoke").into_iter();
        let logs = logs.map(|run| std::fs::read_to_string(run.join("log.jsonl")).unwrap());
        let lines = logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>());
        let lines = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        lines.filter(|line| line["event"] == "train").map(|line| line["loss"].clone()).collect()
    };
    assert_eq!(losses(&zoo), losses(&alone));
    assert!(losses(&zoo).len() >= 4);
    for (arm, seed) in [("fp32", 1), ("mixed", 1), ("fp32", 2), ("mixed", 2)] {
        let line = format!("{arm} seed {seed}: train reversal-transformer {arm}, seed {seed}: 20 of 20");
        assert!(several.stderr.contains(&line), "{line} is not in\n{}", several.stderr);
    }
    let of = |end: &str| records(&zoo).iter().filter(|record| record["end"] == end).count();
    assert_eq!((of("started"), of("finished")), (4, 1));
    zoo.ends_with(0, &["ledger", "verify"]);
    // With complete runs nothing is started.
    let again = zoo.ends_with(0, &[&call[..], &["--jobs", "3"]].concat());
    assert!(!again.stderr.contains("train "), "{}", again.stderr);
}

#[test]
fn processes_share_the_threads_unless_their_number_is_given() {
    let threads = |given: &[&str]| {
        let zoo = Zoo::new();
        let call =
            ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32", "--jobs", "256"];
        zoo.ends_with(0, &[&call[..], given].concat());
        let run = run_folders(&zoo, "reversal-transformer.smoke").remove(0);
        let card: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
        let note = records(&zoo).pop().unwrap()["notes"][0].as_str().unwrap().to_owned();
        (card["environment"]["threads"].as_u64().unwrap(), note.split(' ').next().unwrap().to_owned())
    };
    assert_eq!(threads(&[]), (1, "1".to_owned()));
    assert_eq!(threads(&["--threads", "3"]), (3, "3".to_owned()));
}

#[test]
fn a_process_that_fails_is_named() {
    let zoo = Zoo::new();
    let recipe = small_copy(&zoo, &[]);
    let call = ["reproduce", &recipe, "--arms", "fp32", "--seeds", "2", "--jobs", "1"];
    zoo.run(&call);
    let folders = run_folders(&zoo, "copied");
    assert_eq!(folders.len(), 2);
    for folder in &folders {
        std::fs::remove_dir_all(folder.join("eval")).unwrap();
        std::fs::remove_file(folder.join("trained.json")).unwrap();
    }
    let lock = std::fs::File::options().write(true).open(folders[0].join("lock")).unwrap();
    lock.lock().unwrap();
    let call = ["reproduce", &recipe, "--arms", "fp32", "--seeds", "2", "--jobs", "2"];
    let ended = zoo.ends_with(1, &call);
    assert!(ended.stderr.contains("another process trains"), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: fp32 seed 1 ended with exit code 1"), "{}", ended.stderr);
    assert!(ended.stderr.contains("fp32 seed 2: "), "{}", ended.stderr);
    // Its process has ended, too.
    std::fs::File::open(folders[1].join("lock")).unwrap().try_lock().unwrap();
    drop(lock);
    zoo.run(&call);
    assert!(folders.iter().all(|folder| folder.join("trained.json").is_file()));
    zoo.ends_with(2, &["reproduce", &recipe, "--jobs", "0"]);
}

/// Starts two runs of 4,000 updates, and waits until both train.
#[cfg(unix)]
fn two_runs(zoo: &Zoo) -> std::process::Child {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let recipe = small_copy(zoo, &[("max_updates = 20", "max_updates = 4000")]);
    let call =
        ["reproduce", &recipe, "--arms", "fp32", "--seeds", "2", "--jobs", "2", "--set", "train.log_every=1"];
    let mut parent = zoo.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let trains = |folder: &&std::path::PathBuf| {
        std::fs::read_to_string(folder.join("log.jsonl")).is_ok_and(|log| log.contains("\"train\""))
    };
    let both = || {
        zoo.home().join("runs/copied").is_dir()
            && run_folders(zoo, "copied").iter().filter(trains).count() == 2
    };
    while !both() {
        assert!(begun.elapsed() < Duration::from_secs(120) && parent.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    parent
}

/// Whether no process trains a run any more, and the run has a state.
#[cfg(unix)]
fn is_saved(folder: &std::path::Path) -> bool {
    let free = std::fs::File::open(folder.join("lock")).unwrap().try_lock().is_ok();
    free && std::fs::read_dir(folder.join("checkpoints")).is_ok_and(|mut states| states.next().is_some())
}

#[cfg(unix)]
fn interrupted(zoo: &Zoo) -> usize {
    zoo.ends_with(0, &["ledger", "verify"]);
    records(zoo).iter().filter(|record| record["end"] == "interrupted").count()
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_every_run() {
    let zoo = Zoo::new();
    let mut parent = two_runs(&zoo);
    let kill = std::process::Command::new("kill").args(["-INT", &parent.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(parent.wait().unwrap().code(), Some(6));
    // Its processes have ended before it does.
    assert!(run_folders(&zoo, "copied").iter().all(|folder| is_saved(folder)));
    assert_eq!(interrupted(&zoo), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn the_runs_of_a_killed_process_are_saved() {
    use std::time::{Duration, Instant};

    let zoo = Zoo::new();
    let mut parent = two_runs(&zoo);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let begun = Instant::now();
    while !run_folders(&zoo, "copied").iter().all(|folder| is_saved(folder)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the processes go on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(interrupted(&zoo), 2);
}
