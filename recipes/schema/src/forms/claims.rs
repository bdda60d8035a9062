//! `[claims]`, and `columns` and `rows` of a `[[claim]]`: short forms for claims that share keys.
//!
//! A claim with `rows` stands for one claim per row. The cells of a row are the values of the keys
//! in `columns`. Other keys of the `[[claim]]` apply to all of its rows. Keys of `[claims]` apply
//! to every claim of the file that does not have them itself. `line` is appended to the source:
//! `source = "README.md"` with `line = 7` is `README.md:7`.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::did_you_mean;
use crate::origin::Origin;
use crate::schema::keys_of_claims;
use crate::tree::{Entry, Node, Table, Value};

/// Largest size in bytes of a file's expanded claims. Without it, a file from others could repeat a
/// long text in many rows.
const MOST_BYTES: usize = 16 << 20;

/// The key whose value is appended to a source.
const LINE: &str = "line";

/// Expands the claims of a file, and removes `[claims]`.
pub(crate) fn claims(root: &mut Node, found: &mut Diagnostics) {
    let Some(table) = root.table_mut() else { return };
    let shared = table.remove("claims").map(|entry| shared(entry, found)).unwrap_or_default();
    let blocks = table.get_mut("claim").map(|node| &mut node.value);
    let Some(Value::Array(blocks)) = blocks else {
        if let Some(entry) = shared.entries.first() {
            let message = "`[claims]` is what claims share, and the file has no [[claim]]";
            found.push(Diagnostic::new(entry.key_origin.clone(), message));
        }
        return;
    };
    let mut all = Vec::new();
    let mut left = MOST_BYTES;
    for block in std::mem::take(blocks) {
        let Node { value: Value::Table(table), origin } = block else {
            all.push(block);
            continue;
        };
        all.extend(of_block(table, &origin, &shared, &mut left, found));
    }
    *blocks = all;
}

/// Checks the keys of `[claims]`, and returns them.
fn shared(entry: Entry, found: &mut Diagnostics) -> Table {
    let Value::Table(table) = entry.node.value else {
        let message = format!("`claims` is {}; expected a table", entry.node.value.type_name());
        found.push(
            Diagnostic::new(entry.node.origin, message).hint("[claims] is what every [[claim]] shares"),
        );
        return Table::default();
    };
    for entry in &table.entries {
        let known = keys_of_claims();
        if !known.clone().any(|key| key == entry.key) {
            let message = format!("`claims` has no key `{}`", entry.key);
            let hint = did_you_mean(&entry.key, known, "keys");
            found.push(Diagnostic::new(entry.key_origin.clone(), message).hint(hint));
        }
    }
    table
}

/// Expands one `[[claim]]`.
fn of_block(
    mut block: Table,
    origin: &Origin,
    shared: &Table,
    left: &mut usize,
    found: &mut Diagnostics,
) -> Vec<Node> {
    let rows = match (block.remove("columns"), block.remove("rows")) {
        (None, None) => vec![Node { value: Value::Table(Table::default()), origin: origin.clone() }],
        (Some(columns), Some(rows)) => of_rows(&columns, rows, &block, found),
        (Some(entry), None) | (None, Some(entry)) => {
            let (there, missing) =
                if entry.key == "rows" { ("rows", "columns") } else { ("columns", "rows") };
            let message = format!("the claim has `{there}`, but no `{missing}`");
            let hint = "columns = [\"arm\", \"value\"] and rows = [[\"fp32\", 27.6], [\"mixed\", 27.8]]";
            found.push(Diagnostic::new(entry.key_origin, message).hint(hint));
            Vec::new()
        }
    };
    let repeated = (bytes_of(&block) + bytes_of(shared)).saturating_mul(rows.len());
    let Some(rest) = left.checked_sub(repeated) else {
        let message = format!("the claims of the file would take up more than {MOST_BYTES} bytes");
        found.push(Diagnostic::new(origin.clone(), message).hint("fewer rows, or shorter texts beside them"));
        return Vec::new();
    };
    *left = rest;
    let written_out = rows.into_iter().map(|mut row| {
        if let Some(claim) = row.table_mut() {
            for below in [&block, shared] {
                let more = below.entries.iter().filter(|entry| claim.get(&entry.key).is_none());
                let more: Vec<Entry> = more.cloned().collect();
                claim.entries.extend(more);
            }
            with_line(claim, found);
        }
        row
    });
    written_out.collect()
}

/// Approximate size of a table, in bytes.
fn bytes_of(table: &Table) -> usize {
    let of_entry = |entry: &Entry| size_of::<Entry>() + entry.key.len() + bytes_of_value(&entry.node.value);
    table.entries.iter().map(of_entry).sum()
}

fn bytes_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) | Value::Datetime(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Node>() + bytes_of_value(&item.value)).sum(),
        Value::Table(table) => bytes_of(table),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => 0,
    }
}

/// One table per row: its cells, under the keys of their columns.
fn of_rows(columns: &Entry, rows: Entry, block: &Table, found: &mut Diagnostics) -> Vec<Node> {
    let Some(keys) = keys(columns, block, found) else { return Vec::new() };
    let Value::Array(rows) = rows.node.value else {
        let message = format!("`rows` is {}; expected an array of arrays", rows.node.value.type_name());
        found.push(Diagnostic::new(rows.node.origin, message));
        return Vec::new();
    };
    let mut claims = Vec::new();
    for row in rows {
        let Value::Array(cells) = row.value else {
            let message = format!("the row is {}; expected an array", row.value.type_name());
            found.push(Diagnostic::new(row.origin, message));
            continue;
        };
        if cells.len() != keys.len() {
            let message = format!("the row has {} cells, but `columns` lists {}", cells.len(), keys.len());
            let hint = format!("a cell each for {}", keys.join(", "));
            found.push(Diagnostic::new(row.origin, message).hint(hint));
            continue;
        }
        let entry =
            |(key, node): (&String, Node)| Entry { key: key.clone(), key_origin: node.origin.clone(), node };
        let entries = keys.iter().zip(cells).map(entry).collect();
        claims.push(Node { value: Value::Table(Table { entries }), origin: row.origin });
    }
    claims
}

/// The keys in `columns`. If they are not keys of a claim, or the block also has them, this adds an
/// error and returns `None`.
fn keys(columns: &Entry, block: &Table, found: &mut Diagnostics) -> Option<Vec<String>> {
    let Value::Array(items) = &columns.node.value else {
        let message = format!("`columns` is {}; expected an array of keys", columns.node.value.type_name());
        found.push(Diagnostic::new(columns.node.origin.clone(), message));
        return None;
    };
    let mut keys: Vec<String> = Vec::new();
    for item in items {
        let wrong = |message: String| Diagnostic::new(item.origin.clone(), message);
        let Value::String(key) = &item.value else {
            let message = format!("`columns` lists {}; expected keys of a claim", item.value.type_name());
            found.push(wrong(message));
            return None;
        };
        let known = keys_of_claims().chain([LINE]);
        if !known.clone().any(|known| known == key) {
            found.push(wrong(format!("a claim has no key `{key}`")).hint(did_you_mean(key, known, "keys")));
            return None;
        }
        if keys.contains(key) || block.get(key).is_some() {
            found.push(wrong(format!("`{key}` is a column, and stated beside it")));
            return None;
        }
        keys.push(key.clone());
    }
    Some(keys)
}

/// Appends `line` to a claim's source.
fn with_line(claim: &mut Table, found: &mut Diagnostics) {
    let Some(line) = claim.remove(LINE) else { return };
    let text = match &line.node.value {
        Value::Integer(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => {
            let message = format!("`line` is {}; expected an integer, or lines as text", other.type_name());
            found.push(Diagnostic::new(line.node.origin, message).hint("line = 7, or line = \"7-9\""));
            return;
        }
    };
    match claim.get_mut("source").map(|source| &mut source.value) {
        Some(Value::String(source)) => *source = format!("{source}:{text}"),
        // The check of the claim refuses a source of another type.
        Some(_) => {}
        None => {
            let message = "`line` is a line of the source, and the claim has none";
            found.push(Diagnostic::new(line.key_origin, message).hint("source = \"the document\""));
        }
    }
}
