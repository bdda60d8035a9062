//! `zoo reproduce` up to the point where it would start training.

use crate::binary::Zoo;

#[test]
fn the_plan_of_the_big_one_is_printed_and_refused() {
    let zoo = Zoo::new();
    let ended = zoo.run(&["reproduce", "transformer-big"]);
    assert_eq!(ended.code, 5, "{}", ended.stderr);
    for part in ["parameters", "300,000 updates", "fetch", "disk", "memory", "licence", "fp32", "mixed"] {
        assert!(ended.stderr.contains(part), "{part:?} is not in\n{}", ended.stderr);
    }
    ended.says("of computing");
    assert!(ended.stderr.contains("--yes"));
    assert_eq!(ended.stdout, "");
    assert!(!zoo.home().join("downloads").exists() && !zoo.home().join("runs").exists());
}

#[test]
fn a_plan_is_data_when_it_is_asked_for() {
    let zoo = Zoo::new();
    let plan =
        zoo.ends_with(0, &["reproduce", "transformer-base", "--plan", "--arms", "fp32", "--format", "json"]);
    let plan = plan.part("plan");
    assert_eq!(plan["runs"].as_array().unwrap().len(), 1);
    assert_eq!(plan["runs"][0]["arm"], "fp32");
    assert!(plan["download_bytes"].as_u64().unwrap() > 900_000_000, "{plan}");
    assert_eq!(plan["runs"][0]["examples_assumed"], false, "its updates are given");
    let two = zoo
        .ends_with(0, &["reproduce", "reversal-transformer", "--plan", "--seeds", "3", "--format", "json"]);
    let seeds: Vec<u64> = (two.part("plan")["runs"].as_array().unwrap().iter())
        .map(|run| run["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds.len(), 6);
    assert!([1, 2, 3].iter().all(|seed| seeds.contains(seed)), "{seeds:?}");
    // Six epochs of a corpus of unknown size, with 1,024 pairs per update.
    let plan = zoo.ends_with(0, &["reproduce", "gnmt-v2", "--plan", "--arms", "fp32"]);
    assert!(plan.stdout.contains("5,860 updates for each million of examples"), "{}", plan.stdout);
}

#[test]
fn devices_that_are_not_there_are_named() {
    let zoo = Zoo::new();
    if cfg!(not(feature = "cuda-unfused")) {
        let ended = zoo.ends_with(8, &["reproduce", "reversal-transformer", "--device", "cuda"]);
        ended.says("the device cuda:0 is not built into this program");
        assert!(ended.stderr.contains("--features cuda"), "{}", ended.stderr);
    }
    if cfg!(not(feature = "wgpu-unfused")) {
        zoo.ends_with(8, &["reproduce", "reversal-transformer", "--device", "wgpu"]).says("wgpu");
    }
}

#[test]
fn what_cannot_be_run_says_why() {
    let zoo = Zoo::new();
    let smoke = |code: i32, rest: [&str; 2]| {
        let arguments = [&["reproduce", "reversal-transformer", "--tier", "smoke"][..], &rest].concat();
        zoo.ends_with(code, &arguments)
    };
    smoke(2, ["--arms", "fp23"]).says("has no arm fp23");
    smoke(3, ["--set", "train.max_updtaes=3"]);
    zoo.ends_with(3, &["reproduce", "reversal-transformer", "--tier", "smoky"]);
    let none = zoo.home().join("none");
    for command in ["evaluate", "infer"] {
        zoo.ends_with(2, &[command, none.to_str().unwrap()]).says("is not a run folder");
    }
}

#[test]
fn an_override_need_not_fit_the_arms_that_are_not_asked_for() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--set", "precision.masters=false"];
    let one = [&call[..], &["--arms", "mixed", "--format", "json"]].concat();
    let outcome = zoo.run(&one).json();
    let runs = outcome["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["arm"]), (1, &"mixed".into()));
    let recipe = std::fs::read_to_string(format!("{}/recipe.toml", runs[0]["folder"].as_str().unwrap()));
    assert!(recipe.unwrap().contains("masters = false"));
    zoo.ends_with(0, &["ledger", "recheck"]);
    zoo.ends_with(0, &["show", "reversal-transformer"]);
    let all = zoo.ends_with(3, &call).stderr;
    assert!(all.contains("an FP32 arm cannot train without masters"), "{all}");
}

#[test]
fn offline_names_the_first_file_that_is_missing() {
    let zoo = Zoo::new();
    let ended = zoo.ends_with(4, &["fetch", "multi30k-transformer-tiny", "--offline"]);
    ended.says("nothing may be downloaded (offline)");
    assert!(ended.stderr.contains("licence:"), "{}", ended.stderr);
    zoo.ends_with(4, &["fetch", "multi30k-transformer-tiny", "--verify"]);
    zoo.ends_with(0, &["fetch", "reversal-transformer", "--offline"]);
}

#[test]
fn a_large_download_is_not_begun_unasked() {
    let zoo = Zoo::new();
    zoo.ends_with(5, &["fetch", "transformer-big"]).says("a download of");
    assert!(!zoo.home().join("downloads").exists());
}

#[test]
fn fixtures_of_another_framework_align() {
    let zoo = Zoo::new();
    let fixture = crate::binary::in_root("tests/fixtures/transformer_prenorm_openseq2seq.safetensors");
    let rungs = zoo.ends_with(0, &["align", "transformer-base", &fixture, "--format", "json"]).json();
    let names: Vec<&str> =
        (rungs["rungs"].as_array().unwrap().iter()).map(|rung| rung["rung"].as_str().unwrap()).collect();
    assert!(names.contains(&"gradients") && names.contains(&"update"), "{names:?}");
    zoo.ends_with(2, &["align", "multi30k-transformer-tiny", &fixture]).says("is not of this recipe's model");
    // One weight, changed in its exponent.
    let mut bytes = std::fs::read(&fixture).unwrap();
    let (header, last) = (u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize, bytes.len());
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let at = json["weights/encoder.layers.0.feed_forward.input.weight"]["data_offsets"][0].as_u64().unwrap();
    let at = 8 + header + at as usize;
    assert!(at + 4 <= last);
    bytes[at + 3] ^= 0x41;
    let changed = zoo.home().join("changed.safetensors");
    std::fs::write(&changed, bytes).unwrap();
    zoo.ends_with(9, &["align", "transformer-base", changed.to_str().unwrap()]).says("differs from");
}

/// Runs only if `ZOO_MIRROR` names a mirror with the corpus.
#[test]
fn a_corpus_is_fetched_from_a_mirror_verified_and_damage_is_named() {
    let Some(mirror) = std::env::var_os("ZOO_MIRROR") else {
        eprintln!("skipped: ZOO_MIRROR is not set");
        return;
    };
    let mirror = std::path::absolute(mirror).unwrap();
    let zoo = Zoo::new();
    let mirror = mirror.to_str().unwrap();
    let fetch = ["fetch", "multi30k-transformer-tiny", "--offline", "--mirror", mirror, "--format", "json"];
    let files = zoo.ends_with(0, &fetch).part("files");
    assert!(files[0]["bytes"].as_u64() > Some(1000), "{files}");
    assert_eq!(files.as_array().unwrap().len(), 10);
    zoo.ends_with(0, &["fetch", "multi30k-transformer-tiny", "--verify"]);
    let listed = zoo
        .ends_with(0, &["fetch", "multi30k-transformer-tiny", "--verify", "--format", "json"])
        .part("files");
    let path = zoo.home().join(listed[0]["path"].as_str().unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let ended = zoo.ends_with(4, &["fetch", "multi30k-transformer-tiny", "--verify"]);
    assert!(ended.stderr.contains(path.file_name().unwrap().to_str().unwrap()), "{}", ended.stderr);
}
