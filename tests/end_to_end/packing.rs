//! `zoo pack`: a run that is given away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::binary::{Ended, Zoo, files, in_root};

/// Folder of the FP32 run of a recipe's smoke tier.
fn smoke(zoo: &Zoo, recipe: &str) -> String {
    let call = ["reproduce", recipe, "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let outcome = zoo.run(&call);
    assert!([0, 12].contains(&outcome.code), "{recipe}: {}", outcome.stderr);
    outcome.json()["runs"][0]["folder"].as_str().unwrap().to_owned()
}

/// Packs a run into a folder of another home.
fn given(author: &Zoo, run: &str, user: &Zoo) -> PathBuf {
    let place = user.home().join("given/model");
    author.ends_with(0, &["pack", run, "-o", place.to_str().unwrap()]);
    place
}

/// Content of the files of a folder, by their path below it.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let below = |(path, bytes): (PathBuf, Vec<u8>)| (path.strip_prefix(folder).unwrap().to_owned(), bytes);
    files(folder).into_iter().map(below).collect()
}

fn infer(zoo: &Zoo, model: &str, input: &str) -> Ended {
    let ended = zoo.run_with_input(&["infer", model, "--offline"], input);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended
}

#[test]
fn a_package_translates_in_another_home_and_always_has_the_same_bytes() {
    let (author, user) = (Zoo::new(), Zoo::new());
    let run = smoke(&author, "reversal-transformer");
    let place = given(&author, &run, &user);
    let listed: Vec<String> = content(&place).into_keys().map(|path| path.display().to_string()).collect();
    assert_eq!(
        listed,
        [
            "README.md",
            "model.safetensors",
            "recipe.toml",
            "record.bundle.json",
            "run.json",
            "trained.json",
            "vocabulary/kept.json",
            "vocabulary/vocabulary",
            "zoo.json"
        ]
    );
    let lines = "α β γ δ\nε\n";
    assert_eq!(infer(&user, "given/model", lines).stdout, infer(&author, &run, lines).stdout);
    assert!(!user.home().join("prepared").exists() && !user.home().join("runs").exists());

    // Neither the author's folders nor a time of packing are in it.
    for (path, bytes) in content(&place) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains(author.home().to_str().unwrap()), "{}", path.display());
    }
    author.ends_with(0, &["pack", &run, "-o", "again"]);
    assert_eq!(content(&place), content(&author.home().join("again")));
    let archives = ["one.tar", "two.tar"].map(|name| {
        author.ends_with(0, &["pack", &run, "-o", name]);
        std::fs::read(author.home().join(name)).unwrap()
    });
    assert!(archives[0] == archives[1]);
    let said = author.ends_with(0, &["pack", "--check", "one.tar"]).stdout;
    assert!(said.contains("reversal-transformer.smoke-fp32-seed1, 8 files"), "{said}");

    author.ends_with(2, &["pack", &run, "-o", "again"]).says("again is there already");
    author.ends_with(2, &["pack", "again", "-o", "third"]).says("again is a package already");
    let left: Vec<_> =
        std::fs::read_dir(author.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".packing")), "{left:?}");
}

#[test]
fn the_check_names_the_file_that_is_not_as_it_was_packed() {
    let (author, user) = (Zoo::new(), Zoo::new());
    let place = given(&author, &smoke(&author, "reversal-transformer"), &user);
    let check = |code| user.ends_with(code, &["pack", "--check", "given/model", "--format", "json"]);
    let said = check(0).json();
    assert_eq!((&said["files"], &said["arm"], &said["record"]), (&8.into(), &"fp32".into(), &1.into()));
    for (path, bytes) in content(&place) {
        let file = place.join(&path);
        if path == Path::new("zoo.json") {
            continue;
        }
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        std::fs::write(&file, changed).unwrap();
        check(7).says(path.to_str().unwrap());
        std::fs::remove_file(&file).unwrap();
        check(7).says(path.to_str().unwrap());
        std::fs::write(&file, bytes).unwrap();
    }
    // What the user added is a note; `zoo infer` reads nothing of it.
    std::fs::write(place.join("notes.txt"), "mine").unwrap();
    let ended = check(0);
    assert!(ended.stderr.contains("notes.txt is not a file of the package"), "{}", ended.stderr);
    assert_eq!(ended.json()["others"], serde_json::json!(["notes.txt"]));

    let weights = place.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    user.ends_with(7, &["infer", "given/model"]).says("model.safetensors");
    user.ends_with(4, &["pack", "--check", "given"]).says("given is not a package");
    user.ends_with(4, &["pack", "--check", "none.tar"]).says("none.tar");
}

#[test]
fn a_package_of_each_task_is_usable_without_its_data() {
    for (recipe, hub) in [
        ("fashion-mnist-lenet-d2l", "image-classification"),
        ("imdb-cnn-keras", "text-classification"),
        ("imdb-fasttext-bigrams-keras", "text-classification"),
        ("ptb-lstm-small", "text-generation"),
        ("yesno-tdnn", "automatic-speech-recognition"),
        ("tacotron2", "text-to-speech"),
        ("convs2s", "translation"),
    ] {
        let (author, user) = (Zoo::new(), Zoo::new());
        let place = given(&author, &smoke(&author, recipe), &user);
        let said = user.ends_with(0, &["pack", "--check", "given/model", "--offline"]).stdout;
        assert!(said.contains("the model can be used"), "{recipe}: {said}");
        let card = std::fs::read_to_string(place.join("README.md")).unwrap();
        assert!(card.contains(&format!("pipeline_tag: \"{hub}\"")), "{recipe}: {card}");
        assert!(
            card.contains("\n## Scores of these weights\n") && card.contains("\n## Verdicts\n"),
            "{card}"
        );
        for folder in ["downloads", "corpora", "prepared"] {
            assert!(!user.home().join(folder).exists(), "{recipe}");
        }
    }
}

#[test]
fn a_run_translates_after_its_text_has_changed() {
    let zoo = Zoo::new();
    let lines =
        |words: [&str; 2]| (0..60).map(|at| format!("{} {}\n", words[at % 2], words[0])).collect::<String>();
    zoo.file("train.en", &lines(["one", "two"]));
    zoo.file("train.de", &lines(["eins", "zwei"]));
    zoo.file("valid.en", "one two\ntwo\n");
    zoo.file("valid.de", "eins zwei\nzwei\n");
    let base = [
        "--base",
        "multi30k-transformer-tiny",
        "--train",
        "train.en,train.de",
        "--valid",
        "valid.en,valid.de",
    ];
    zoo.ends_with(0, &[&["new", "small"][..], &base].concat());
    let small = ["--set=data.tokenizer.merges=9", "--set=model.width=32", "--set=train.max_updates=2"];
    let call = ["reproduce", "./small.toml", "--arms", "fp32", "--format", "json"];
    let made = zoo.ends_with(0, &[&call[..], &small].concat()).json();
    let run = made["runs"][0]["folder"].as_str().unwrap();
    let before = infer(&zoo, run, "one two\n").stdout;
    zoo.file("train.en", &lines(["three", "four"]));
    std::fs::remove_dir_all(zoo.home().join("prepared")).unwrap();
    assert_eq!(infer(&zoo, run, "one two\n").stdout, before);
    // Scores on other words than those of the training would be wrong.
    zoo.ends_with(4, &["evaluate", run]).says("the data changed since");
    // A run by an earlier version kept nothing.
    std::fs::remove_dir_all(Path::new(run).join("vocabulary")).unwrap();
    zoo.ends_with(4, &["infer", run]).says("the data changed since");
    zoo.ends_with(4, &["pack", run, "-o", "packed"]).says("the data changed since");
    assert!(!zoo.home().join("packed").exists());
}

/// Data that is on the machine by chance must not stand in for what a package lacks.
#[test]
fn a_package_without_its_vocabulary_is_damaged_even_where_the_data_is() {
    let zoo = Zoo::new();
    for recipe in ["reversal-transformer", "fashion-mnist-lenet-d2l"] {
        let run = smoke(&zoo, recipe);
        // A run whose vocabulary was not written to its end gets it again.
        std::fs::remove_file(Path::new(&run).join("vocabulary/kept.json")).unwrap();
        zoo.ends_with(0, &["pack", &run, "-o", recipe]);
        let place = zoo.home().join(recipe);
        std::fs::remove_dir_all(place.join("vocabulary")).unwrap();
        let manifest = place.join("zoo.json");
        let mut listed: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
        listed["files"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("vocabulary/"));
        std::fs::write(&manifest, listed.to_string()).unwrap();
        zoo.ends_with(7, &["pack", "--check", recipe]).says("the package has no");
    }
}

#[test]
fn a_run_that_has_not_ended_is_not_packed() {
    let zoo = Zoo::new();
    let run = smoke(&zoo, "reversal-transformer");
    std::fs::remove_file(Path::new(&run).join("trained.json")).unwrap();
    zoo.ends_with(2, &["pack", &run, "-o", "packed"]).says("has not ended");
    zoo.ends_with(2, &["pack", &in_root("README.md")]).says("is not a run folder");
}

#[test]
fn the_record_can_be_left_out_and_the_licence_named() {
    let zoo = Zoo::new();
    let run = smoke(&zoo, "reversal-transformer");
    zoo.ends_with(0, &["pack", &run, "-o", "bare", "--no-bundle", "--license", "mit"]);
    let bare = zoo.home().join("bare");
    assert!(!bare.join("record.bundle.json").exists());
    let card = std::fs::read_to_string(bare.join("README.md")).unwrap();
    assert!(card.starts_with("---\nlicense: \"mit\"\n") && card.contains("judged all runs"), "{card}");
    // A run that no record is about.
    std::fs::remove_file(zoo.home().join("ledger.jsonl")).unwrap();
    let said = zoo.ends_with(0, &["pack", &run, "-o", "alone", "--format", "json"]).json();
    assert!(said["record"].is_null(), "{said}");
    let card = std::fs::read_to_string(zoo.home().join("alone/README.md")).unwrap();
    assert!(card.contains("No record judges these weights."), "{card}");
}
