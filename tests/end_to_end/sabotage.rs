//! A recipe that cannot work is told so, and damage is named.

use crate::binary::{Zoo, small_copy};

#[test]
fn a_learning_rate_of_zero_is_not_reproduced() {
    let zoo = Zoo::new();
    let recipe = small_copy(&zoo, &[("lr = 1.0", "lr = 0.0")]);
    let ended = zoo.ends_with(10, &["reproduce", &recipe, "--arms", "fp32", "--format", "json"]);
    let judged = &ended.json()["judged"][0];
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
    // Scored again from its weights, a run with damaged weights says which file it is.
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
