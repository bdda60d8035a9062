//! Claims as text for a cell, and records as a table.

use serde_json::{Value, json};

use super::table::{Cell, Column, Table};
use crate::ledger::{Entry, ScoreRecord};
use crate::verdict::Verdict;

/// "value bleu", "bound bleu (of SIBLING)", "value wer (external)".
pub(super) fn claim(verdict: &Verdict) -> String {
    let mut text = format!("{} {}", verdict.kind.name(), verdict.metric);
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
        let list = |texts: Vec<String>, values: Vec<Value>| Cell::of(texts.join(", "), values);
        let score = |s: &ScoreRecord| format!("{} {}", s.metric, crate::verdict::number(s.value));
        let outcomes = || record.judgements.iter().map(|judgement| judgement.verdict.outcome);
        table.push(vec![
            Cell::count(entry.sequence),
            Cell::words(record.time.clone()),
            Cell::words(record.recipe.clone()),
            Cell::words(record.arm.clone().unwrap_or_default()),
            Cell::words(record.tier.clone().unwrap_or_default()),
            Cell::list(record.seeds.iter().copied(), ", "),
            Cell::of(record.end.to_string(), json!(record.end)),
            list(record.scores.iter().map(score).collect(), record.scores.iter().map(score_value).collect()),
            list(
                outcomes().map(|outcome| outcome.to_string()).collect(),
                outcomes().map(|outcome| outcome.word().into()).collect(),
            ),
            Cell::of(&entry.hash[..12.min(entry.hash.len())], entry.hash.clone()),
        ]);
    }
    table
}

/// A score of a record for programs.
#[must_use]
pub fn score_value(score: &ScoreRecord) -> Value {
    json!({
        "arm": score.arm, "seed": score.seed, "eval": score.eval, "decode": score.decode,
        "metric": score.metric, "value": score.value, "signature": score.signature,
    })
}
