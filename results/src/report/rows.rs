//! The verdicts and scores of a ledger as tables with a row for each, for other programs.

use serde_json::Value;

use super::account::uncounted;
use super::earlier::arm_of;
use super::table::{Cell, Column, Table};
use crate::ledger::{Entry, Record};

/// Columns of the record that a row belongs to.
const RECORD: [&str; 11] = [
    "#record",
    "time",
    "recipe",
    "recipe_hash",
    "tier",
    "commit",
    "dirty",
    "device",
    "hardware",
    "overrides",
    "uncounted",
];

/// A table with a row for each verdict, as it was recorded. Shortfalls are positive if the measured
/// value is worse than the target.
#[must_use]
pub fn verdict_rows<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Table {
    let own = [
        "statement",
        "kind",
        "metric",
        "signature",
        "eval",
        "decode",
        "arm",
        "baseline",
        "#published",
        "#target",
        "#margin",
        "#measured",
        "#seeds",
        "verdict",
        "#shortfall",
        "#shortfall_low",
        "#shortfall_high",
        "#alpha",
        "#sigma",
        "external",
        "explanation",
        "source",
    ];
    let mut table = Table::new(columns(&RECORD, &own));
    for entry in entries {
        for judgement in &entry.record.judgements {
            let (claim, verdict) = (&judgement.claim, &judgement.verdict);
            let mut row = of_record(entry);
            row.extend([
                Cell::words(claim.statement().name()),
                Cell::words(claim.kind.name()),
                Cell::words(claim.metric.as_str()),
                text(claim.signature.clone()),
                text(claim.eval.clone()),
                text(claim.decode.clone()),
                text(arm_of(judgement)),
                text(claim.baseline.clone()),
                Cell::number(verdict.published),
                Cell::number(verdict.target),
                Cell::number(verdict.margin),
                Cell::number(verdict.measured),
                Cell::count(verdict.seeds.into()),
                Cell::outcome(verdict.outcome),
                Cell::number(verdict.shortfall),
                Cell::number(verdict.shortfall_low),
                Cell::number(verdict.shortfall_high),
                Cell::number(verdict.alpha),
                Cell::number(verdict.sigma),
                Cell::flag(verdict.external, ["yes", "no"]),
                Cell::words(verdict.explanation.as_str()),
                Cell::words(verdict.source.as_str()),
            ]);
            table.push(row);
        }
    }
    table
}

/// A table with a row for each score at the end of training. `file` and `sha256` are its stored
/// output; `low` and `high` are the interval from resampling the test set.
#[must_use]
pub fn score_rows<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Table {
    let own = [
        "arm",
        "#seed",
        "eval",
        "decode",
        "metric",
        "signature",
        "#value",
        "#low",
        "#high",
        "#level",
        "file",
        "sha256",
    ];
    let mut table = Table::new(columns(&RECORD, &own));
    for entry in entries {
        for score in &entry.record.scores {
            let interval = score.interval.as_ref();
            let mut row = of_record(entry);
            row.extend([
                text(score.arm.as_str()),
                Cell::count(score.seed),
                text(score.eval.as_str()),
                text(score.decode.as_str()),
                Cell::words(score.metric.as_str()),
                Cell::words(score.signature.as_str()),
                Cell::number(Some(score.value)),
                Cell::number(interval.map(|interval| interval.low)),
                Cell::number(interval.map(|interval| interval.high)),
                Cell::number(interval.map(|interval| interval.level)),
                text(score.hypotheses.as_ref().map(|file| file.path.clone())),
                text(score.hypotheses.as_ref().map(|file| file.sha256.clone())),
            ]);
            table.push(row);
        }
    }
    table
}

fn columns(first: &[&str], rest: &[&str]) -> Vec<Column> {
    let column = |title: &&str| match title.strip_prefix('#') {
        Some(title) => Column::numbers(title),
        None => Column::words(title),
    };
    first.iter().chain(rest).map(column).collect()
}

fn of_record(Entry { sequence, record, .. }: &Entry) -> Vec<Cell> {
    let Record { time, recipe, recipe_hash, tier, commit, dirty, device, hardware, .. } = record;
    vec![
        Cell::count(*sequence),
        Cell::words(time.as_str()),
        Cell::words(recipe.as_str()),
        Cell::words(recipe_hash.as_str()),
        text(tier.clone()),
        text(commit.clone()),
        Cell::flag(*dirty, ["yes", "no"]),
        text(device.clone()),
        text(hardware.clone()),
        Cell::list(record.changes(), "; "),
        text(uncounted(record)),
    ]
}

/// A text, or nothing.
fn text(value: impl Into<Value>) -> Cell {
    match value.into() {
        Value::String(text) => Cell::words(text),
        _ => Cell::words(""),
    }
}
