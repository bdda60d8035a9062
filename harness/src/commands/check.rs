//! `zoo check`.

use serde_json::{Value, json};
use zoo_recipes::untrusted::one_line;
use zoo_recipes::{Diagnostic, Diagnostics, Document, LoadError, Origin, Selection};
use zoo_results::exit::Exit;

use crate::claim_metrics::check_metrics;
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell, Format};
use crate::signatures::{check_signatures, invented_spreads};

/// Checks every recipe before the first finding ends the command.
pub fn run(context: &Context, args: &CheckArgs) -> Result<Exit> {
    let all: Vec<String> = match args.recipes.as_slice() {
        [] => zoo_recipes::names().into_iter().map(str::to_owned).collect(),
        some => some.to_vec(),
    };
    let mut table = output::columns(["recipe", "file", "arms", "tiers", "#claims", "result"]);
    // Findings of each recipe, as JSON.
    let mut listed = Vec::new();
    let mut findings = Diagnostics::default();
    let mut unread = None;
    for name in &all {
        let failed = |result: String| {
            let unknown = || Cell::words("");
            vec![Cell::words(name), Cell::words(name), unknown(), unknown(), unknown(), Cell::words(result)]
        };
        match check(name) {
            Ok((document, notes)) => {
                for note in notes {
                    context.progress.note(&format!("{}: {note}", one_line(document.name())));
                }
                table.push(vec![
                    Cell::words(one_line(document.name())),
                    Cell::words(one_line(document.file())),
                    Cell::words(one_line(&document.arms().join(" "))),
                    Cell::words(one_line(&document.tiers().join(" "))),
                    Cell::count(document.claim_count() as u64),
                    Cell::words("sound"),
                ]);
                listed.push(json!([]));
            }
            Err(LoadError::Invalid(found)) => {
                let plural = if found.len() == 1 { "" } else { "s" };
                table.push(failed(format!("{} finding{plural}", found.len())));
                listed.push(found.iter().map(finding).collect());
                findings.extend(found);
            }
            Err(other) => {
                table.push(failed("cannot be read".to_owned()));
                let failure = Failure::from(other);
                let (message, hint) = failure.parts();
                listed.push(json!([{ "file": name, "message": message, "hint": hint }]));
                unread.get_or_insert(failure);
            }
        }
    }
    match context.format {
        Format::Json => {
            let mut rows = output::rows_as_json(&table);
            for (row, found) in rows.as_array_mut().into_iter().flatten().zip(listed) {
                row["findings"] = found;
            }
            output::write_json(&rows)?;
        }
        _ => output::write(&table.render(context.format))?,
    }
    match (findings.is_empty(), unread) {
        (false, _) => Err(Failure::from(findings)),
        (true, Some(failure)) => Err(failure),
        (true, None) => Ok(Exit::Ok),
    }
}

/// A finding with its place, message and hint.
fn finding(found: &Diagnostic) -> Value {
    let Diagnostic { origin, message, hint } = found;
    match origin {
        Origin::File { file, line, column } => {
            json!({ "file": **file, "line": line, "column": column, "message": message, "hint": hint })
        }
        Origin::Tier { name } => json!({ "tier": name, "message": message, "hint": hint }),
        Origin::Override { text } => json!({ "override": **text, "message": message, "hint": hint }),
    }
}

/// A sound recipe, and what is to be known of its claims.
fn check(name: &str) -> std::result::Result<(Document, Vec<String>), LoadError> {
    let document = Document::load(name)?;
    document.check()?;
    let recipe = document.resolve(&Selection::default())?.recipe;
    check_metrics(&document, &recipe)?;
    check_signatures(&document, &recipe.claim)?;
    Ok((document, invented_spreads(&recipe.claim)))
}
