//! `zoo explain`: splits the gap between a claimed and a measured score.

use serde_json::json;
use zoo_recipes::Direction;
use zoo_results::exit::Exit;
use zoo_results::explain::{Cause, Explanation, Point, Question, explain};

use crate::cli::ExplainArgs;
use crate::context::Context;
use crate::error::Result;
use crate::explaining::{Case, case};
use crate::output::{self, Cell, Column, Format, Table};

pub fn run(context: &Context, args: &ExplainArgs) -> Result<Exit> {
    let mut case = case(context, args)?;
    let tokenizer = case.tokenizer.take();
    let tokenise =
        |lines: &[String]| tokenizer.as_ref().map_or_else(|| lines.to_vec(), |moses| moses.lines(lines));
    let question = Question {
        claimed: case.claimed,
        scorer: &case.scorer,
        settings: &case.settings,
        references: &case.references,
        sigma: case.sigma,
    };
    let found = explain(&question, tokenizer.is_some().then_some(&tokenise))?;
    match context.format {
        Format::Human => output::write(&text(&case, &found))?,
        Format::Json => output::write_document("explain", &as_json(&case, &found))?,
        format => output::write(&sum(&found).render(format))?,
    }
    Ok(Exit::Ok)
}

/// A cell with two decimals in human output and full precision in other formats.
fn number(value: f64, sign: bool) -> Cell {
    let text = match (sign, value.abs() < 0.005) {
        (_, true) => "0.00".to_owned(),
        (true, _) => format!("{value:+.2}"),
        (false, _) => format!("{value:.2}"),
    };
    Cell { text, value: value.into() }
}

/// Table of the contributions from the claimed to the measured score. Its last column adds up.
fn sum(found: &Explanation) -> Table {
    let metric = format!("#{}", found.metric);
    let mut table = output::columns(["part", "published", "ours", &metric]);
    let mut row = |name: &str, published: &str, ours: &str, value: Cell| {
        table.push(vec![Cell::words(name), Cell::words(published), Cell::words(ours), value]);
    };
    row("claimed", "", "", number(found.claimed, false));
    for part in &found.parts {
        row(&part.name(), &part.published, &part.ours, number(part.contribution, true));
    }
    row("not explained", "", "", number(found.unexplained, true));
    row("measured", "", &found.measured_as, number(found.measured, false));
    table
}

/// Table of all scored points.
fn points(found: &Explanation) -> Table {
    let causes = &found.grid.applicable;
    let heads = causes.iter().map(|cause| {
        Column::words(match cause {
            Cause::Tokenisation => "tokens",
            Cause::CompoundSplitting => "compounds",
            other => other.name(),
        })
    });
    let numbers = [found.metric.name, "to claimed"].map(Column::numbers);
    let mut table = Table::new(heads.chain(numbers).collect());
    for (point, score) in &found.grid.scores {
        let level = |cause: &Cause| Cell::words(found.grid.level(*cause, point));
        let mut row: Vec<Cell> = causes.iter().map(level).collect();
        row.extend([number(*score, false), number(found.claimed - score, true)]);
        table.push(row);
    }
    table
}

/// Notes to print after the tables.
fn notes(case: &Case, found: &Explanation) -> Vec<String> {
    let mut notes = Vec::new();
    let gain = found.measured - found.claimed;
    let is_better = match found.metric.direction {
        Direction::Higher => gain > 0.0,
        Direction::Lower => gain < 0.0,
    };
    if is_better {
        notes.push("the measured score is better than the claimed one: there is no gap".to_owned());
    }
    if let Some(noise) = found.within_noise {
        notes.push(format!(
            "the gap is within the 95 % difference between two seeds ({noise:.2}): it needs no other cause"
        ));
    }
    for rival in &found.rivals {
        notes.push(format!("fits as well: {} ({:.2})", rival.name, rival.score));
    }
    if !found.parts.is_empty() {
        notes
            .push("these parts would explain the number; only the source can confirm its scoring".to_owned());
    }
    notes.extend(case.notes.iter().cloned());
    notes
}

fn text(case: &Case, found: &Explanation) -> String {
    let source = case.source.as_ref().map_or_else(String::new, |source| format!(" ({source})"));
    let mut text = format!(
        "{}: {} {:.2} measured, {:.2} claimed{source}\n\n{}\n",
        case.subject,
        found.metric,
        found.measured,
        found.claimed,
        sum(found).render(Format::Human)
    );
    for note in notes(case, found) {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str(&format!("\nunder every convention\n{}", points(found).render(Format::Human)));
    text
}

fn as_json(case: &Case, found: &Explanation) -> serde_json::Value {
    let named = |point: &Point, score: f64| -> serde_json::Value {
        let level = |cause: &Cause| (cause.name().replace(' ', "_"), found.grid.level(*cause, point).into());
        let mut members: serde_json::Map<_, _> = found.grid.applicable.iter().map(level).collect();
        members.insert("score".to_owned(), score.into());
        members.into()
    };
    let points: Vec<serde_json::Value> =
        found.grid.scores.iter().map(|(point, score)| named(point, *score)).collect();
    json!({
        "subject": case.subject,
        "metric": found.metric,
        "claimed": found.claimed,
        "source": case.source,
        "measured": found.measured,
        "measured_as": found.measured_as,
        "parts": found.parts,
        "unexplained": found.unexplained,
        "rivals": found.rivals,
        "within_noise": found.within_noise,
        "notes": notes(case, found),
        "points": points,
    })
}
