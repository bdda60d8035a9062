//! Claims as text for a cell, and records as a table.

use super::table::{Cell, Column, Table};
use crate::ledger::Entry;
use crate::verdict::Verdict;

/// "value bleu", "bound bleu (of SIBLING)", "value wer (external)".
pub(super) fn claim(verdict: &Verdict) -> String {
    // The kind's name as recipes write it.
    let kind = serde_json::to_value(verdict.kind).ok().and_then(|v| v.as_str().map(str::to_owned));
    let mut text = format!("{} {}", kind.unwrap_or_default(), verdict.metric);
    if let Some(sibling) = &verdict.extends {
        text.push_str(&format!(" (of {sibling})"));
    }
    if verdict.external {
        text.push_str(" (external)");
    }
    text
}

/// Records of a ledger, one per row.
#[must_use]
pub fn ledger_table<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Table {
    let mut table = Table::new(vec![
        Column::numbers("record"),
        Column::words("time"),
        Column::words("recipe"),
        Column::words("arm"),
        Column::words("tier"),
        Column::words("seeds"),
        Column::words("end"),
        Column::words("scores"),
        Column::words("verdicts"),
        Column::words("hash"),
    ]);
    for entry in entries {
        let record = &entry.record;
        let list = |items: Vec<String>| items.join(", ");
        let score =
            |s: &crate::ledger::ScoreRecord| format!("{} {}", s.metric, crate::verdict::number(s.value));
        table.push(vec![
            Cell::count(entry.sequence),
            Cell::words(record.time.clone()),
            Cell::words(record.recipe.clone()),
            Cell::words(record.arm.clone().unwrap_or_default()),
            Cell::words(record.tier.clone().unwrap_or_default()),
            Cell::words(list(record.seeds.iter().map(u64::to_string).collect())),
            Cell::words(record.end.to_string()),
            Cell::words(list(record.scores.iter().map(score).collect())),
            Cell::words(list(record.judgements.iter().map(|j| j.verdict.outcome.to_string()).collect())),
            Cell::words(entry.hash[..12.min(entry.hash.len())].to_owned()),
        ]);
    }
    table
}
