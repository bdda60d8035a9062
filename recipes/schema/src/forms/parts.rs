//! Parts: TOML files of `recipes/parts` that a recipe uses by name.
//!
//! `preset` of an arm or tier names parts in the folders `arm` and `tier`. `recipe.use` names other
//! parts, with their folder.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::forms::both;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::sources::Shelf;
use crate::tree::{Entry, Node, Table, Value};

/// The blocks that a part may have.
const BLOCKS: [&str; 6] = ["data", "model", "loss", "train", "precision", "decode"];

/// The trees of the parts that `recipe.use` names, in its order.
pub(crate) fn parts(named: &Entry, shelf: &mut Shelf<'_>, found: &mut Diagnostics) -> Vec<Node> {
    let mut trees = Vec::new();
    for (word, at) in words(&named.node, "recipe.use", found) {
        if word.starts_with("arm/") || word.starts_with("tier/") {
            let (folder, name) = word.split_once('/').unwrap_or_default();
            let message = format!("`{word}` is a preset of an arm or tier");
            found.push(Diagnostic::new(at, message).hint(format!("[{folder}.NAME] preset = \"{name}\"")));
            continue;
        }
        trees.extend(open("", &word, &at, false, shelf, found));
    }
    trees
}

/// The layers of the presets of an arm or tier. The overlay is a name, or a table with `preset`,
/// which this removes.
pub(crate) fn presets(
    what: &str,
    place: &str,
    overlay: &mut Node,
    shelf: &mut Shelf<'_>,
    found: &mut Diagnostics,
) -> Vec<Layer> {
    let named = match &overlay.value {
        Value::String(_) => {
            let empty = Node { value: Value::Table(Table::default()), origin: overlay.origin.clone() };
            std::mem::replace(overlay, empty)
        }
        _ => match overlay.table_mut().and_then(|table| table.remove("preset")) {
            Some(entry) => entry.node,
            None => return Vec::new(),
        },
    };
    let words = words(&named, &format!("{place}.preset"), found);
    let trees = words.into_iter().filter_map(|(word, at)| open(what, &word, &at, true, shelf, found));
    trees.map(|node| Layer { node, inherited: true }).collect()
}

/// The names in a string, separated by commas, or in an array of strings.
fn words(named: &Node, place: &str, found: &mut Diagnostics) -> Vec<(String, Origin)> {
    let items = match &named.value {
        Value::Array(items) => items.as_slice(),
        _ => std::slice::from_ref(named),
    };
    let mut words = Vec::new();
    for item in items {
        match &item.value {
            Value::String(text) => {
                words.extend(text.split(',').map(|word| (word.trim().to_owned(), item.origin.clone())));
            }
            other => {
                let message = format!("`{place}` is {}; expected names of parts", other.type_name());
                found.push(Diagnostic::new(item.origin.clone(), message));
            }
        }
    }
    words
}

/// The tree of a part, with its short forms expanded. Its root has the position where the part was
/// named.
fn open(
    folder: &str,
    word: &str,
    at: &Origin,
    is_preset: bool,
    shelf: &mut Shelf<'_>,
    found: &mut Diagnostics,
) -> Option<Node> {
    let mut node = shelf.open(folder, word, at, found)?;
    both(&mut node, found);
    node.origin = at.clone();
    let blocks = node.table().map(|table| table.entries.as_slice()).unwrap_or_default();
    for entry in blocks {
        let known = BLOCKS.contains(&entry.key.as_str()) || is_preset && entry.key == "without";
        if !known {
            let message = format!("a part has no `{}`", entry.key);
            let hint = format!("a part has the blocks {}", BLOCKS.join(", "));
            found.push(Diagnostic::new(entry.key_origin.clone(), message).hint(hint));
        }
    }
    Some(node)
}
