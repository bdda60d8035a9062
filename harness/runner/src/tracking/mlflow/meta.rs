//! `meta.yaml` of MLflow: one key and one value a line.

use std::collections::BTreeMap;

/// Value of a key.
#[derive(Debug, Clone, Copy)]
pub enum Scalar<'t> {
    Text(&'t str),
    Number(u64),
    /// `null`
    Nothing,
    /// `[]`
    Empty,
}

/// The text of a file with these keys, in the order in which MLflow writes them: sorted.
pub fn text(keys: &BTreeMap<&str, Scalar<'_>>) -> String {
    let value = |scalar: &Scalar<'_>| match scalar {
        // A plain text of digits would be a number.
        Scalar::Text(text) => format!("'{}'", text.replace('\'', "''").replace(['\n', '\r'], " ")),
        Scalar::Number(number) => number.to_string(),
        Scalar::Nothing => "null".to_owned(),
        Scalar::Empty => "[]".to_owned(),
    };
    keys.iter().map(|(key, scalar)| format!("{key}: {}\n", value(scalar))).collect()
}

/// The keys of a file that have texts or numbers. Lists and tables are left out.
pub fn keys(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        if key.is_empty() || key.starts_with([' ', '-', '#']) {
            continue;
        }
        found.extend(scalar(value.trim()).map(|value| (key.to_owned(), value)));
    }
    found
}

fn scalar(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('\'') {
        return Some(inner.strip_suffix('\'')?.replace("''", "'"));
    }
    if text.starts_with('"') {
        // Most of YAML's double-quoted texts are JSON's.
        return serde_json::from_str(text).ok();
    }
    let is_plain =
        !text.is_empty() && !text.starts_with(['[', '{', '|', '>', '&', '*', '!']) && text != "null";
    is_plain.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back() {
        let of = BTreeMap::from([
            ("name", Scalar::Text("it's: a \"run\"")),
            ("experiment_id", Scalar::Text("12")),
            ("start_time", Scalar::Number(1_700_000_000_000)),
            ("end_time", Scalar::Nothing),
            ("tags", Scalar::Empty),
        ]);
        let text = text(&of);
        assert_eq!(
            text,
            "end_time: null\nexperiment_id: '12'\nname: 'it''s: a \"run\"'\nstart_time: 1700000000000\ntags: []\n"
        );
        let keys = keys(&text);
        assert_eq!(keys["name"], "it's: a \"run\"");
        assert_eq!((keys["experiment_id"].as_str(), keys["start_time"].as_str()), ("12", "1700000000000"));
        assert_eq!(keys.len(), 3);
    }

    #[test]
    fn files_of_mlflow_are_read() {
        let text = "artifact_location: file:///a/mlruns/7\nlifecycle_stage: active\nname: \"t\\xE9\"\nrun: \"a b\"\n\
                    tags:\n- a: b\n  c: d\n";
        let found = keys(text);
        assert_eq!(found["artifact_location"], "file:///a/mlruns/7");
        assert_eq!((found.get("name"), found["run"].as_str(), found.len()), (None, "a b", 3));
    }
}
