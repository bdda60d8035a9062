//! `zoo verify`: evidence levels that pass, and levels that fail.

use crate::binary::{Zoo, in_root, root};

fn rungs(recipe: &serde_json::Value) -> Vec<(&str, bool)> {
    (recipe["rungs"].as_array().unwrap().iter())
        .map(|rung| (rung["rung"].as_str().unwrap(), rung["holds"].as_bool().unwrap()))
        .collect()
}

#[test]
fn every_recipe_is_climbed_again() {
    let zoo = Zoo::new();
    let ended = zoo.ends_with(0, &["verify", "--format", "json"]);
    let found = ended.part("recipes");
    let listed = zoo.ends_with(0, &["list", "--format", "json"]).part("recipes");
    assert_eq!(found.as_array().unwrap().len(), listed.as_array().unwrap().len());
    for (climbed, listed) in found.as_array().unwrap().iter().zip(listed.as_array().unwrap()) {
        assert_eq!(climbed["recipe"], listed["name"]);
        let rungs = rungs(climbed);
        assert!(rungs.len() >= 2 && rungs.iter().all(|(_, holds)| *holds), "{climbed}");
        if ["parity", "traces", "smoke", "small-run", "full-run"]
            .contains(&listed["evidence"].as_str().unwrap())
        {
            assert_eq!(rungs.last(), Some(&("parity", true)), "{climbed}");
        }
    }
}

#[test]
fn a_rung_that_was_asked_for_is_climbed_shown_or_not() {
    let zoo = Zoo::new();
    let ended = zoo.ends_with(0, &["verify", "reversal-transformer", "--to", "smoke", "--format", "json"]);
    let found = ended.part("recipes");
    assert_eq!(found[0]["reached"], "smoke");
    let smoke = found[0]["rungs"][4]["what"].as_str().unwrap();
    assert!(smoke.starts_with("2 runs, 2 scores and 3 verdicts"), "{smoke}");
    // It was trained in a temporary folder.
    assert!(!zoo.home().join("runs").exists() && !zoo.home().join("ledger.jsonl").exists());

    let ledger = in_root("results/data/ledger.jsonl");
    let climb =
        ["verify", "reversal-transformer", "--to", "full-run", "--ledger", &ledger, "--format", "json"];
    let found = zoo.ends_with(0, &climb).part("recipes");
    assert_eq!(found[0]["reached"], "full-run");
    zoo.ends_with(4, &["verify", "reversal-transformer", "--ledger", "none.jsonl"])
        .says("there is no ledger");
    let ended = zoo.ends_with(9, &["verify", "transformer-big", "--to", "small-run"]);
    ended.says("small-run failed: none recorded");
}

#[test]
fn the_climb_stops_at_the_first_rung_that_breaks() {
    let zoo = Zoo::new();
    let fixtures = zoo.home().join("fixtures");
    std::fs::create_dir(&fixtures).unwrap();
    for entry in std::fs::read_dir(root().join("tests/fixtures")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, fixtures.join(path.file_name().unwrap())).unwrap();
    }
    let folder = fixtures.to_str().unwrap();
    let climb = ["verify", "transformer-base", "--to", "traces", "--fixtures", folder, "--format", "json"];
    assert_eq!(zoo.ends_with(0, &climb).part("recipes")[0]["reached"], "traces");

    // A learning rate of the recipe's schedule.
    let file = fixtures.join("schedules.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let changed = text.replace("[1, ", "[1, 9");
    assert_ne!(text, changed);
    std::fs::write(&file, changed).unwrap();
    let ended = zoo.ends_with(9, &climb);
    assert_eq!(rungs(&ended.part("recipes")[0]).last(), Some(&("traces", false)));
    ended.says("traces failed: schedule ");

    // One weight of the reference, changed in its exponent. Levels above parity are not checked.
    let file = fixtures.join("transformer_prenorm_openseq2seq.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let at = json["weights/encoder.layers.0.feed_forward.input.weight"]["data_offsets"][0].as_u64().unwrap();
    bytes[8 + header + at as usize + 3] ^= 0x41;
    std::fs::write(&file, bytes).unwrap();
    let ended = zoo.ends_with(9, &climb);
    assert_eq!(rungs(&ended.part("recipes")[0]).last(), Some(&("parity", false)));
    ended.says("transformer_prenorm_openseq2seq.safetensors on cpu: encoder");
    std::fs::remove_file(&file).unwrap();
    zoo.ends_with(9, &climb).says("transformer_prenorm_openseq2seq.safetensors: No such file");

    // A recipe with a key that is not known breaks at once.
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    let bad = zoo.file(
        "reversal-transformer.toml",
        &text.replacen("clip", "clpi", 1).replacen("heads = 8", "hedas = 8", 1),
    );
    zoo.ends_with(9, &["verify", bad.to_str().unwrap()]).says("schema failed");
}

#[test]
fn parity_is_shown_in_halves_too() {
    let zoo = Zoo::new();
    for compute in ["bf16", "fp16"] {
        let climb =
            ["verify", "transformer-base", "--to", "parity", "--compute", compute, "--format", "json"];
        let found = zoo.ends_with(0, &climb).part("recipes");
        assert_eq!(found[0]["reached"], "parity");
        let what = found[0]["rungs"][2]["what"].as_str().unwrap();
        assert!(what.starts_with(&format!("products in {compute}: transformer_")), "{what}");
        assert!(what.contains("6 rungs") && !what.contains("search_"), "{what}");
    }
    let file = in_root("tests/fixtures/transformer_prenorm_openseq2seq.safetensors");
    let call = ["align", "transformer-base", &file, "--compute", "bf16", "--format", "json"];
    let rungs = zoo.ends_with(0, &call).json();
    assert!(rungs["rungs"][1]["error"].as_f64().unwrap() > 5e-4, "{rungs}");
}
