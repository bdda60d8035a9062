//! Lays one layer of a recipe over another.
//!
//! Tables merge by key. Arrays and plain values are replaced. A table whose `kind` changes is
//! replaced as a whole. A layer's `without` lists dotted keys that are removed before the layer is
//! applied.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::did_you_mean;
use crate::tree::{Node, Value};

/// Lays `layer` (a table, including its `without`) over `base`.
pub(crate) fn apply(base: &mut Node, layer: &Node, found: &mut Diagnostics) {
    let mut layer = layer.clone();
    let without = layer.table_mut().and_then(|table| table.remove("without"));
    if let Some(entry) = without {
        take_out(base, &entry.node, found);
    }
    merge(base, &layer);
}

/// Removes the dotted keys in `list` from `base`.
pub(crate) fn take_out(base: &mut Node, list: &Node, found: &mut Diagnostics) {
    let Value::Array(items) = &list.value else {
        let message = format!("`without` is {}; expected an array of dotted keys", list.value.type_name());
        found.push(Diagnostic::new(list.origin.clone(), message));
        return;
    };
    for item in items {
        match &item.value {
            Value::String(path) => remove(base, path, item, found),
            other => {
                let message = format!("`without` lists {}; dotted keys are due here", other.type_name());
                found.push(Diagnostic::new(item.origin.clone(), message));
            }
        }
    }
}

fn remove(base: &mut Node, path: &str, named_at: &Node, found: &mut Diagnostics) {
    let (parents, last) = path.rsplit_once('.').map_or(("", path), |(parents, last)| (parents, last));
    let mut node = base;
    for segment in parents.split('.').filter(|segment| !segment.is_empty()) {
        let keys = keys_of(node);
        match node.table_mut().and_then(|table| table.get_mut(segment)) {
            Some(inner) => node = inner,
            None => return nothing_there(path, segment, &keys, named_at, found),
        }
    }
    let keys = keys_of(node);
    if node.table_mut().and_then(|table| table.remove(last)).is_none() {
        nothing_there(path, last, &keys, named_at, found);
    }
}

fn keys_of(node: &Node) -> Vec<String> {
    node.table()
        .map(|table| table.entries.iter().map(|entry| entry.key.clone()).collect())
        .unwrap_or_default()
}

fn nothing_there(path: &str, segment: &str, keys: &[String], named_at: &Node, found: &mut Diagnostics) {
    let message = format!("`without` names `{path}`, but nothing of that name is below this layer");
    let hint = did_you_mean(segment, keys.iter().map(String::as_str), "keys");
    found.push(Diagnostic::new(named_at.origin.clone(), message).hint(hint));
}

/// Lays the table `layer` over `base`.
pub(crate) fn merge(base: &mut Node, layer: &Node) {
    let (Value::Table(below), Value::Table(above)) = (&mut base.value, &layer.value) else {
        *base = layer.clone();
        return;
    };
    let other_kind = match (below.string("kind"), above.string("kind")) {
        (Some(old), Some(new)) => old != new,
        _ => false,
    };
    if other_kind {
        *base = layer.clone();
        return;
    }
    for entry in &above.entries {
        match below.get_mut(&entry.key) {
            Some(node) => merge(node, &entry.node),
            None => below.entries.push(entry.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse;

    fn laid(base: &str, layer: &str) -> Result<serde_json::Value, Diagnostics> {
        let mut found = Diagnostics::default();
        let mut node = parse(base, "base").unwrap();
        apply(&mut node, &parse(layer, "layer").unwrap(), &mut found);
        found.into_result(node.to_json())
    }

    #[test]
    fn tables_merge_and_arrays_replace() {
        let json = laid("a = 1\n[t]\nx = [1, 2]\ny = 3\n", "[t]\nx = [9]\nz = 4\n").unwrap();
        assert_eq!(json, serde_json::json!({"a": 1, "t": {"x": [9], "y": 3, "z": 4}}));
    }

    #[test]
    fn a_changed_kind_replaces_its_table_and_the_same_kind_merges() {
        let base = "[s]\nkind = \"inverse-sqrt\"\nlr = 1.0\nwarmup_updates = 9\n";
        let other = laid(base, "[s]\nkind = \"fixed\"\nlr = 2.0\n").unwrap();
        assert_eq!(other, serde_json::json!({"s": {"kind": "fixed", "lr": 2.0}}));
        let same = laid(base, "[s]\nkind = \"inverse-sqrt\"\nlr = 2.0\n").unwrap();
        assert_eq!(same, serde_json::json!({"s": {"kind": "inverse-sqrt", "lr": 2.0, "warmup_updates": 9}}));
    }

    #[test]
    fn origins_survive() {
        let mut found = Diagnostics::default();
        let mut node = parse("[t]\nx = 1\ny = 2\n", "base").unwrap();
        apply(&mut node, &parse("\n\nt.y = 3\n", "layer").unwrap(), &mut found);
        assert_eq!(node.locate("t.x").to_string(), "base:2:5");
        assert_eq!(node.locate("t.y").to_string(), "layer:3:7");
    }

    #[test]
    fn without_takes_out_before_the_layer_is_laid_on() {
        let json = laid("[t]\nx = 1\ny.z = 2\n", "without = [\"t.x\", \"t.y.z\"]\n[t]\nx = 5\n").unwrap();
        assert_eq!(json, serde_json::json!({"t": {"y": {}, "x": 5}}));
    }

    #[test]
    fn without_must_name_what_is_there() {
        let found = laid("[data]\ncorpus = \"c\"\n", "without = [\"data.corpsu\", 3]\n").unwrap_err();
        let text = found.to_string();
        assert!(text.contains("layer:1:12: error: `without` names `data.corpsu`"), "{text}");
        assert!(text.contains("did you mean `corpus`?"), "{text}");
        assert!(text.contains("lists an integer"), "{text}");
        assert!(
            laid("", "without = 3\n").unwrap_err().to_string().contains("expected an array of dotted keys")
        );
    }
}
