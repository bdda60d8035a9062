//! The files that the searches of a run read, which the run keeps.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{Ended, Zoo, run_folders};
use crate::searching::{MODEL, NARROW, SEARCH, recording};

/// Arguments of a brief training with a language model, in a home with a recording.
fn trained(zoo: &Zoo, seeds: &str, model: &str) -> Vec<PathBuf> {
    fs::write(zoo.home().join("said.wav"), recording()).unwrap();
    let model = format!("decode.{SEARCH}.language_model={model}");
    let call = ["reproduce", "wave2letter", "--tier", "smoke", "--arms", "fp32", "--seeds", seeds];
    let more = ["--set", "train.max_updates=20", "--set", &model, "--set", NARROW, "--format", "json"];
    run_folders(&zoo.run(&[&call[..], &more].concat()).json())
}

/// What a run hears with the search, with more options.
fn infer(zoo: &Zoo, run: &str, code: i32, more: &[&str]) -> Ended {
    let call = ["infer", run, "said.wav", "--decode", SEARCH, "--set", NARROW, "--format", "json"];
    zoo.ends_with(code, &[&call[..], &["--nbest", "3"], more].concat())
}

/// The hypotheses with their scores, of which the language model's are a part.
fn heard(zoo: &Zoo, run: &str) -> Value {
    let found = infer(zoo, run, 0, &[]).json_line()["hypotheses"].take();
    assert!(found.as_array().is_some_and(|found| !found.is_empty()), "{found}");
    assert!(found[0]["language_model"].is_number(), "{found}");
    found
}

fn copy_of(run: &Path) -> PathBuf {
    let list: Value = serde_json::from_slice(&fs::read(run.join("files/kept.json")).unwrap()).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    run.join("files").join(list[0]["file"].as_str().unwrap())
}

#[test]
fn infer_and_a_package_use_the_copy_of_a_language_model_that_a_run_keeps() {
    let (zoo, elsewhere) = (Zoo::new(), Zoo::new());
    let model = elsewhere.file("models/lm.arpa", MODEL);
    let runs = trained(&zoo, "2", model.to_str().unwrap());
    let run = runs[0].to_str().unwrap();
    let copy = copy_of(&runs[0]);
    assert_eq!(fs::read_to_string(&copy).unwrap(), MODEL);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let [one, other] = [&copy, &copy_of(&runs[1])].map(|copy| fs::metadata(copy).unwrap().ino());
        assert_eq!(one, other, "the seeds share one copy");
    }
    let expected = heard(&zoo, run);

    // The file that the recipe names changes, then is gone.
    fs::write(&model, MODEL.replace("-0.6 A", "-0.1 A")).unwrap();
    assert_eq!(heard(&zoo, run), expected);
    let named = format!("decode.{SEARCH}.language_model={}", model.display());
    let with_named = infer(&zoo, run, 0, &["--set", &named]).json_line();
    assert_ne!(with_named["hypotheses"], expected, "a file that the user names is read itself");
    fs::remove_file(&model).unwrap();
    assert_eq!(heard(&zoo, run), expected);
    let gone = infer(&zoo, run, 4, &["--set", &named]);
    assert!(gone.stderr.contains("lm.arpa"), "{}", gone.stderr);

    // A package has it too, though it lay outside the recipe's folder.
    zoo.ends_with(0, &["pack", run, "-o", elsewhere.home().join("given").to_str().unwrap()]);
    fs::write(elsewhere.home().join("said.wav"), recording()).unwrap();
    assert_eq!(heard(&elsewhere, "given"), expected);
    elsewhere.ends_with(0, &["pack", "--check", "given"]);

    // A copy that was changed is not read.
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, MODEL.replace("-0.6 A", "-0.5 A")).unwrap();
    let changed = infer(&zoo, run, 7, &[]);
    changed.says("was changed");
    assert!(changed.stderr.contains("language_model=/FOLDER/FILE"), "{}", changed.stderr);
    let verified = zoo.ends_with(7, &["cache", "verify"]);
    assert!(verified.stdout.contains("lm.arpa"), "{}", verified.stdout);
    let packed = elsewhere.home().join("again");
    zoo.ends_with(7, &["pack", run, "-o", packed.to_str().unwrap()]).says("lm.arpa was changed");
    fs::remove_file(runs[0].join("files/kept.json")).unwrap();
    let verified = zoo.ends_with(7, &["cache", "verify"]);
    assert!(verified.stdout.contains("kept.json"), "{}", verified.stdout);

    // A run by an earlier version has no copy. The file is packed if it is there.
    fs::remove_dir_all(runs[0].join("files")).unwrap();
    zoo.ends_with(0, &["cache", "verify"]);
    let left_out = zoo.ends_with(0, &["pack", run, "-o", packed.to_str().unwrap()]);
    assert!(
        left_out.stderr.contains("lm.arpa of the search beam-4-gram is not packed"),
        "{}",
        left_out.stderr
    );
    fs::remove_dir_all(&packed).unwrap();
    fs::write(&model, MODEL).unwrap();
    zoo.ends_with(0, &["pack", run, "-o", packed.to_str().unwrap()]);
    fs::remove_file(&model).unwrap();
    assert_eq!(heard(&elsewhere, "again"), expected);
}

#[test]
fn a_run_keeps_the_language_model_that_its_search_was_last_scored_with() {
    let (zoo, elsewhere) = (Zoo::new(), Zoo::new());
    fs::write(zoo.home().join("said.wav"), recording()).unwrap();
    let call = ["reproduce", "wave2letter", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let runs = run_folders(&zoo.run(&[&call[..], &["--set", "train.max_updates=20"]].concat()).json());
    let run = runs[0].to_str().unwrap();
    infer(&zoo, run, 3, &[]).says("needs a language model");
    assert!(!runs[0].join("files").exists(), "nothing is kept without need");

    // Evaluated with a model after the training.
    let model = zoo.file("lm.arpa", MODEL);
    let given = format!("decode.{SEARCH}.language_model=lm.arpa");
    let evaluate = ["evaluate", run, "--decode", SEARCH, "--eval", "valid", "--set", NARROW, "--set", &given];
    zoo.ends_with(0, &evaluate);
    let of_first = heard(&zoo, run);
    // The same file with another content, then the first one again. Its evaluation is stored.
    let newer = MODEL.replace("-0.6 A", "-0.1 A");
    fs::write(&model, &newer).unwrap();
    // Other searches are scored.
    assert_eq!(trained(&zoo, "1", "lm.arpa"), runs, "the run is used again");
    zoo.ends_with(0, &["evaluate", run, "--decode", "greedy", "--eval", "valid", "--set", &given]);
    assert_eq!(heard(&zoo, run), of_first);
    zoo.ends_with(0, &evaluate);
    assert_ne!(heard(&zoo, run), of_first);
    assert_eq!(fs::read_to_string(copy_of(&runs[0])).unwrap(), newer);
    fs::write(&model, MODEL).unwrap();
    zoo.ends_with(0, &evaluate);
    assert_eq!(heard(&zoo, run), of_first);
    assert_eq!(fs::read_dir(runs[0].join("files")).unwrap().count(), 2, "the list and one copy");

    // A package has it under its name. The folder that the user named is of this machine.
    let model = elsewhere.file("models/lm.arpa", MODEL);
    let given = format!("decode.{SEARCH}.language_model={}", model.display());
    zoo.ends_with(
        0,
        &["evaluate", run, "--decode", SEARCH, "--eval", "valid", "--set", NARROW, "--set", &given],
    );
    zoo.ends_with(0, &["pack", run, "-o", elsewhere.home().join("given").to_str().unwrap()]);
    let list = fs::read_to_string(elsewhere.home().join("given/files/kept.json")).unwrap();
    assert!(!list.contains("models"), "{list}");
    fs::write(elsewhere.home().join("said.wav"), recording()).unwrap();
    assert_eq!(heard(&elsewhere, "given"), of_first);
    // An evaluation with another model leaves a package as it was packed.
    let other = elsewhere.file("other.arpa", &MODEL.replace("-0.6 A", "-0.1 A"));
    let other = format!("decode.{SEARCH}.language_model={}", other.display());
    let evaluate = ["evaluate", "given", "--decode", SEARCH, "--eval", "valid", "--set", NARROW];
    elsewhere.ends_with(0, &[&evaluate[..], &["--set", &other]].concat());
    assert_eq!(heard(&elsewhere, "given"), of_first);
    elsewhere.ends_with(0, &["pack", "--check", "given"]);

    // A list that leads out of the folder is refused by the search that would use it.
    let list = runs[0].join("files/kept.json");
    let text = fs::read_to_string(&list).unwrap();
    let name = copy_of(&runs[0]).file_name().unwrap().to_str().unwrap().to_owned();
    fs::write(&list, text.replace(&name, "../recipe.toml")).unwrap();
    let refused = infer(&zoo, run, 7, &[]);
    assert!(refused.stderr.contains("outside the folder"), "{}", refused.stderr);
    infer(&zoo, run, 0, &["--set", &given]);
    zoo.ends_with(0, &["infer", run, "said.wav", "--decode", "greedy"]);
}

#[test]
fn files_in_the_folder_of_the_recipe_keep_their_paths_in_a_package() {
    let (zoo, elsewhere) = (Zoo::new(), Zoo::new());
    zoo.file("lm.arpa", MODEL);
    zoo.file("lists/words.txt", "ABA\nCB\n");
    fs::write(zoo.home().join("said.wav"), recording()).unwrap();
    let model = format!("decode.{SEARCH}.language_model=lm.arpa");
    let words = format!("decode.{SEARCH}.words={{ kind = \"listed\", file = \"lists/words.txt\" }}");
    let call = ["reproduce", "wave2letter", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let more = ["--set", "train.max_updates=20", "--set", NARROW, "--set", &model, "--set", &words];
    let run = run_folders(&zoo.run(&[&call[..], &more].concat()).json()).remove(0);
    fs::remove_file(zoo.home().join("lists/words.txt")).unwrap();
    fs::remove_file(zoo.home().join("lm.arpa")).unwrap();
    let expected = heard(&zoo, run.to_str().unwrap());
    zoo.ends_with(
        0,
        &["pack", run.to_str().unwrap(), "-o", elsewhere.home().join("given").to_str().unwrap()],
    );
    fs::write(elsewhere.home().join("said.wav"), recording()).unwrap();
    assert_eq!(heard(&elsewhere, "given"), expected);
    let files = elsewhere.home().join("given/files");
    assert!(files.join("lm.arpa").is_file() && files.join("lists/words.txt").is_file());
    // Packages by earlier versions have no list.
    fs::remove_file(files.join("kept.json")).unwrap();
    assert_eq!(heard(&elsewhere, "given"), expected);
}

#[test]
fn a_search_that_is_not_scored_may_name_a_file_that_is_missing() {
    let zoo = Zoo::new();
    let other = "decode.other={ kind = \"ctc-beam\", beam = 4, language_model = \"none.arpa\" }";
    let call = ["reproduce", "wave2letter", "--tier", "smoke", "--arms", "fp32", "--format", "json"];
    let ended = zoo.run(&[&call[..], &["--set", "train.max_updates=2", "--set", other]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("none.arpa of the search other is not kept"), "{}", ended.stderr);
}
