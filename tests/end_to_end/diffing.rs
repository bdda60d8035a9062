//! `zoo diff` by the real binary.

use crate::binary::{Zoo, files};

#[test]
fn two_runs_are_compared_from_recipe_to_scores() {
    let zoo = Zoo::new();
    let call = ["reproduce", "reversal-transformer", "--tier", "smoke", "--threads", "1"];
    zoo.ends_with(0, &call);
    let runs = ["fp32", "mixed"].map(|arm| format!("reversal-transformer.smoke:{arm}"));
    let before = files(zoo.home());
    let found = zoo.ends_with(0, &["diff", &runs[0], &runs[1], "--format", "json"]).json();
    assert_eq!(files(zoo.home()), before);
    let keys: Vec<&str> =
        found["recipe"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert!(keys.contains(&"precision.compute"), "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("precision.")), "{keys:?}");
    assert_eq!(found["recipe"][0]["values"], serde_json::json!(["fp32", "fp16"]));
    assert_eq!((&found["data"], &found["environment"]), (&serde_json::json!([]), &serde_json::json!([])));
    // The log has a line for every five of the 20 updates. FP16 rounds in the first one already.
    assert_eq!(found["losses"]["common"], 4, "{found}");
    assert_eq!(
        (&found["losses"]["first"]["after"], &found["losses"]["first"]["update"]),
        (&0.into(), &5.into())
    );
    assert_eq!(found["losses"]["last"]["update"], 20);
    let scores = found["scores"].as_array().unwrap();
    assert_eq!(scores.len(), 1, "{found}");
    assert_eq!((&scores[0]["metric"], &scores[0]["eval"]), (&"bleu".into(), &"test".into()));
    let gain = |name: &str| scores[0]["gain"][name].as_f64().unwrap();
    assert!(gain("low") <= gain("observed") && gain("observed") <= gain("high"), "{found}");

    let same = zoo.ends_with(0, &["diff", &runs[0], "reversal-transformer.smoke:fp32:1"]);
    assert!(
        same.stdout.contains("the same, bit for bit, in all 4 common lines up to update 20"),
        "{}",
        same.stdout
    );
    let text = zoo.ends_with(0, &["diff", &runs[1], &runs[0]]).stdout;
    assert!(text.contains("first difference  updates 1 to 5: A "), "{text}");

    // Other data. From here on, the name is that of a newer run.
    let first = found["runs"][0]["folder"].as_str().unwrap().to_owned();
    let fewer = ["--arms", "fp32", "--set", "data.reader.train=128"];
    zoo.ends_with(0, &[&call[..], &fewer].concat());
    let found = zoo.ends_with(0, &["diff", &first, "@last", "--format", "json"]).json();
    let splits: Vec<&str> =
        found["data"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    // Fewer sentences number the words in another order, so the ids of all splits differ.
    assert_eq!(splits, ["test", "train", "valid"], "{found}");
    assert_eq!(found["recipe"][0]["values"], serde_json::json!([256, 128]), "{found}");

    // Another recipe.
    let other = ["reproduce", "reversal-rnn-rnn", "--tier", "smoke", "--arms", "fp32", "--threads", "2"];
    zoo.ends_with(0, &other);
    let text = zoo.ends_with(0, &["diff", &first, "@last"]).stdout;
    assert!(text.contains("model.encoder.kind") && text.contains("threads"), "{text}");
    zoo.ends_with(2, &["diff", &runs[0], "no-such-run"]);
    zoo.ends_with(2, &["diff", &runs[0], &runs[1], "--format", "csv"]);
}
