//! Comparison of models by the kinds of their parts. Sizes, rates and initialisers change numbers
//! but not code, so they do not count.

use serde::Serialize;

/// The dotted keys in which two descriptions differ, starting from `path`. Parts of different kinds
/// differ as a whole.
pub fn differences<T: Serialize>(path: &str, one: &T, other: &T) -> Vec<String> {
    let json = |value: &T| serde_json::to_value(value).unwrap_or_default();
    let mut keys = Vec::new();
    compare(path, &json(one), &json(other), &mut keys);
    keys
}

fn compare(path: &str, one: &serde_json::Value, other: &serde_json::Value, keys: &mut Vec<String>) {
    match (one.as_object(), other.as_object()) {
        (Some(left), Some(right)) if left.get("kind") == right.get("kind") => {
            for (key, value) in left {
                let missing = serde_json::Value::Null;
                compare(&format!("{path}.{key}"), value, right.get(key).unwrap_or(&missing), keys);
            }
        }
        _ if one != other => keys.push(path.to_owned()),
        _ => {}
    }
}
