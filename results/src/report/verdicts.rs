//! Verdicts and records as tables.

use super::table::{Cell, Column, Table};
use crate::ledger::Entry;
use crate::verdict::Verdict;

/// Verdicts, each with its recipe's name. Claims carried over from a sibling configuration come last and say so.
#[must_use]
pub fn verdict_table<'a>(verdicts: impl IntoIterator<Item = (&'a str, &'a Verdict)>) -> Table {
    let mut table = Table::new(vec![
        Column::words("recipe"),
        Column::words("claim"),
        Column::words("eval"),
        Column::words("arm"),
        Column::numbers("published"),
        Column::numbers("measured"),
        Column::numbers("seeds"),
        Column::words("verdict"),
        Column::words("explanation"),
    ]);
    let (mut own, mut carried): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for (recipe, verdict) in verdicts {
        let row = vec![
            Cell::words(recipe),
            Cell::words(claim(verdict)),
            Cell::words(verdict.eval.clone().unwrap_or_default()),
            Cell::words(verdict.arm.clone().unwrap_or_default()),
            Cell::number(verdict.published),
            Cell::number(verdict.measured),
            Cell::count(u64::from(verdict.seeds)),
            Cell::words(verdict.outcome.to_string()),
            Cell::words(verdict.explanation.clone()),
        ];
        if verdict.extends.is_some() { carried.push(row) } else { own.push(row) }
    }
    own.into_iter().chain(carried).for_each(|row| table.push(row));
    table
}

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

/// Records of a ledger, one a row.
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
