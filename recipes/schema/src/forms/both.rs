//! `[model.both]`: keys that the encoder and the decoder share.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::overlay::merge;
use crate::tree::{Entry, Node, Table};

/// Lays a layer's `model.both` below its `model.encoder` and `model.decoder`, and removes
/// `model.both`.
pub(crate) fn both(layer: &mut Node, found: &mut Diagnostics) {
    let model = layer.table_mut().and_then(|table| table.get_mut("model")).and_then(Node::table_mut);
    let Some(model) = model else { return };
    let Some(entry) = model.remove("both") else { return };
    let Some(shared) = entry.node.table() else {
        let message = format!("`model.both` is {}; expected a table", entry.node.value.type_name());
        found.push(
            Diagnostic::new(entry.node.origin, message)
                .hint("model.both: keys that `model.encoder` and `model.decoder` share"),
        );
        return;
    };
    for side in ["encoder", "decoder"] {
        let Some(own) = model.get_mut(side) else {
            model.entries.push(Entry { key: side.to_owned(), ..entry.clone() });
            continue;
        };
        // The check of the model refuses a side that is not a table.
        if let Some(table) = own.table() {
            other_kind(shared, table, side, found);
            let mut laid = entry.node.clone();
            merge(&mut laid, own);
            *own = laid;
        }
    }
}

/// Refuses a side of another kind, because it would lose all shared keys.
fn other_kind(shared: &Table, own: &Table, side: &str, found: &mut Diagnostics) {
    let (Some(both), Some(kind), Some(at)) = (shared.string("kind"), own.string("kind"), own.get("kind"))
    else {
        return;
    };
    if both != kind {
        let message = format!("`model.{side}` is of kind `{kind}`, but `model.both` is of kind `{both}`");
        found.push(
            Diagnostic::new(at.origin.clone(), message)
                .hint("parts of two kinds share no keys: write each in its own table"),
        );
    }
}
