//! `zoo bundle` and `zoo ledger recheck BUNDLE`.

use crate::binary::{Zoo, in_root};
use std::path::Path;

/// Bundle of the project's own run of the reversal recipe.
fn toy(zoo: &Zoo) -> String {
    let ledger = in_root("results/data/ledger.jsonl");
    let listed =
        zoo.ends_with(0, &["ledger", "list", "--ledger", &ledger, "--format", "json"]).part("records");
    // The last record is of the recipe's current version.
    let finished = (listed.as_array().unwrap().iter().rev())
        .find(|row| {
            row["recipe"] == "reversal-transformer" && row["end"] == "finished" && row["tier"].is_null()
        })
        .expect("the project has run its toy");
    let number = finished["record"].to_string();
    let call = ["bundle", &number, "--ledger", &ledger, "--format", "json"];
    let made = zoo.ends_with(0, &call).json();
    assert!(made["scores"].as_u64().unwrap() >= 2 && made["verdicts"].as_u64().unwrap() >= 3, "{made}");
    made["file"].as_str().unwrap().to_owned()
}

#[test]
fn a_reviewer_checks_the_projects_own_run_offline() {
    let author = Zoo::new();
    let bundle = author.home().join(toy(&author));
    // Another, empty home.
    let reviewer = Zoo::new();
    let recheck = |arguments: &[&str], code| {
        let all = [&["ledger", "recheck", bundle.to_str().unwrap()][..], arguments].concat();
        reviewer.ends_with(code, &all)
    };
    let ended = recheck(&["--format", "json"], 0);
    let found = ended.json();
    assert_eq!(
        (&found["scores"], &found["verdicts"], &found["taken_from_record"]),
        (&6.into(), &3.into(), &0.into())
    );
    let text = recheck(&[], 0).stdout;
    assert!(text.contains("references  test: 2000 lines") && text.contains("REPRODUCED"), "{text}");
    assert!(!reviewer.home().join("downloads").exists() && !reviewer.home().join("ledger.jsonl").exists());

    // Given references are compared with the digest in the bundle.
    let other = reviewer.file("other", &"α\n".repeat(2000));
    let said = recheck(&["--references", &format!("test={}", other.display())], 7);
    said.says("the references given for test are not those of the bundle");
    recheck(&["--references", &format!("dev={}", other.display())], 2)
        .says("does not name an evaluation set of this bundle");

    // A changed byte anywhere, and a file that is not a bundle.
    let whole = std::fs::read(&bundle).unwrap();
    for at in [whole.len() / 3, whole.len() / 2, whole.len() - 20] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let changed = reviewer.home().join("changed.json");
        std::fs::write(&changed, bytes).unwrap();
        let ended = reviewer.run(&["ledger", "recheck", changed.to_str().unwrap()]);
        assert!([4, 7].contains(&ended.code), "byte {at}: {}\n{}", ended.code, ended.stderr);
    }
    reviewer.ends_with(4, &["ledger", "recheck", other.to_str().unwrap()]).says("other: not a bundle");
    reviewer.ends_with(4, &["ledger", "recheck", "none.json"]).says("none.json");
}

#[test]
fn a_run_s_folder_becomes_a_bundle_with_its_environment() {
    let zoo = Zoo::new();
    let arguments = ["reproduce", "reversal-transformer", "--tier", "smoke", "--format", "json"];
    let outcome = zoo.ends_with(0, &arguments).json();
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let made = zoo.ends_with(0, &["bundle", run, "--out", "out/smoke.json", "--format", "json"]).json();
    let path = zoo.home().join(made["file"].as_str().unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let bundle: serde_json::Value = serde_json::from_str(&text).unwrap();
    let seen: Vec<&str> =
        (bundle["environments"].as_array().unwrap().iter()).map(|one| one["arm"].as_str().unwrap()).collect();
    assert_eq!(seen, ["fp32", "mixed"]);
    assert!(bundle["environments"][0]["environment"]["commit"].is_string());
    assert_eq!(bundle["hypotheses"].as_array().unwrap().len(), 2);
    // The text contains no folder of this machine.
    assert!(!text.contains(zoo.home().to_str().unwrap()));
    zoo.ends_with(0, &["ledger", "recheck", path.to_str().unwrap()]);

    // Writing it again gives the same bundle. A file with other content is not overwritten.
    zoo.ends_with(0, &["bundle", run, "--out", "out/smoke.json"]);
    std::fs::write(&path, "mine").unwrap();
    zoo.ends_with(2, &["bundle", run, "--out", "out/smoke.json"]).says("exists with other content");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let began = zoo.ends_with(2, &["bundle", "0"]);
    began.says("only says that a run was begun");
    zoo.ends_with(2, &["bundle", "99"]).says("is neither a run nor an entry");

    // Changed hypotheses give no bundle and leave no file.
    let kept = zoo.home().join("hypotheses");
    let file = first_file(&kept);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text} ")).unwrap();
    zoo.ends_with(7, &["bundle", run, "--out", "bad.json"]);
    assert!(!zoo.home().join("bad.json").exists());
}

/// A resealed bundle that asks for more memory than any machine has. Its recipe does not match the
/// record, so nothing is generated.
#[cfg(unix)]
#[test]
fn a_bundle_that_asks_for_all_memory_gets_none() {
    use sha2::{Digest, Sha256};
    let zoo = Zoo::new();
    let text = std::fs::read_to_string(zoo.home().join(toy(&zoo))).unwrap();
    let (sealed, _) = text.rsplit_once(",\n  \"sha256\": \"").unwrap();
    let sealed_anew = |lines: &str| {
        let asked = sealed.replace("test = 2000", &format!("test = {lines}"));
        let asked = asked.replace("lines = 2000", &format!("lines = {lines}"));
        assert_ne!(asked, sealed);
        let seal: String = hex::encode(Sha256::digest(asked.as_bytes()));
        zoo.file(&format!("{lines}.json"), &format!("{asked},\n  \"sha256\": \"{seal}\"\n}}\n"))
    };
    // Nothing is generated for a bundle that contradicts itself, even if it asks for little.
    let little = zoo.ends_with(7, &["ledger", "recheck", sealed_anew("2001").to_str().unwrap()]);
    assert!(little.stdout.contains("test: missing: not looked for"), "{}", little.stdout);
    let forged = sealed_anew("4000000000");
    let long = zoo.file("long.json", "");
    std::fs::File::options().write(true).open(&long).unwrap().set_len(1 << 40).unwrap();
    for (file, code, expected) in
        [(&forged, 7, "the recipe has hash"), (&long, 4, "more than 67108864 bytes")]
    {
        let call = zoo.command(&["ledger", "recheck", file.to_str().unwrap()]);
        let ended = std::process::Command::new("/bin/sh")
            .args(["-c", "ulimit -v 8000000; exec \"$@\"", "sh"])
            .arg(call.get_program())
            .args(call.get_args())
            .envs(call.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

fn first_file(folder: &Path) -> std::path::PathBuf {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    if entries[0].is_dir() { first_file(&entries[0]) } else { entries[0].clone() }
}

#[test]
fn scores_without_references_are_only_accepted_where_that_is_said() {
    let zoo = Zoo::new();
    let reference: String = (0..2000).map(|i| format!("a{} b c{} d e\n", i % 7, i % 5)).collect();
    let references = zoo.file("ref", &reference);
    let hypotheses = zoo.file("hyp", &reference.replacen("b c3", "x y", 40));
    let (references, hypotheses) = (references.to_str().unwrap(), hypotheses.to_str().unwrap());
    let judge = [
        "judge",
        "transformer-big",
        "--hypotheses",
        hypotheses,
        "--references",
        references,
        "--arm",
        "mixed",
        "--record",
    ];
    zoo.run(&judge);
    zoo.ends_with(0, &["bundle", "0", "--out", "external.json"]);
    let bundle = zoo.home().join("external.json");
    let reviewer = Zoo::new();
    let bundle = bundle.to_str().unwrap();
    // The corpus is not on this machine, and nothing is fetched.
    let ended = reviewer.ends_with(4, &["ledger", "recheck", bundle]);
    ended.says("the references of test are missing");
    reviewer.ends_with(0, &["ledger", "recheck", bundle, "--without-references"]);
    let found =
        reviewer.ends_with(0, &["ledger", "recheck", bundle, "--references", references, "--format", "json"]);
    assert!(found.json()["scores"].as_u64().unwrap() >= 1, "{}", found.stdout);
}
