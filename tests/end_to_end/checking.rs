//! `zoo check`, and checks of the repository's files.

use crate::binary::{Zoo, in_root};

#[test]
fn all_recipes_are_sound() {
    let ended = Zoo::new().ends_with(0, &["check", "--format", "json"]);
    let rows = ended.part("recipes");
    assert!(rows.as_array().unwrap().len() >= 4);
    assert!(rows.as_array().unwrap().iter().all(|row| row["sound"] == true), "{rows}");
}

#[test]
fn a_broken_recipe_is_told_by_line_column_and_nearest_key() {
    let zoo = Zoo::new();
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    let line = |text: &str| 1 + text.lines().position(|line| line.starts_with("max_updates")).unwrap();
    let broken = text.replacen("max_updates = 800", "max_updtaes = 800", 1);
    assert_ne!(text, broken);
    zoo.file("reversal-transformer.toml", &broken);
    let ended = zoo.ends_with(3, &["check", "./reversal-transformer.toml"]);
    let place = format!("./reversal-transformer.toml:{}:1: error:", line(&text));
    assert!(ended.stderr.contains(&place), "{place}\n{}", ended.stderr);
    assert!(ended.stderr.contains("did you mean `max_updates`?"), "{}", ended.stderr);
    assert!(ended.stderr.trim_end().ends_with("errors") || ended.stderr.contains("has an error"));
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let zoo = Zoo::new();
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    let broken = text.replacen("heads = 8", "heads = 7", 1).replacen(
        "kind = \"lazy-adam\"",
        "kind = \"lasy-adam\"",
        1,
    );
    zoo.file("reversal-transformer.toml", &broken);
    let ended = zoo.ends_with(3, &["check", "./reversal-transformer.toml"]);
    assert!(ended.stderr.contains("did you mean `lazy-adam`?"), "{}", ended.stderr);
    zoo.file("reversal-transformer.toml", &text.replacen("heads = 8", "heads = 7", 1));
    let ended = zoo.ends_with(3, &["check", "./reversal-transformer.toml"]);
    assert!(ended.stderr.contains("heads"), "{}", ended.stderr);
    zoo.file("reversal-transformer.toml", "[recipe\n");
    let ended = zoo.ends_with(3, &["check", "./reversal-transformer.toml"]);
    assert!(ended.stderr.contains("reversal-transformer.toml:1:"), "{}", ended.stderr);
}

#[test]
fn json_has_every_finding_with_its_place_and_hint() {
    let zoo = Zoo::new();
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    zoo.file("broken.toml", &text.replacen("max_updates = 800", "max_updtaes = 800", 1));
    let ended =
        zoo.ends_with(3, &["check", "./broken.toml", "transformer-big", "no-such", "--format", "json"]);
    let rows = ended.part("recipes");
    let line = 1 + text.lines().position(|line| line.starts_with("max_updates")).unwrap();
    let found = rows[0]["findings"].as_array().unwrap();
    let found = found.iter().find(|found| found["line"] == line).unwrap_or_else(|| panic!("{rows}"));
    assert_eq!((&found["file"], &found["column"]), (&"./broken.toml".into(), &1.into()), "{rows}");
    assert_eq!(found["message"], "`train` has no key `max_updtaes`", "{rows}");
    assert_eq!(found["hint"], "did you mean `max_updates`?", "{rows}");
    assert_eq!((&rows[1]["sound"], &rows[1]["findings"]), (&true.into(), &serde_json::json!([])), "{rows}");
    assert_eq!(rows[2]["findings"][0]["message"], "there is no recipe `no-such`", "{rows}");
    let error = ended.error();
    assert_eq!(
        (&error["exit"], &error["file"], &error["line"]),
        (&"recipe".into(), &"./broken.toml".into(), &rows[0]["findings"][0]["line"])
    );
    assert_eq!(error["findings"], rows[0]["findings"], "{error}");
}

#[test]
fn a_sound_one_beside_a_broken_one_is_still_reported() {
    let zoo = Zoo::new();
    zoo.file("broken.toml", "");
    let ended = zoo.ends_with(3, &["check", "./broken.toml", "transformer-big"]);
    assert!(ended.stdout.contains("sound"), "{}", ended.stdout);
}

#[test]
fn recipes_in_the_documents_are_sound() {
    let zoo = Zoo::new();
    for (file, claims) in [("README.md", 0), ("docs/recipes.md", 1)] {
        let text = std::fs::read_to_string(in_root(file)).unwrap();
        let recipe = text.split("```toml\n").filter_map(|rest| rest.split("```").next());
        let recipe = recipe.skip(1).find(|recipe| recipe.contains("my-tiny")).unwrap();
        zoo.file("my-tiny.toml", recipe);
        let checked = zoo.ends_with(0, &["check", "my-tiny.toml", "--format", "json"]).part("recipes");
        assert_eq!(
            (checked[0]["published"].as_u64(), &checked[0]["tiers"]),
            (Some(claims), &serde_json::json!(["smoke"]))
        );
    }
}

/// Everyone who opens the project reads the whole README. Its table of runs grows with the ledger.
#[test]
fn the_readme_is_short() {
    let text = std::fs::read_to_string(in_root("README.md")).unwrap();
    let (before, rest) = text.split_once("<!-- runs:begin").unwrap();
    let (_, after) = rest.split_once("<!-- runs:end -->").unwrap();
    let written = format!("{before}{after}");
    let (lines, bytes) = (written.lines().count(), written.len());
    assert!(lines <= 112 && bytes <= 5600, "{lines} lines, {bytes} bytes");
    assert!(text.lines().count() <= 160, "{} lines with the table", text.lines().count());
}

#[test]
fn a_claim_that_could_not_be_judged_is_told_before_anything_is_trained() {
    let zoo = Zoo::new();
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    for (from, to, says) in [
        ("tok:none", "tok:13b", "signature `nrefs:1|case:mixed|eff:no|tok:13b"),
        ("metric = \"bleu\"", "metric = \"chrf\"", "the metric is `chrf`, but the signature is of bleu"),
    ] {
        assert!(text.contains(from), "{from}");
        zoo.file("reversal-transformer.toml", &text.replacen(from, to, 1));
        let line = 1 + text.lines().position(|line| line == "[[claim]]").unwrap();
        let place = format!("./reversal-transformer.toml:{line}:");
        for command in [
            &["check", "./reversal-transformer.toml", "reversal-transformer"][..],
            &["reproduce", "./reversal-transformer.toml", "--yes"],
        ] {
            let ended = zoo.ends_with(3, command);
            assert!(ended.stderr.contains(&place) && ended.stderr.contains(says), "{}", ended.stderr);
        }
        assert!(!zoo.home().join("ledger.jsonl").exists());
    }
}
