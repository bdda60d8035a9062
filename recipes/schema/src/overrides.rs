//! Overrides `KEY=VALUE` of `--set`: a dotted key, and a TOML value or bare word.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::Document;
use crate::origin::Origin;
use crate::overlay::merge;
use crate::tree::{Entry, Node, Table, Value, parse_override};

impl Document {
    /// The overrides of keys that `recipe.free` does not list. A run with one of them does not count
    /// as a reproduction.
    ///
    /// # Errors
    /// An override is not `key=value`, or may not be set.
    pub fn binding_overrides(&self, overrides: &[String]) -> Result<Vec<String>, Diagnostics> {
        let mut found = Diagnostics::default();
        let mut nothing = Node { value: Value::Table(Table::default()), origin: self.start() };
        let keys = lay_overrides(&mut nothing, overrides, &mut found);
        found.into_result(self.binding(keys))
    }

    /// The overrides of which `recipe.free` does not list every key.
    pub(crate) fn binding(&self, overrides: Vec<(String, Vec<String>)>) -> Vec<String> {
        let binding = |keys: &[String]| !keys.iter().all(|key| self.is_free(key));
        overrides.into_iter().filter(|(_, keys)| binding(keys)).map(|(text, _)| text).collect()
    }

    pub(crate) fn are_free(&self, overrides: &[String]) -> bool {
        self.binding_overrides(overrides).is_ok_and(|binding| binding.is_empty())
    }

    fn is_free(&self, key: &str) -> bool {
        self.about.free.iter().any(|free| {
            key == free || key.strip_prefix(free.as_str()).is_some_and(|rest| rest.starts_with('.'))
        })
    }
}

/// Applies the overrides as one layer, so that a new `kind` and its keys are applied together.
/// Returns the leaf keys that each override sets.
pub(crate) fn lay_overrides(
    root: &mut Node,
    overrides: &[String],
    found: &mut Diagnostics,
) -> Vec<(String, Vec<String>)> {
    let mut keys = Vec::new();
    let mut layer: Option<Node> = None;
    for text in overrides {
        let origin = Origin::Override { text: Arc::from(text.as_str()) };
        match one_override(text, &origin) {
            Ok((leaves, node)) => {
                keys.push((text.clone(), leaves));
                match &mut layer {
                    Some(layer) => merge(layer, &node),
                    None => layer = Some(node),
                }
            }
            Err(one) => found.push(one),
        }
    }
    if let Some(layer) = layer {
        merge(root, &layer);
    }
    keys
}

/// Converts `a.b=1` to the table `{ a = { b = 1 } }`, and returns the dotted keys of the values in
/// it.
fn one_override(text: &str, origin: &Origin) -> Result<(Vec<String>, Node), Diagnostic> {
    let wrong = |message: String| Diagnostic::new(origin.clone(), message);
    let Some((key, value)) = text.split_once('=') else {
        return Err(wrong("there is no `=`".to_owned()).hint("--set train.log_every=10"));
    };
    let (key, value) = (key.trim(), value.trim());
    let segments: Vec<&str> = key.split('.').map(str::trim).collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(wrong(format!("`{key}` is not a dotted key")).hint("--set train.log_every=10"));
    }
    if matches!(segments[0], "recipe" | "claim" | "arm" | "tier") {
        let hint = "copy the recipe to a file of your own and give its path";
        return Err(wrong(format!("`{}` says what was published and cannot be set", segments[0])).hint(hint));
    }
    let value =
        parse_override(value, origin).map_err(|message| wrong(message).hint("strings may be quoted"))?;
    let mut leaves = Vec::new();
    leaf_keys(&value, key, &mut leaves);
    let node = segments.iter().rev().fold(value, |node, segment| Node {
        value: Value::Table(Table {
            entries: vec![Entry { key: (*segment).to_owned(), key_origin: origin.clone(), node }],
        }),
        origin: origin.clone(),
    });
    Ok((leaves, node))
}

fn leaf_keys(node: &Node, key: &str, leaves: &mut Vec<String>) {
    match node.table() {
        Some(table) if !table.entries.is_empty() => {
            for entry in &table.entries {
                leaf_keys(&entry.node, &format!("{key}.{}", entry.key), leaves);
            }
        }
        _ => leaves.push(key.to_owned()),
    }
}
