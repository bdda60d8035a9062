//! Checks of JSON against `docs/json.schema.json`.
//!
//! The keywords are those that the schema uses, with the meaning that JSON Schema gives them. A
//! schema with another keyword is an error, so that no part of it goes unchecked.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::binary::in_root;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(in_root("docs/json.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
});

/// Keywords that say nothing about a value.
const NOTES: [&str; 5] = ["$schema", "$id", "$defs", "title", "description"];

/// Checks a document of a command.
#[track_caller]
pub fn assert_valid(document: &Value) {
    let errors = errors(&SCHEMA, document);
    assert!(errors.is_empty(), "docs/json.schema.json: {}\n{document:#}", errors.join("\n"));
}

/// The definition of a name in the schema.
pub fn definition(name: &str) -> &'static Value {
    SCHEMA["$defs"].get(name).unwrap_or_else(|| panic!("the schema does not define {name}"))
}

/// What is wrong with a value, each with its place.
pub fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "", &mut found);
    found
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = match schema {
        Value::Bool(true) => return,
        Value::Object(schema) => schema,
        other => panic!("{other} is not a schema that is understood"),
    };
    for (keyword, of) in schema {
        match keyword.as_str() {
            note if NOTES.contains(&note) => {}
            "$ref" => {
                let name = of.as_str().and_then(|name| name.strip_prefix("#/$defs/")).expect("a definition");
                check(definition(name), value, at, found);
            }
            "type" => {
                let types = of.as_array().cloned().unwrap_or_else(|| vec![of.clone()]);
                if !types.iter().any(|one| is_of_type(value, one.as_str().unwrap())) {
                    found.push(format!("{at}: {value} is not of type {of}"));
                }
            }
            "const" if value != of => found.push(format!("{at}: {value} is not {of}")),
            "enum" if !of.as_array().unwrap().contains(value) => {
                found.push(format!("{at}: {value} is not one of {of}"));
            }
            "const" | "enum" => {}
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < of.as_f64().unwrap()) {
                    found.push(format!("{at}: {value} is less than {of}"));
                }
            }
            "required" => {
                for key in of.as_array().unwrap().iter().map(|key| key.as_str().unwrap()) {
                    if value.as_object().is_some_and(|object| !object.contains_key(key)) {
                        found.push(format!("{at}: `{key}` is missing"));
                    }
                }
            }
            "properties" | "additionalProperties" => {}
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(of, item, &format!("{at}/{n}"), found);
                }
            }
            "oneOf" | "anyOf" => alternatives(keyword, of.as_array().unwrap(), value, at, found),
            other => panic!("the check of schemas does not know `{other}`"),
        }
    }
    if let Some(object) = value.as_object() {
        members(schema, object, at, found);
    }
}

fn members(schema: &Map<String, Value>, object: &Map<String, Value>, at: &str, found: &mut Vec<String>) {
    let known = schema.get("properties").and_then(Value::as_object);
    for (key, value) in object {
        let place = format!("{at}/{key}");
        match (known.and_then(|known| known.get(key)), schema.get("additionalProperties")) {
            (Some(of), _) => check(of, value, &place, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{place}: the schema has no such key")),
            (None, Some(of)) => check(of, value, &place, found),
            (None, None) => {}
        }
    }
}

fn alternatives(keyword: &str, all: &[Value], value: &Value, at: &str, found: &mut Vec<String>) {
    let each: Vec<Vec<String>> = all
        .iter()
        .map(|schema| {
            let mut found = Vec::new();
            check(schema, value, at, &mut found);
            found
        })
        .collect();
    match each.iter().filter(|errors| errors.is_empty()).count() {
        // The errors of the alternative that is nearest.
        0 => found.extend(each.into_iter().min_by_key(Vec::len).unwrap_or_default()),
        1 => {}
        n if keyword == "oneOf" => found.push(format!("{at}: {n} alternatives fit")),
        _ => {}
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|x| x.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("`{other}` is not a type of JSON Schema"),
    }
}

#[test]
fn a_wrong_type_a_missing_key_and_an_unknown_key_are_found() {
    use serde_json::json;
    let schema = json!({
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": { "type": ["integer", "null"], "minimum": 0 },
            "b": { "type": "array", "items": { "enum": ["x", "y"] } },
        },
        "additionalProperties": false,
    });
    assert_eq!(errors(&schema, &json!({ "a": null, "b": ["x"] })), [""; 0]);
    assert_eq!(
        errors(&schema, &json!({ "a": -1.5, "b": ["x", "z"], "c": 1 })),
        [
            "/a: -1.5 is not of type [\"integer\",\"null\"]",
            "/a: -1.5 is less than 0",
            "/b/1: \"z\" is not one of [\"x\",\"y\"]",
            "/c: the schema has no such key",
        ]
    );
    assert_eq!(errors(&schema, &json!({ "a": 1 })), [": `b` is missing"]);
    let either = json!({ "oneOf": [{ "const": 1 }, { "type": "number" }, { "type": "string" }] });
    assert_eq!(errors(&either, &json!("x")), [""; 0]);
    assert_eq!(errors(&either, &json!(1)), [": 2 alternatives fit"]);
    assert_eq!(errors(&either, &json!(null)).len(), 1);
}
