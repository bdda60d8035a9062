//! A recipe that cannot work is told so, and damage is named.

use crate::binary::{Zoo, in_root};

/// A copy of the toy at a size that trains in seconds, with its claim as published and the given learning rate.
fn copied(zoo: &Zoo, lr: &str) -> String {
    let text = std::fs::read_to_string(in_root("recipes/translation/reversal-transformer.toml")).unwrap();
    let changes = [
        ("name = \"reversal-transformer\"", "name = \"copied\"".to_string()),
        ("min_length = 5", "min_length = 2".into()),
        ("max_length = 50", "max_length = 4".into()),
        ("train = 10000", "train = 640".into()),
        ("valid = 1000", "valid = 32".into()),
        ("test = 2000", "test = 64".into()),
        ("lines = 1000", "lines = 32".into()),
        ("lines = 2000", "lines = 64".into()),
        ("max_updates = 800", "max_updates = 20".into()),
        ("lr = 1.0", format!("lr = {lr}")),
    ];
    let text = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    zoo.file("copied.toml", &text).to_str().unwrap().to_string()
}

#[test]
fn a_learning_rate_of_zero_is_not_reproduced() {
    let zoo = Zoo::new();
    let recipe = copied(&zoo, "0.0");
    let ended = zoo.ends_with(10, &["reproduce", &recipe, "--arms", "fp32", "--format", "json"]);
    let judged = &ended.json()["judged"][0];
    assert_eq!(judged["verdict"]["outcome"], "NOT-REPRODUCED", "{judged}");
    assert!(judged["verdict"]["measured"].as_f64().unwrap() < 50.0, "{judged}");
}

#[test]
fn a_flipped_byte_in_a_checkpoint_or_in_prepared_data_is_named() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--arms", "fp32"];
    zoo.ends_with(12, &call);
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
    assert!(ended.code != 12 && ended.stderr.contains(&named), "code {}: {}", ended.code, ended.stderr);
}
