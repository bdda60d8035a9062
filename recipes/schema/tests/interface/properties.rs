//! Properties that hold for all settings: nothing panics, the schema and the types agree, and
//! printing loses nothing.

use proptest::prelude::*;
use serde_json::Value;
use zoo_recipes::{Document, Recipe, Selection, names};

/// Dotted keys of all values of all recipes, including inner tables.
fn keys() -> Vec<String> {
    fn walk(json: &Value, key: &str, keys: &mut Vec<String>) {
        if let Value::Object(members) = json {
            for (name, value) in members {
                let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                keys.push(inner.clone());
                walk(value, &inner, keys);
            }
        }
    }
    let mut keys = Vec::new();
    for name in names() {
        let recipe = Document::load(name).unwrap().resolve(&Selection::arm("mixed")).unwrap().recipe;
        let mut json = serde_json::to_value(recipe).unwrap();
        json.as_object_mut().unwrap().retain(|block, _| block != "recipe" && block != "claim");
        walk(&json, "", &mut keys);
    }
    keys.sort();
    keys.dedup();
    keys
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (0i64..100).prop_map(|number| number.to_string()),
        (0.0f64..1.0).prop_map(|number| format!("{number:?}")),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| format!("{number:?}")),
        Just("inf".to_owned()),
        Just("nan".to_owned()),
        Just("true".to_owned()),
        Just("[1, 2]".to_owned()),
        Just("[\"lowercase\"]".to_owned()),
        Just("{}".to_owned()),
        Just("{ kind = \"fixed\", lr = 1 }".to_owned()),
        Just("{ kind = \"none\" }".to_owned()),
        Just("2024-01-01".to_owned()),
        prop::sample::select(vec![
            "none", "all", "pre", "post", "fp32", "bf16", "raw", "drop", "zeros", "tokens"
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_override_is_refused_in_words_or_kept_to_the_letter(
        name in prop::sample::select(names()),
        arm in prop::sample::select(vec!["fp32", "mixed"]),
        tier in prop::option::of(Just("smoke".to_owned())),
        sets in prop::collection::vec((prop::sample::select(keys()), value()), 1..3),
    ) {
        let overrides: Vec<String> = sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selection = Selection { arm: Some(arm.to_owned()), tier, overrides };
        match Document::load(name).unwrap().resolve(&selection) {
            Ok(resolved) => {
                let again = Recipe::from_toml(&resolved.toml).unwrap();
                prop_assert_eq!(&again, &resolved.recipe);
                prop_assert_eq!(again.hash(), resolved.hash);
            }
            Err(found) => {
                prop_assert!(!found.is_empty());
                let text = found.to_string();
                prop_assert!(!text.contains("cannot be read"), "serde knows more than the schema: {}", text);
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = Document::parse(&text, "x.toml", std::path::Path::new(""));
    }

    #[test]
    fn no_toml_makes_the_loader_panic(
        lines in prop::collection::vec(prop::sample::select(vec![
            "[recipe]", "name = \"x\"", "base = \"transformer-base\"", "base = \"\"", "without = [\"data\"]",
            "without = [\"\", \".\", \"a..b\"]", "[arm]", "[arm.a]", "arm = 1", "tier = [1]", "[tier.t.data]",
            "[[claim]]", "kind = \"value\"", "[data]", "[data.eval]", "x = 1", "[model.encoder]", "loss = []",
        ]), 0..8),
    ) {
        if let Ok(document) = Document::parse(&lines.join("\n"), "x.toml", std::path::Path::new("")) {
            let _ = document.check();
        }
    }
}
