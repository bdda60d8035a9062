//! The committed JSON Schema is the one that the types generate, and the recipes conform to it.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use zoo_recipes::{embedded, schema, schema_text};

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.json")
}

#[test]
fn the_committed_schema_is_current() {
    // ZOO_WRITE_SCHEMA=1 cargo test -p zoo-recipes --test interface schema
    if env::var_os("ZOO_WRITE_SCHEMA").is_some() {
        let temporary = committed().with_extension("json.new");
        fs::write(&temporary, schema_text()).unwrap();
        fs::rename(&temporary, committed()).unwrap();
    }
    let text = fs::read_to_string(committed()).unwrap();
    assert!(
        text == schema_text(),
        "recipes/schema/schema.json is old: zoo schema > recipes/schema/schema.json"
    );
}

/// Validates against the part of JSON Schema that the schema uses. An unknown keyword is a failure,
/// so that no keyword is ignored.
fn valid(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let members = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Object(members) => members,
        other => panic!("no schema: {other}"),
    };
    let fail = |what: String| Err(format!("{path}: {what}"));
    for (keyword, rule) in members {
        match keyword.as_str() {
            "description" | "default" | "title" | "$schema" | "$defs" | "then" | "else" => {}
            "format" => {
                assert!(matches!(rule.as_str(), Some("double" | "int32" | "uint32" | "uint64")), "{rule}")
            }
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                assert!(root["$defs"].get(name).is_some(), "nothing is called {name}");
                valid(root, &root["$defs"][name], value, path)?;
            }
            "type" => {
                let holds = match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    other => panic!("unknown type {other}"),
                };
                if !holds {
                    return fail(format!("{value} is no {rule}"));
                }
            }
            "const" => {
                if value != rule {
                    return fail(format!("{value} is not {rule}"));
                }
            }
            "minItems" | "maxItems" => {
                let (due, there) = (rule.as_u64().unwrap() as usize, value.as_array().map(Vec::len));
                let fits = |there: usize| if keyword == "minItems" { there >= due } else { there <= due };
                if there.is_some_and(|there| !fits(there)) {
                    return fail(format!("{value} has not {due} items"));
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|value| value < rule.as_f64().unwrap()) {
                    return fail(format!("{value} is below {rule}"));
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                        return fail(format!("{key} is missing"));
                    }
                }
            }
            "properties" => {
                for (key, inner) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        valid(root, inner, value, &format!("{path}.{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    if schema["properties"].get(key).is_some() {
                        continue;
                    }
                    if rule == &json!(false) {
                        return fail(format!("{key} is unknown"));
                    }
                    valid(root, rule, value, &format!("{path}.{key}"))?;
                }
            }
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    valid(root, rule, item, &format!("{path}.{at}"))?;
                }
            }
            "oneOf" | "anyOf" => {
                let results: Vec<_> =
                    rule.as_array().unwrap().iter().map(|choice| valid(root, choice, value, path)).collect();
                let good = results.iter().filter(|result| result.is_ok()).count();
                if good == 0 || keyword == "oneOf" && good > 1 {
                    return fail(format!("{good} choices fit: {results:?}"));
                }
            }
            "not" => {
                if valid(root, rule, value, path).is_ok() {
                    return fail(format!("fits {rule}"));
                }
            }
            "if" => {
                let branch = if valid(root, rule, value, path).is_ok() { "then" } else { "else" };
                if let Some(rule) = members.get(branch) {
                    valid(root, rule, value, path)?;
                }
            }
            other => panic!("unknown keyword {other}"),
        }
    }
    Ok(())
}

/// The path of a recipe without short forms.
fn written_out(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/written-out/{name}.toml"))
}

fn check(text: &str) -> Result<(), String> {
    let value: Value = toml::from_str(text).unwrap();
    let schema = schema();
    valid(&schema, &schema, &value, "")
}

#[test]
fn every_recipe_file_keeps_to_the_schema() {
    for recipe in embedded() {
        check(recipe.text).unwrap_or_else(|what| panic!("{}: {what}", recipe.name));
    }
}

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    let text = fs::read_to_string(written_out("multi30k-transformer-tiny")).unwrap();
    for (from, to) in [
        ("width = 128", "widht = 128"),
        ("merges = 10000", "merges = \"10000\""),
        ("kind = \"subword-nmt\"", "kind = \"subword\""),
        ("norm = \"post\"", "norm = \"last\""),
        ("label_smoothing = 0.1", ""),
        ("lines = 1014", "lines = -1"),
        ("[arm.fp32.precision]", "[arm.fp32.precison]"),
        ("step_window = 8192", "step_windows = 8192"),
        ("without = [\"data.corpus\", \"data.eval\"]", "without = \"data.corpus\""),
        ("kind = \"parity\"", "kind = \"equal\""),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(check(&text.replacen(from, to, 1)).is_err(), "{from} -> {to}");
    }
    let big = embedded().iter().find(|recipe| recipe.name == "transformer-big").unwrap().text;
    assert!(
        check(&big.replace("base = \"transformer-base\"\n", "")).is_err(),
        "without a base all is required"
    );
    assert!(check(&big.replace("name = \"transformer-big\"\n", "")).is_err(), "a file says its own name");
}
