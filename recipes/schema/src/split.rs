//! Splits a recipe file into body, parts, arms and tiers.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::forms;
use crate::layer::{Layer, Overlay};
use crate::origin::Origin;
use crate::sources::Shelf;
use crate::tree::{Node, Table, Value};

/// A split file, with its short forms expanded.
pub(crate) struct Split {
    pub(crate) body: Node,
    /// The parts that the file uses, in its order. They lie below the body.
    pub(crate) parts: Vec<Node>,
    pub(crate) arms: Vec<Overlay>,
    pub(crate) tiers: Vec<Overlay>,
    pub(crate) base: Option<(String, Origin)>,
}

impl Split {
    /// Splits a file's tree.
    pub(crate) fn of(mut root: Node, shelf: &mut Shelf<'_>, found: &mut Diagnostics) -> Self {
        forms::claims(&mut root, found);
        forms::both(&mut root, found);
        let mut overlays = |name: &str| match root.table_mut().and_then(|table| table.remove(name)) {
            Some(entry) => named_overlays(name, entry.node, shelf, found),
            None => Vec::new(),
        };
        let arms = overlays("arm");
        let tiers = overlays("tier");
        let mut base = None;
        let mut without = None;
        let mut parts = Vec::new();
        if let Some(about) =
            root.table_mut().and_then(|table| table.get_mut("recipe")).and_then(Node::table_mut)
        {
            base = about.remove("base").and_then(|entry| match entry.node.value {
                Value::String(name) => Some((name, entry.node.origin)),
                other => {
                    let message = format!("`recipe.base` is {}; expected a name or path", other.type_name());
                    found.push(Diagnostic::new(entry.node.origin, message));
                    None
                }
            });
            without = about.remove("without");
            if let Some(entry) = about.remove("use") {
                parts = forms::parts(&entry, shelf, found);
            }
        }
        if let Some(entry) = without {
            if base.is_none() && parts.is_empty() {
                let message = "`recipe.without` takes keys out of a base, and this recipe has none";
                found.push(Diagnostic::new(entry.key_origin.clone(), message));
            } else if let Some(table) = root.table_mut() {
                table.entries.push(entry);
            }
        }
        Self { body: root, parts, arms, tiers, base }
    }
}

fn named_overlays(what: &str, node: Node, shelf: &mut Shelf<'_>, found: &mut Diagnostics) -> Vec<Overlay> {
    let Value::Table(table) = node.value else {
        let message = format!("`{what}` is {}; tables [{what}.NAME] are due here", node.value.type_name());
        found.push(Diagnostic::new(node.origin, message));
        return Vec::new();
    };
    let mut overlays = Vec::new();
    for entry in table.entries {
        let place = format!("{what}.{}", entry.key);
        if !is_name(&entry.key) || entry.key == "any" {
            let message = format!("`{}` is not a valid name in `{what}`", entry.key);
            let one = Diagnostic::new(entry.key_origin.clone(), message);
            found.push(one.hint("lower-case letters, digits, `-` and `_`; `any` means any arm"));
        }
        let mut node = entry.node;
        let mut layers = forms::presets(what, &place, &mut node, shelf, found);
        let Some(layer) = node.table() else {
            let message =
                format!("`{place}` is {}; expected a table, or the name of a preset", node.value.type_name());
            found.push(Diagnostic::new(node.origin, message));
            continue;
        };
        forbid(layer, &place, found);
        forms::both(&mut node, found);
        let inherit = if what == "tier" { inherits(&mut node, &place, found) } else { None };
        layers.push(Layer { node, inherited: false });
        overlays.push(Overlay { name: entry.key, layers, bodies: 0, inherit });
    }
    overlays
}

/// Removes `inherit` from a tier, and returns where it was written if it is `true`.
fn inherits(tier: &mut Node, place: &str, found: &mut Diagnostics) -> Option<Origin> {
    let entry = tier.table_mut()?.remove("inherit")?;
    match entry.node.value {
        Value::Boolean(inherit) => inherit.then_some(entry.key_origin),
        other => {
            let message = format!("`{place}.inherit` is {}; expected a boolean", other.type_name());
            found.push(Diagnostic::new(entry.node.origin, message));
            None
        }
    }
}

/// Refuses blocks that an overlay cannot have: it changes the computation, not what was published
/// by whom.
fn forbid(layer: &Table, place: &str, found: &mut Diagnostics) {
    for entry in &layer.entries {
        let why = match entry.key.as_str() {
            "recipe" | "claim" | "claims" => "what was published is the same for every arm and tier",
            "arm" | "tier" => "arms and tiers stand side by side: [arm.NAME], [tier.NAME]",
            _ => continue,
        };
        let message = format!("`{}` cannot stand in `{place}`", entry.key);
        found.push(Diagnostic::new(entry.key_origin.clone(), message).hint(why));
    }
}

/// Whether the text is a valid name for use in file names and on the command line.
pub(crate) fn is_name(text: &str) -> bool {
    let first = text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    first && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
}
