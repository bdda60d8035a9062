//! `zoo cache` by the real binary.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::binary::{Zoo, files};

/// A small run with two states, and its record.
const CALL: [&str; 8] = [
    "reproduce",
    "reversal-transformer",
    "--tier",
    "smoke",
    "--arms",
    "fp32",
    "--set",
    "train.checkpoint.every_updates=5",
];

fn reversal(zoo: &Zoo) -> PathBuf {
    let outcome = zoo.run(&[&CALL[..], &["--format", "json"]].concat()).json();
    PathBuf::from(outcome["runs"][0]["folder"].as_str().unwrap())
}

/// The rows of a plan, as (action, kind, entry, why).
fn plan(zoo: &Zoo, options: &[&str]) -> Vec<[String; 4]> {
    let call = [&["cache", "gc", "--plan", "--format", "json"][..], options].concat();
    let rows = &zoo.ends_with(0, &call).json()["entries"];
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let each = rows.as_array().unwrap().iter();
    each.map(|row| ["action", "kind", "entry", "why"].map(|key| text(row, key))).collect()
}

/// `action kind` of each row of a plan.
fn actions(zoo: &Zoo, options: &[&str]) -> Vec<String> {
    plan(zoo, options).into_iter().map(|[action, kind, ..]| format!("{action} {kind}")).collect()
}

fn states(run: &Path) -> usize {
    let names = fs::read_dir(run.join("checkpoints")).unwrap();
    names.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("state-")).count()
}

/// Makes a file or folder look as if it was written days ago.
fn aged(path: &Path, days: u64) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| aged(&entry.unwrap().path(), days));
        return;
    }
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 24 * 3600);
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn an_empty_home_has_nothing_of_any_kind() {
    let zoo = Zoo::new();
    let rows = &zoo.ends_with(0, &["cache", "--format", "json"]).json()["kinds"];
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 10, "{rows:?}");
    assert!(rows.iter().all(|row| row["files"] == 0 && row["bytes"] == 0), "{rows:?}");
    assert_eq!(zoo.ends_with(0, &["cache", "ls", "runs", "--format", "json"]).json()["entries"], json!([]));
    zoo.ends_with(0, &["cache", "verify"]);
    zoo.ends_with(0, &["cache", "gc"]);
    assert!(files(zoo.home()).is_empty());
}

#[test]
fn sizes_by_kind_add_up_to_those_of_all_files() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    zoo.file("downloads/host/a.tgz", "12345");
    zoo.file("downloads/host/a.tgz.fetched.json", "{}");
    zoo.file("downloads/host/b.tgz.part", "123");
    zoo.file("corpora/gone/a/b", "1234567");
    zoo.file("kernels/of-an-older-zoo.db", "1");
    zoo.file("kernels/0123456789ab/card.db", "12");
    zoo.file("runs/.tmpabc123", "12");
    zoo.file("notes.txt", "1");
    let rows = &zoo.ends_with(0, &["cache", "ls", "--format", "json"]).json()["kinds"];
    let of = |kind: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["kind"] == kind).unwrap();
        ["entries", "files", "bytes"].map(|key| row[key].as_u64().unwrap())
    };
    assert_eq!(of("downloads"), [2, 3, 10]);
    assert_eq!(of("corpora"), [1, 1, 7]);
    assert_eq!(of("kernels"), [2, 2, 3]);
    assert_eq!(of("temporary"), [1, 1, 2]);
    assert_eq!((of("prepared")[0], of("runs")[0], of("checkpoints")[0]), (1, 1, 1));
    let checkpoints: u64 = files(&run.join("checkpoints")).values().map(|bytes| bytes.len() as u64).sum();
    assert_eq!(of("checkpoints")[2], checkpoints);
    let sum: u64 = rows.as_array().unwrap().iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
    let all: u64 = files(zoo.home()).values().map(|bytes| bytes.len() as u64).sum();
    assert_eq!(sum, all);
    let text = zoo.ends_with(0, &["cache"]).stdout;
    assert!(text.lines().last().unwrap().starts_with("total "), "{text}");

    // The entries, and what needs them.
    let rows = &zoo.ends_with(0, &["cache", "ls", "--entries", "--format", "json"]).json()["entries"];
    let entry = |kind: &str| -> Vec<(String, String, String)> {
        let rows = rows.as_array().unwrap().iter().filter(|row| row["kind"] == kind);
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let needed = |row: &Value| {
            let all = row["needed_by"].as_array().unwrap().iter();
            all.map(|need| need.as_str().unwrap()).collect::<Vec<_>>().join("; ")
        };
        rows.map(|row| (text(row, "entry"), text(row, "of"), needed(row))).collect()
    };
    let name = "reversal-transformer.smoke:fp32:1".to_owned();
    let [prepared] = &entry("prepared")[..] else { panic!("{rows}") };
    assert!(prepared.1.contains("recipes reversal-"), "{prepared:?}");
    assert_eq!(prepared.2, format!("run {name}"));
    // The ledger has the start of the run, then its record.
    assert_eq!(entry("runs"), [(name.clone(), "evaluated".to_owned(), "record 1".to_owned())]);
    let checkpoints = entry("checkpoints");
    let evaluated = |needed: &str| (name.clone(), "evaluated".to_owned(), needed.to_owned());
    assert_eq!(checkpoints, [evaluated("evaluation of the run"), evaluated("")]);
    assert_eq!(entry("hypotheses").len(), 1);
    assert_eq!(entry("hypotheses")[0].2, "record 1");
    assert_eq!(entry("downloads")[1].1, "unfinished");
    for format in ["human", "csv", "md"] {
        let text = zoo.ends_with(0, &["cache", "ls", "runs", "--format", format]).stdout;
        assert!(text.contains(&name), "{text}");
    }
    zoo.ends_with(2, &["cache", "ls", "weights"]);
}

#[test]
fn damage_is_named_with_its_mend_and_its_own_exit_code() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    let whole = zoo.ends_with(0, &["cache", "verify", "--format", "json"]);
    assert_eq!(whole.json()["faults"], json!([]));
    assert!(whole.stderr.contains("checkpoints: 1 file, "), "{}", whole.stderr);
    assert!(zoo.ends_with(0, &["cache", "verify"]).stdout.is_empty());
    let find = |folder: &str, ending: &str| {
        let found = files(&zoo.home().join(folder)).into_keys();
        found.into_iter().filter(|path| path.to_str().unwrap().ends_with(ending)).max().unwrap()
    };
    let check = |code: i32, path: &Path, kind: &str, fault: &str, mend: &str| {
        let ended = zoo.ends_with(code, &["cache", "verify", "--format", "json"]);
        let rows = &ended.json()["faults"];
        let named =
            |row: &&Value| Path::new(row["file"].as_str().unwrap()) == path.strip_prefix(zoo.home()).unwrap();
        let row = rows.as_array().unwrap().iter().find(named).unwrap_or_else(|| panic!("{path:?}: {rows}"));
        assert_eq!(row["kind"], kind, "{row}");
        assert!(row["fault"].as_str().unwrap().contains(fault), "{row}");
        assert!(row["mend"].as_str().unwrap().contains(mend), "{row}");
        ended.says("damaged or missing");
        // A kind by itself.
        zoo.ends_with(code, &["cache", "verify", kind]);
        let other = if kind == "ledger" { "prepared" } else { "ledger" };
        zoo.ends_with(0, &["cache", "verify", other]);
    };
    for (code, folder, ending, kind, mend) in [
        (4, "prepared", "train.ids", "prepared", "remove"),
        (7, "runs", ".safetensors", "checkpoints", "restore it"),
        (7, "runs", "log.jsonl", "runs", "record 1 has its digest"),
        (7, "hypotheses", ".hyp.txt", "hypotheses", "copy runs/"),
        (7, "", "ledger.jsonl", "ledger", ""),
    ] {
        let path = find(folder, ending);
        let kept = fs::read(&path).unwrap();
        let mut bytes = kept.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        check(code, &path, kind, "", mend);
        if kind != "ledger" {
            fs::remove_file(&path).unwrap();
            check(code, &path, kind, "", "");
        }
        fs::write(&path, kept).unwrap();
    }
    // What a run keeps for the user's own input is one thing, whichever file is damaged.
    let vocabulary = run.join("vocabulary");
    for file in files(&vocabulary).into_keys() {
        let kept = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        check(7, &vocabulary, "runs", "", "make the run again");
        fs::write(&file, "{}").unwrap();
        check(7, &vocabulary, "runs", "", "make the run again");
        fs::write(&file, kept).unwrap();
    }
    zoo.ends_with(0, &["cache", "verify"]);
    // Without a record, an evaluation is compared with its own digests.
    fs::remove_file(zoo.home().join("ledger.jsonl")).unwrap();
    let hypotheses = find("runs", ".hyp.txt");
    fs::write(&hypotheses, "changed\n").unwrap();
    let evaluation = find("runs/reversal-transformer.smoke", "beam5.json");
    check(7, &evaluation, "runs", "was changed", "to decode again");
    // A run that is being trained changes all the time.
    let lock = fs::File::options().write(true).open(run.join("lock")).unwrap();
    lock.lock().unwrap();
    let skipped = zoo.ends_with(0, &["cache", "verify"]);
    assert!(skipped.stderr.contains("was not read: a process trains"), "{}", skipped.stderr);
}

#[test]
fn downloads_are_compared_with_the_digests_of_their_fetch() {
    let zoo = Zoo::new();
    let record = json!({
        "from": "by hand", "checked": "unknown", "verified": 1, "stamp": { "bytes": 3, "modified_ns": 1 },
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    });
    let file = zoo.file("downloads/host/a", "abc");
    zoo.ends_with(0, &["cache", "verify", "downloads"]);
    zoo.file("downloads/host/a.fetched.json", &record.to_string());
    zoo.ends_with(0, &["cache", "verify", "downloads"]);
    fs::write(&file, "abd").unwrap();
    let rows = &zoo.ends_with(4, &["cache", "verify", "--format", "json"]).json()["faults"];
    assert_eq!(rows[0]["file"], "downloads/host/a");
    assert!(rows[0]["mend"].as_str().unwrap().starts_with("remove it and fetch again"), "{rows}");
    fs::remove_file(&file).unwrap();
    zoo.ends_with(4, &["cache", "verify", "downloads"]);
}

#[test]
fn plain_gc_removes_only_what_is_certainly_useless() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    zoo.file("prepared/own-0123456789ab/manifest.jsonl", "xxx");
    let kept: Vec<PathBuf> = files(zoo.home()).into_keys().collect();
    zoo.file("runs/reversal-transformer.smoke/.tmpabc123", "x");
    zoo.file("hypotheses/.tmpabc124", "x");
    zoo.file(".scratch-abc123/weights", "xx");
    zoo.file(".scratch-abc123.lock", "");
    zoo.file("prepared/withdrawn-corpus-0123456789ab/manifest.jsonl", "xxx");
    // Live temporary files stay.
    let held = zoo.file("downloads/.tmpabc125", "");
    let lock = fs::File::options().write(true).open(&held).unwrap();
    lock.lock().unwrap();

    let mut found = actions(&zoo, &[]);
    found.sort_unstable();
    let temporary = "remove temporary";
    assert_eq!(found, ["keep temporary", "remove prepared", temporary, temporary, temporary]);
    assert!(
        run.join("trained.json").is_file() && zoo.home().join(".scratch-abc123").is_dir(),
        "only planned"
    );

    // Without a terminal, nothing is removed without --yes.
    let refused = zoo.ends_with(5, &["cache", "gc"]);
    refused.says("removes 4 entries, 7 B for good; refusing without confirmation");
    assert!(zoo.home().join(".scratch-abc123").is_dir());
    let done = zoo.ends_with(0, &["cache", "gc", "--yes"]);
    assert!(done.stderr.contains("removed: 4 entries, 7 B"), "{}", done.stderr);
    assert!(done.stdout.contains("keep"), "{}", done.stdout);
    let left: Vec<PathBuf> = files(zoo.home()).into_keys().filter(|path| *path != held).collect();
    assert_eq!(left, kept);
    assert!(held.exists());
    zoo.ends_with(0, &["cache", "verify", "runs", "checkpoints", "hypotheses", "ledger"]);
}

#[test]
fn checkpoints_of_an_ended_run_are_removed_but_those_that_evaluation_needs() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    assert_eq!(states(&run), 2);
    assert_eq!(actions(&zoo, &["--checkpoints"]), ["keep checkpoints", "remove checkpoints"]);
    // A locked run is left alone.
    let lock = fs::File::options().write(true).open(run.join("lock")).unwrap();
    lock.lock().unwrap();
    let locked = plan(&zoo, &["--checkpoints", "--runs", "--older", "1", "--force"]);
    assert!(
        locked.iter().all(|[action, .., why]| action == "keep" && why.contains("a process")),
        "{locked:?}"
    );
    zoo.ends_with(0, &["cache", "gc", "--checkpoints", "--force", "--yes"]);
    assert_eq!(states(&run), 2);
    drop(lock);
    let ended =
        &zoo.ends_with(0, &["cache", "gc", "--checkpoints", "--yes", "--format", "json"]).json()["entries"];
    assert_eq!((&ended[0]["action"], &ended[1]["action"]), (&json!("keep"), &json!("remove")));
    assert_eq!(states(&run), 1);
    fs::remove_dir_all(run.join("eval")).unwrap();
    zoo.ends_with(0, &["evaluate", "@last"]);
    // A run that has not ended can continue from each of its states.
    fs::remove_file(run.join("trained.json")).unwrap();
    let interrupted = plan(&zoo, &["--checkpoints"]);
    assert_eq!(interrupted[0][3], "needed: the run is interrupted");
    assert_eq!(interrupted.len(), 1);
}

#[test]
fn what_a_record_needs_is_kept_without_force() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    aged(&run, 40);
    let needs = ["--runs", "--hypotheses", "--older", "30"];
    let kept = plan(&zoo, &needs);
    let whys: Vec<&str> = kept.iter().map(|[.., why]| why.as_str()).collect();
    assert_eq!(whys, ["needed: record 1", "needed: record 1"], "{kept:?}");
    assert_eq!(actions(&zoo, &["--prepared"]), ["keep prepared"], "the run reads it");
    zoo.ends_with(0, &[&["cache", "gc", "--yes"][..], &needs].concat());
    zoo.ends_with(0, &["ledger", "recheck"]);
    // A damaged ledger says nothing about what is needed.
    let ledger = zoo.home().join("ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, text.replacen("\"schema\"", "\"schemo\"", 1)).unwrap();
    zoo.ends_with(7, &[&["cache", "gc", "--plan"][..], &needs].concat()).says("what records need is unknown");
    zoo.ends_with(0, &["cache", "gc", "--plan"]);
    fs::write(&ledger, &text).unwrap();

    // Without the ledger, no record needs the run; the files of the home outlive it.
    fs::rename(&ledger, zoo.home().join("elsewhere.jsonl")).unwrap();
    // A command keeps outputs before it writes their record.
    let [[action, .., why]] = &plan(&zoo, &["--hypotheses", "--force"])[..] else { panic!() };
    assert_eq!(
        (action.as_str(), why.as_str()),
        ("keep", "written within the last hour: its record may follow")
    );
    aged(&zoo.home().join("hypotheses"), 1);
    assert_eq!(actions(&zoo, &["--hypotheses"]), ["remove hypotheses"]);
    fs::rename(zoo.home().join("elsewhere.jsonl"), &ledger).unwrap();
    let forced = [&["cache", "gc", "--force", "--yes"][..], &needs[..1], &needs[2..]].concat();
    let text = zoo.ends_with(0, &forced).stdout;
    assert!(text.contains("forced, needed: record 1"), "{text}");
    assert!(!run.exists() && !run.parent().unwrap().exists() && zoo.home().join("runs").is_dir());
    // The record is still complete: only the folder of the run is gone.
    zoo.ends_with(0, &["ledger", "recheck"]);
    assert_eq!(actions(&zoo, &["--prepared"]), ["remove prepared"], "no run reads it");
    zoo.ends_with(0, &["cache", "gc", "--prepared", "--yes"]);
    assert!(!zoo.home().join("prepared").read_dir().unwrap().any(|_| true));
}

#[test]
fn the_newest_runs_of_a_recipe_arm_and_seed_are_kept() {
    let zoo = Zoo::new();
    let first = reversal(&zoo);
    fs::remove_file(zoo.home().join("ledger.jsonl")).unwrap();
    let other = [&CALL[..], &["--set", "data.reader.train=128", "--format", "json"]].concat();
    let second = PathBuf::from(zoo.run(&other).json()["runs"][0]["folder"].as_str().unwrap());
    fs::remove_file(zoo.home().join("ledger.jsonl")).unwrap();
    zoo.ends_with(2, &["cache", "gc", "--runs"]).says("--runs needs --keep N or --older DAYS");
    zoo.ends_with(2, &["cache", "gc", "--older", "3"]).says("need a kind");
    zoo.ends_with(2, &["cache", "gc", "--keep", "1"]);
    assert_eq!(actions(&zoo, &["--runs", "--keep", "2"]), ["keep runs", "keep runs"]);
    let rows = plan(&zoo, &["--runs", "--keep", "1"]);
    assert_eq!(rows[0][3], "the newest of its arm and seed");
    assert_eq!((rows[1][0].as_str(), rows[1][3].as_str()), ("remove", "no record names it"));
    zoo.ends_with(0, &["cache", "gc", "--runs", "--keep", "1", "--yes"]);
    assert!(!first.exists() && second.exists());
}

/// Takes the lock of a download or archive, as a process that fetches or unpacks it does.
fn locked(zoo: &Zoo, what: &str) -> fs::File {
    let name = &hex::encode(Sha256::digest(what))[..16];
    let lock = zoo.file(&format!("locks/{name}.lock"), "");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn downloads_go_with_the_files_beside_them_unless_a_process_fetches_them() {
    let zoo = Zoo::new();
    let part = zoo.file("downloads/host/a.tgz.part", "123");
    let record = zoo.file("downloads/host/b.tgz.fetched.json", "{}");
    let other = zoo.file("downloads/host/b.tgz", "123");
    let member = zoo.file("corpora/gone/c.tgz/member", "123");
    let locks = [locked(&zoo, "host/a.tgz"), locked(&zoo, "corpora/gone/c.tgz")];
    // No corpus of this program has the complete ones: nobody could fetch them again.
    let kept = ["remove downloads", "keep downloads", "keep corpora"];
    assert_eq!(actions(&zoo, &["--downloads"]), kept);
    let all = ["remove downloads", "remove downloads", "remove corpora"];
    assert_eq!(actions(&zoo, &["--downloads", "--force"]), all);
    zoo.ends_with(0, &["cache", "gc", "--downloads", "--force", "--older", "1", "--yes"]);
    assert!(other.exists(), "it was written today");
    let call = ["cache", "gc", "--downloads", "--force", "--yes", "--format", "json"];
    let rows = &zoo.ends_with(0, &call).json()["entries"];
    let whys: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["why"].as_str().unwrap()).collect();
    assert_eq!((whys[0], whys[2]), ("a process fetches it", "a process unpacks c.tgz"));
    assert!(part.exists() && member.exists() && !other.exists() && !record.exists());
    drop(locks);
    zoo.ends_with(0, &["cache", "gc", "--downloads", "--force", "--yes"]);
    assert!(!part.exists() && !part.parent().unwrap().exists() && !member.exists());
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_neither_followed_nor_removed() {
    use std::os::unix::fs::symlink;
    let (zoo, outside) = (Zoo::new(), Zoo::new());
    let run = reversal(&outside);
    outside.file("downloads/host/a.tgz", "123");
    let before = files(outside.home());
    symlink(outside.home().join("downloads"), zoo.home().join("downloads")).unwrap();
    fs::create_dir_all(zoo.home().join("runs/reversal-transformer.smoke")).unwrap();
    symlink(&run, zoo.home().join("runs/reversal-transformer.smoke/fp32-seed1-000000000000")).unwrap();
    symlink(run.parent().unwrap(), zoo.home().join("runs/linked")).unwrap();
    fs::create_dir(zoo.home().join("prepared")).unwrap();
    let prepared = fs::read_dir(outside.home().join("prepared")).unwrap().next().unwrap().unwrap().path();
    symlink(&prepared, zoo.home().join("prepared/withdrawn-corpus-0123456789ab")).unwrap();
    symlink(outside.home().join("hypotheses"), zoo.home().join("hypotheses")).unwrap();
    symlink(outside.home(), zoo.home().join(".scratch-abc123")).unwrap();

    let rows = &zoo.ends_with(0, &["cache", "--format", "json"]).json()["kinds"];
    let bytes: u64 = rows.as_array().unwrap().iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert!(bytes < 2000, "links have their own length: {rows}");
    let every =
        ["--downloads", "--prepared", "--checkpoints", "--runs", "--keep", "1", "--hypotheses", "--force"];
    let found = plan(&zoo, &every);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(
        found.iter().all(|[action, .., why]| action == "keep" && why.contains("symbolic link")),
        "{found:?}"
    );
    zoo.ends_with(0, &[&["cache", "gc", "--yes"][..], &every].concat());
    zoo.ends_with(0, &["cache", "verify"]);
    assert_eq!(files(outside.home()), before);
    assert!(zoo.home().join("runs/linked").is_symlink() && zoo.home().join("downloads").is_symlink());
}

#[cfg(unix)]
#[test]
fn an_interrupted_removal_leaves_entries_complete_or_gone() {
    let zoo = Zoo::new();
    reversal(&zoo);
    // Entries enough that the process is killed among them.
    for number in 0..400 {
        for file in 0..20 {
            zoo.file(&format!("prepared/withdrawn-{number:03}-0123456789ab/{file}.jsonl"), "x");
        }
    }
    let mut child = zoo.command(&["cache", "gc", "--yes", "--quiet", "--format", "json"]);
    let mut child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
    let left = || fs::read_dir(zoo.home().join("prepared")).unwrap().count();
    while left() > 300 {
        assert!(child.try_wait().unwrap().is_none() || left() <= 300);
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let remaining = left();
    assert!(remaining > 1, "it was not killed in time");
    for entry in fs::read_dir(zoo.home().join("prepared")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("withdrawn-") {
            assert_eq!(fs::read_dir(&path).unwrap().count(), 20, "{}", path.display());
        }
    }
    // The next call completes what was begun.
    zoo.ends_with(0, &["cache", "gc", "--yes"]);
    assert_eq!(left(), 1);
    let names =
        fs::read_dir(zoo.home()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.starts_with('.')));
}

/// What a run needs is kept, also if it cannot be read or lies behind a link, and what is not zoo's.
#[cfg(unix)]
#[test]
fn data_of_runs_that_are_linked_or_damaged_is_kept() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    zoo.file("prepared/notes/thesis.txt", "years of work");
    zoo.file("prepared/withdrawn-corpus-0123456789ab/thesis.txt", "years of work");
    let rows = |options: &[&str]| -> Vec<[String; 4]> {
        plan(&zoo, options).into_iter().filter(|row| row[1] == "prepared").collect()
    };
    let kept = |options: &[&str], why: &str| {
        let rows = rows(options);
        let own = rows.iter().find(|row| row[2].starts_with("own-")).unwrap();
        assert!(own[0] == "keep" && own[3].contains(why), "{rows:?}");
    };
    kept(&["--prepared"], "run reversal-transformer.smoke");
    for name in ["notes", "withdrawn-corpus-0123456789ab"] {
        let rows = rows(&["--prepared", "--force"]);
        let row = rows.iter().find(|row| row[2] == name).unwrap();
        assert_eq!((row[0].as_str(), row[3].as_str()), ("keep", "it is not a folder of zoo"));
    }
    assert!(!plan(&zoo, &[]).iter().any(|row| row[0] == "remove"));

    // The folder of runs is on another disk.
    let elsewhere = Zoo::new();
    let moved = elsewhere.home().join("runs");
    fs::rename(zoo.home().join("runs"), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, zoo.home().join("runs")).unwrap();
    kept(&["--prepared"], "run reversal-transformer.smoke");
    assert!(
        !plan(&zoo, &["--runs", "--keep", "1", "--checkpoints", "--force"])
            .iter()
            .any(|row| row[0] == "remove")
    );
    fs::remove_file(zoo.home().join("runs")).unwrap();
    fs::rename(&moved, zoo.home().join("runs")).unwrap();

    // A newer zoo writes keys that this one does not know.
    let recipe = run.join("recipe.toml");
    let text = fs::read_to_string(&recipe).unwrap();
    fs::write(&recipe, format!("{text}\n[newer]\nkey = 1\n")).unwrap();
    kept(&["--prepared"], "cannot be read and may use it");
}

#[test]
fn a_run_that_can_continue_is_kept() {
    let zoo = Zoo::new();
    let run = reversal(&zoo);
    fs::remove_file(zoo.home().join("ledger.jsonl")).unwrap();
    // A newer run of the same arm and seed.
    let newer = run.with_file_name("fp32-seed1-000000000000");
    for (path, bytes) in files(&run) {
        let copy = newer.join(path.strip_prefix(&run).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, bytes).unwrap();
    }
    let of_run = |options: &[&str]| {
        let call = [&["--runs", "--keep", "1"][..], options].concat();
        let below = run.strip_prefix(zoo.home().join("runs")).unwrap().to_str().unwrap().to_owned();
        let rows = plan(&zoo, &call);
        rows.iter()
            .find(|row| row[1] == "runs" && row[2] == below)
            .unwrap_or_else(|| panic!("{rows:?}"))
            .clone()
    };
    assert_eq!(of_run(&[])[0], "remove");
    fs::remove_file(run.join("trained.json")).unwrap();
    let row = of_run(&[]);
    assert_eq!((row[0].as_str(), row[3].as_str()), ("keep", "needed: the run is interrupted"));
    assert_eq!(of_run(&["--force"])[0], "remove");
}
