//! `zoo diff`: prints how two runs differ.

use zoo_results::exit::Exit;

use crate::cli::DiffArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell, Format};
use crate::runs::folder_of;
use crate::stages::{Different, Losses, RunDifferences, ScoreDifference, diff};

pub fn run(context: &Context, args: &DiffArgs) -> Result<Exit> {
    if matches!(context.format, Format::Csv | Format::Md) {
        return Err(Failure::usage("`zoo diff` prints text or JSON, and not one table")
            .hint("--format human or --format json"));
    }
    let (one, other) = (folder_of(context, &args.one)?, folder_of(context, &args.other)?);
    let found = diff(context, [&one, &other])?;
    match context.format {
        Format::Json => output::write_document("diff", &found)?,
        _ => output::write(&text(&found))?,
    }
    Ok(Exit::Ok)
}

fn text(found: &RunDifferences) -> String {
    let [one, other] = &found.names;
    let mut out = format!("A  {one}\nB  {other}\n");
    section(&mut out, "recipe", Some(&found.recipe), "the same");
    section(&mut out, "data", found.data.as_deref(), "the same, by the digests of the ledger");
    section(&mut out, "program and machine", Some(&found.environment), "the same");
    out.push_str(&format!("\nLOSSES\n{}\n", losses(found)));
    out.push_str("\nSCORES\n");
    out.push_str(&match found.scores.is_empty() {
        true => "no evaluation set was decoded by both with one search\n".to_owned(),
        false => scores(&found.scores),
    });
    for why in &found.missing {
        out.push_str(&format!("note: {why}\n"));
    }
    out
}

fn section(out: &mut String, title: &str, found: Option<&[Different]>, same: &str) {
    out.push_str(&format!("\n{}\n", title.to_uppercase()));
    match found {
        None => {
            out.push_str("not compared: the ledger of the home does not have a judged record of both runs\n")
        }
        Some([]) => out.push_str(&format!("{same}\n")),
        Some(found) => {
            let mut table = output::columns(["what", "A", "B"]);
            for different in found {
                let [one, other] = different.texts.each_ref().map(|value| Cell::words(shown(value)));
                table.push(vec![Cell::words(different.what.clone()), one, other]);
            }
            out.push_str(&table.render(Format::Human));
        }
    }
}

fn shown(value: &Option<String>) -> String {
    value.as_deref().unwrap_or("-").to_owned()
}

fn losses(found: &RunDifferences) -> String {
    let losses = &found.losses;
    let [one, other] = losses.updates;
    let line = |line: &Losses| {
        let [one, other] = line.losses;
        format!("A {one}, B {other}, {:+.3e}", other - one)
    };
    let Some(last) = &losses.last else {
        return format!("the logs have no line of the same update: A has {one} updates, B {other}");
    };
    let Some(first) = &losses.first else {
        return format!(
            "the same, bit for bit, in all {} common lines up to update {}",
            losses.common, last.update
        );
    };
    let mut text = format!(
        "first difference  updates {} to {}: {}\nlast common line  update {}: {}",
        first.after + 1,
        first.update,
        line(first),
        last.update,
        line(last)
    );
    if let Some(largest) = losses.largest.as_ref().filter(|largest| largest.update != last.update) {
        text.push_str(&format!("\nlargest           update {}: {}", largest.update, line(largest)));
    }
    text
}

fn scores(found: &[ScoreDifference]) -> String {
    let mut table =
        output::columns(["eval", "decode", "metric", "#A", "#B", "#B better by", "95 % of the test set"]);
    for score in found {
        let [one, other] = score.values.map(|value| Cell::number(Some(value)));
        let interval =
            score.gain.map_or_else(|| "-".to_owned(), |gain| format!("{:.3} to {:.3}", gain.low, gain.high));
        table.push(vec![
            Cell::words(score.eval.clone()),
            Cell::words(score.decode.clone()),
            Cell::words(score.metric.clone()),
            one,
            other,
            Cell::number(score.gain.map(|gain| gain.observed)),
            Cell::words(interval),
        ]);
    }
    table.render(Format::Human)
}
