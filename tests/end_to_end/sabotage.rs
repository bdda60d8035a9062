//! Recipes that cannot work are not reproduced, and damage is reported by name.

use crate::binary::{Zoo, small_copy};

#[test]
fn a_learning_rate_of_zero_is_not_reproduced() {
    let zoo = Zoo::new();
    let recipe = small_copy(&zoo, &[("lr = 1.0", "lr = 0.0")]);
    let ended = zoo.ends_with(10, &["reproduce", &recipe, "--arms", "fp32", "--format", "json"]);
    let judged = &ended.json()["claims"][0];
    assert_eq!(judged["verdict"]["outcome"], "NOT-REPRODUCED", "{judged}");
    assert!(judged["verdict"]["measured"].as_f64().unwrap() < 50.0, "{judged}");
}

#[test]
fn a_flipped_byte_in_a_checkpoint_or_in_prepared_data_is_named() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32"];
    zoo.ends_with(0, &call);
    let flip = |folder: &str, part: &str| {
        let mut stack = vec![zoo.home().join(folder)];
        while let Some(path) = stack.pop() {
            if path.is_dir() {
                stack.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.file_name().unwrap().to_string_lossy().contains(part) {
                let mut bytes = std::fs::read(&path).unwrap();
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                std::fs::write(&path, bytes).unwrap();
                return path.file_name().unwrap().to_string_lossy().into_owned();
            }
        }
        panic!("no file with `{part}` in its name below {folder}");
    };
    // Rescoring a run with damaged weights names the damaged file.
    let runs = zoo.home().join("runs/reversal-transformer.smoke");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_dir_all(run.join("eval")).unwrap();
    let newest = {
        let files = std::fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
        files.max().unwrap().file_name().unwrap().to_string_lossy().into_owned()
    };
    let named = flip("runs", &newest);
    let ended = zoo.run(&call);
    assert!(ended.stderr.contains(&named), "{}", ended.stderr);

    let named = flip("prepared", "train");
    let ended = zoo.run(&call);
    assert!(ended.code != 0 && ended.stderr.contains(&named), "code {}: {}", ended.code, ended.stderr);
}

/// Names of the files in a folder, sorted.
fn names(folder: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_newest_checkpoint_is_this_run_s_last_or_an_error_names_it() {
    let zoo = Zoo::new();
    let call =
        ["reproduce", "reversal-transformer", "--tier", "smoke", "--set", "train.checkpoint.every_updates=5"];
    let outcome = zoo.run(&[&call[..], &["--format", "json"]].concat());
    let runs: Vec<std::path::PathBuf> = (outcome.json()["runs"].as_array().unwrap().iter())
        .map(|run| run["folder"].as_str().unwrap().into())
        .collect();
    let (fp32, mixed) = (&runs[0], &runs[1]);
    let folder = fp32.join("checkpoints");
    let states: Vec<String> = names(&folder).into_iter().filter(|name| name.starts_with("state-")).collect();
    assert_eq!(states.len(), 2, "{states:?}");
    let newest = folder.join(&states[1]);
    let (kept, run) = (std::fs::read(&newest).unwrap(), fp32.to_str().unwrap());
    let each = |named: &str, why: &str| {
        std::fs::remove_dir_all(fp32.join("eval")).ok();
        let out = zoo.home().join("weights.safetensors");
        for arguments in
            [vec!["evaluate", run], vec!["export", run, out.to_str().unwrap()], vec!["infer", run]]
        {
            let ended = zoo.run_with_input(&arguments, "α β γ\n");
            assert_eq!(ended.code, 7, "{arguments:?}: {}{}", ended.stdout, ended.stderr);
            ended.says(named);
            ended.says(why);
        }
    };
    // An older state does not count as the last one.
    std::fs::remove_file(&newest).unwrap();
    each(&states[1], "is missing: the run ended after");
    // A state of another arm, or another state of this run, does not count either.
    std::fs::copy(mixed.join("checkpoints").join(&states[1]), &newest).unwrap();
    each(&states[1], "does not belong to this run: it was saved by the run");
    std::fs::copy(folder.join(&states[0]), &newest).unwrap();
    each("state-", "is missing: the run ended after");
    // Runs by earlier versions did not record their last state.
    let trained = fp32.join("trained.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&trained).unwrap()).unwrap();
    assert_eq!(json["last_state"]["file"], states[1].as_str());
    json.as_object_mut().unwrap().remove("last_state");
    std::fs::write(&trained, json.to_string()).unwrap();
    each("state-", "is missing: the run ended after");
    // A named checkpoint must belong to the run of its folder.
    let foreign = folder.join("state-0000000001.safetensors");
    std::fs::copy(mixed.join("checkpoints").join(&states[1]), &foreign).unwrap();
    zoo.ends_with(7, &["evaluate", foreign.to_str().unwrap()]).says("does not belong to this run");
    std::fs::remove_file(&foreign).unwrap();
    std::fs::write(&newest, kept).unwrap();
    // A search that sums the weights of an attention that this decoder does not have.
    let file = fp32.join("recipe.toml");
    let recipe = std::fs::read_to_string(&file).unwrap();
    let search = "[decode.counting]\nkind = \"gnmt-beam\"\nbeam = 2\nalpha = 0.6\nconstant = 5.0\n\
        coverage = 0.2\nmax_length = { factor = 1.0, extra = 50 }\n";
    std::fs::write(&file, format!("{recipe}\n{search}")).unwrap();
    each("recipe.toml", "do not fit together");
    std::fs::write(&file, recipe).unwrap();
    zoo.ends_with(0, &["evaluate", run]);
}

fn only_run(zoo: &Zoo) -> std::path::PathBuf {
    let runs = zoo.home().join("runs/reversal-transformer.smoke");
    std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_changed_score_is_not_believed() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32"];
    zoo.ends_with(0, &call);
    let file = only_run(&zoo).join("eval/test.beam5.json");
    let mut found: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    found["scores"][0]["value"] = 99.0.into();
    std::fs::write(&file, found.to_string()).unwrap();
    zoo.ends_with(7, &call).says("test.beam5.json says bleu 99.00, but its hypotheses score");
}

#[test]
fn two_processes_do_not_train_the_same_run() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32"];
    zoo.ends_with(0, &call);
    let run = only_run(&zoo);
    std::fs::remove_file(run.join("trained.json")).unwrap();
    let other = std::fs::File::open(run.join("lock")).unwrap();
    other.lock().unwrap();
    zoo.ends_with(1, &call).says("another process trains");
    drop(other);
    zoo.ends_with(0, &call);
}
