//! `zoo check`: validates recipes.

use serde_json::json;
use zoo_recipes::untrusted::one_line;
use zoo_recipes::{Diagnostics, Document, LoadError, Selection};
use zoo_results::exit::Exit;

use crate::claim_metrics::check_metrics;
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::error::{Failure, Finding, Result};
use crate::output::{self, Cell, Format};
use crate::signatures::{check_signatures, invented_spreads};
use crate::wording::ClaimCounts;

/// Checks every recipe, then fails if there were findings.
pub fn run(context: &Context, args: &CheckArgs) -> Result<Exit> {
    let all: Vec<String> = match args.recipes.as_slice() {
        [] => zoo_recipes::names().into_iter().map(str::to_owned).collect(),
        some => some.to_vec(),
    };
    let [published, extended, own, not_judgeable] = ClaimCounts::TITLES;
    let mut table = output::columns([
        "recipe",
        "file",
        "arms",
        "tiers",
        published,
        extended,
        own,
        not_judgeable,
        "result|sound",
    ]);
    // Findings of each recipe, for JSON output.
    let mut listed: Vec<Vec<Finding>> = Vec::new();
    let mut findings = Diagnostics::default();
    let mut unread = None;
    for name in &all {
        let failed = |result: String| {
            let unknown = || Cell::words("");
            let mut row = vec![Cell::words(name), Cell::words(name)];
            row.extend(std::iter::repeat_with(unknown).take(6));
            row.push(Cell::of(result, false));
            row
        };
        match check(name) {
            Ok((document, counts, notes)) => {
                for note in notes {
                    context.progress.note(&format!("{}: {note}", one_line(document.name())));
                }
                let mut row = vec![
                    Cell::words(one_line(document.name())),
                    Cell::words(one_line(document.file())),
                    Cell::list(document.arms().into_iter().map(one_line), " "),
                    Cell::list(document.tiers().into_iter().map(one_line), " "),
                ];
                row.extend(counts.numbers().map(Cell::count));
                row.push(Cell::of("sound", true));
                table.push(row);
                listed.push(Vec::new());
            }
            Err(LoadError::Invalid(found)) => {
                let plural = if found.len() == 1 { "" } else { "s" };
                table.push(failed(format!("{} finding{plural}", found.len())));
                listed.push(found.iter().map(Finding::of).collect());
                findings.extend(found);
            }
            Err(other) => {
                table.push(failed("cannot be read".to_owned()));
                let failure = Failure::from(other);
                let (message, hint) = failure.parts();
                listed.push(vec![Finding {
                    file: Some(name.clone()),
                    message: message.to_owned(),
                    hint: hint.map(str::to_owned),
                    ..Finding::default()
                }]);
                unread.get_or_insert(failure);
            }
        }
    }
    match context.format {
        Format::Json => {
            let mut rows = table.objects();
            for (row, found) in rows.as_array_mut().into_iter().flatten().zip(listed) {
                row["findings"] = json!(found);
            }
            output::write_document("check", &json!({ "recipes": rows }))?;
        }
        _ => output::write(&table.render(context.format))?,
    }
    match (findings.is_empty(), unread) {
        (false, _) => Err(Failure::from(findings)),
        (true, Some(failure)) => Err(failure),
        (true, None) => Ok(Exit::Ok),
    }
}

/// Checks a recipe. Returns it with the counts of its claims and with notes for the user.
fn check(name: &str) -> std::result::Result<(Document, ClaimCounts, Vec<String>), LoadError> {
    let document = Document::load(name)?;
    document.check()?;
    let recipe = document.resolve(&Selection::default())?.recipe;
    check_metrics(&document, &recipe)?;
    check_signatures(&document, &recipe.claim)?;
    Ok((document, ClaimCounts::of(&recipe), invented_spreads(&recipe.claim)))
}
