//! Section on the data used for training and evaluation.

use std::collections::BTreeSet;

use super::markup::Markup;
use super::model::Page;
use super::tables::{missing, table, titles};
use super::training_log::TrainingLog;
use crate::report::words::grouped;
use crate::verdict::number;

/// Counts of the splits, and the examples that were left out.
pub(super) fn data(markup: &mut Markup, page: &Page) {
    let logs = || page.runs.iter().filter_map(|run| Some((run, run.log.as_ref()?)));
    match logs().map(|(_, log)| log).find(|log| !log.splits.is_empty()) {
        Some(log) => splits(markup, log),
        None => missing(
            markup,
            "The log does not say how many examples there were: it is of an earlier program, or training had not begun.",
        ),
    }
    let mut rows = Vec::new();
    for (run, log) in logs() {
        for (why, (count, example)) in &log.left_out {
            rows.push(vec![run.name(), why.clone(), grouped(*count), example.clone()]);
        }
    }
    match rows.is_empty() {
        true => markup.leaf("p", &[], "No example was left out while batches were made."),
        false => table(
            markup,
            "Skipped while batches were made",
            &titles(["run", "reason", "examples", "one of them"]),
            &rows,
        ),
    }
    let padding: Vec<String> = logs()
        .filter_map(|(run, log)| Some(format!("{}: {:.1} %", run.name(), 100.0 * log.padding?)))
        .collect();
    if !padding.is_empty() {
        markup.leaf("p", &[], &format!("Padding in the first epoch's batches: {}.", padding.join("; ")));
    }
}

fn splits(markup: &mut Markup, log: &TrainingLog) {
    let reasons: BTreeSet<&String> = log.splits.values().flat_map(|split| split.left_out.keys()).collect();
    let amounts: BTreeSet<&String> = log.splits.values().flat_map(|split| split.amounts.keys()).collect();
    let mut heads = titles(["split", "read", "used"]);
    heads.extend(reasons.iter().map(|reason| format!("left out: {reason}")));
    heads.extend(amounts.iter().map(|amount| (*amount).clone()));
    let rows: Vec<Vec<String>> = (log.splits.iter())
        .map(|(name, split)| {
            let mut row = vec![name.clone(), grouped(split.read), grouped(split.kept)];
            row.extend(
                reasons.iter().map(|reason| grouped(split.left_out.get(*reason).copied().unwrap_or(0))),
            );
            row.extend(amounts.iter().map(|amount| {
                split.amounts.get(*amount).map_or_else(|| "-".to_owned(), |value| amount_text(*value))
            }));
            row
        })
        .collect();
    table(markup, "Examples by split", &heads, &rows);
}

/// A count, or a number with its decimals.
fn amount_text(value: f64) -> String {
    if value >= 0.0 && value.fract() == 0.0 && value < 1e15 { grouped(value as u64) } else { number(value) }
}
