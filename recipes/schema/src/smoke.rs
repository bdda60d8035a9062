//! The tier `smoke` of a recipe that does not define one: the recipe's own model, little data, few
//! updates.
//!
//! A base's tier fits the base's model and data, so with it a derived recipe would run something
//! other than its own settings. Here the recipe's model, loss, optimizer and schedule are
//! unchanged. A small share of its data is read. If the recipe does not change the base's data, the
//! base's generated data are used instead, so that a smoke run downloads nothing.

use crate::diagnostic::Diagnostics;
use crate::layer::Overlay;
use crate::origin::Origin;
use crate::tree::{Entry, Node, Table, Value};

/// Name of the tier.
pub(crate) const SMOKE: &str = "smoke";

/// Largest number of training examples.
const TRAIN: i64 = 32;
/// Largest number of examples of each evaluation set.
const EVAL: i64 = 8;
/// Largest number of updates.
const UPDATES: i64 = 10;
/// Largest number of sentences, utterances, pictures, texts, or rows of running text in a batch.
const BATCH: i64 = 8;

/// Reduces the data of a recipe. `of_base` is the nearest base that defines a tier `smoke`, and
/// that tier.
pub(crate) fn shrink_data(root: &mut Node, of_base: Option<(Node, &Overlay)>) {
    match of_base.filter(|(base, _)| reads_the_same(root, base)) {
        Some((base, tier)) => generate(root, &base, tier),
        None => share(root),
    }
}

/// Reduces updates and batches. Evaluation uses the last weights if the recipe averages over
/// epochs, because such a run has too few of them.
pub(crate) fn limit(root: &mut Node) {
    for (block, key, most) in [
        ("train", "max_updates", UPDATES),
        ("train", "batches_per_update", 1),
        ("train", "log_every", 5),
        ("train.checkpoint", "every_updates", UPDATES),
    ] {
        if let Some(table) = table_at(root, block, true) {
            at_most(table, key, most, true);
        }
    }
    if let Some(batching) = table_at(root, "data.batching", false) {
        for (key, most) in [
            ("sentences", BATCH),
            ("utterances", BATCH),
            ("pictures", BATCH),
            ("rows", BATCH),
            ("texts", BATCH),
            ("batches_together", 1),
        ] {
            at_most(batching, key, most, false);
        }
    }
    let mean = table_at(root, "train.checkpoint.evaluate", false)
        .is_some_and(|evaluate| evaluate.string("kind").is_some_and(|kind| kind.starts_with("mean-")));
    if let Some(checkpoint) = table_at(root, "train.checkpoint", false).filter(|_| mean) {
        checkpoint.remove("evaluate");
    }
}

/// Whether examples and evaluation sets come from the same source as the base's.
fn reads_the_same(root: &Node, base: &Node) -> bool {
    let of = |node: &Node, key: &str| at(node, &format!("data.{key}")).map(Node::to_json);
    ["corpus", "reader", "train_split", "eval"].iter().all(|key| of(root, key) == of(base, key))
}

/// Applies the base tier's settings of data, and of the searches that are the same as the base's.
fn generate(root: &mut Node, base: &Node, tier: &Overlay) {
    let same_search = |name: &str| {
        let search = |node: &Node| at(node, &format!("decode.{name}")).map(Node::to_json);
        search(root) == search(base)
    };
    let kept = |path: &str| match path.split_once('.') {
        Some(("decode", rest)) => same_search(rest.split('.').next().unwrap_or_default()),
        _ => path == "data" || path.starts_with("data."),
    };
    let mut tier = tier.clone();
    for table in tier.layers.iter_mut().filter_map(|layer| layer.node.table_mut()) {
        table.entries.retain(|entry| matches!(entry.key.as_str(), "data" | "decode" | "without"));
        if let Some(searches) = table.get_mut("decode").and_then(Node::table_mut) {
            searches.entries.retain(|search| same_search(&search.key));
        }
        if let Some(Value::Array(paths)) = table.get_mut("without").map(|without| &mut without.value) {
            paths.retain(|path| matches!(&path.value, Value::String(path) if kept(path)));
        }
    }
    tier.apply(root, &mut Diagnostics::default());
}

/// Reads only the first examples of each split, or generates fewer examples if the program
/// generates the data.
fn share(root: &mut Node) {
    let reader = table_at(root, "data.reader", false);
    // A reader with a seed generates its examples.
    let generated = reader.as_ref().is_some_and(|reader| reader.get("seed").is_some());
    if let Some(reader) = reader {
        for (key, most) in [("train", TRAIN), ("valid", EVAL), ("test", EVAL)] {
            at_most(reader, key, most, false);
        }
    }
    let training = at(root, "data.train_split").map(Node::to_json).unwrap_or_else(|| "train".into());
    let most_of = |split: Option<&str>| if split == training.as_str() { TRAIN } else { EVAL };
    if let Some(joined) = table_at(root, "data.reader.join.utterances", false) {
        let splits: Vec<String> = joined.entries.iter().map(|entry| entry.key.clone()).collect();
        splits.iter().for_each(|split| at_most(joined, split, most_of(Some(split)), false));
    }
    let data = table_at(root, "data", false).filter(|_| !generated);
    if let Some(share) = data.and_then(|data| table_in(data, "share", true)) {
        at_most(share, "train", TRAIN, true);
        at_most(share, "eval", EVAL, true);
    }
    let sets = table_at(root, "data.eval", false).map(|sets| &mut sets.entries);
    for set in sets.into_iter().flatten().filter_map(|set| set.node.table_mut()) {
        let most = most_of(set.string("split"));
        at_most(set, "lines", most, false);
        set.remove("reference_tokens");
    }
}

/// The node at a dotted path.
fn at<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    path.split('.').try_fold(root, |node, key| node.table()?.get(key))
}

/// The table at a dotted path. With `make`, missing tables are inserted.
fn table_at<'n>(root: &'n mut Node, path: &str, make: bool) -> Option<&'n mut Table> {
    path.split('.').try_fold(root.table_mut()?, |table, key| table_in(table, key, make))
}

fn table_in<'t>(table: &'t mut Table, key: &str, make: bool) -> Option<&'t mut Table> {
    if make && table.get(key).is_none() {
        insert(table, key, Value::Table(Table::default()));
    }
    table.get_mut(key)?.table_mut()
}

/// Lowers a number to `most`. With `make`, a missing number is inserted.
fn at_most(table: &mut Table, key: &str, most: i64, make: bool) {
    match table.get_mut(key) {
        Some(Node { value: Value::Integer(number), .. }) => *number = most.min(*number),
        None if make => insert(table, key, Value::Integer(most)),
        _ => {}
    }
}

fn insert(table: &mut Table, key: &str, value: Value) {
    let origin = Origin::Tier { name: SMOKE };
    let node = Node { value, origin: origin.clone() };
    table.entries.push(Entry { key: key.to_owned(), key_origin: origin, node });
}
