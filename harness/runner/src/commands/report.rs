//! `zoo report`: writes an HTML report on runs, or tables of a ledger.

use std::path::{Path, PathBuf};

use serde_json::json;
use zoo_recipes::{Document, untrusted};
use zoo_results::exit::Exit;
use zoo_results::ledger::Entry;
use zoo_results::report::{RecipeStanding, check, ledger_table, page, render, replace};

use crate::cli::ReportArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::{Versions, ladder_of, reached};
use crate::files;
use crate::output::{self, Cell, Format};
use crate::records;
use crate::reporting::{self, Wanted};
use crate::standing::standing;

/// All built-in recipes with the evidence from this ledger only, so that the result is the same on
/// every machine.
fn standings(entries: &[Entry]) -> Result<Vec<RecipeStanding>> {
    let runs = records::runs_of(entries.iter().map(|entry| &entry.record));
    let mut all = Vec::new();
    for name in zoo_recipes::names() {
        let document = Document::load(name)?;
        let mut versions = Versions::new(&document);
        let rung = reached(&ladder_of(&document, &mut versions, &runs));
        all.push(standing(&document, &mut versions, entries, rung.map_or("none", |rung| rung.name()))?);
    }
    Ok(all)
}

pub fn run(context: &Context, args: &ReportArgs) -> Result<Exit> {
    match args.runs.is_empty() {
        true => ledger(context, args),
        false => runs(context, args),
    }
}

/// Writes an HTML report on runs.
fn runs(context: &Context, args: &ReportArgs) -> Result<Exit> {
    let page = reporting::page(
        context,
        &Wanted {
            runs: args.runs.clone(),
            arms: args.arms.clone(),
            seeds: args.seeds.clone(),
            tier: args.tier.clone(),
            ledger: args.file.ledger.clone(),
        },
    )?;
    let text = page::render(&page);
    let tier = page.recipe.tier.as_ref().map_or_else(String::new, |tier| format!(".{tier}"));
    let path = args.out.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(format!("{}{tier}.report.html", page.recipe.name)));
    reporting::write(&path, &text)?;
    page.missing.iter().for_each(|why| context.progress.note(why));
    let (runs, verdicts, evaluations) = (page.runs.len(), page.verdicts.judged.len(), page.evaluations.len());
    match context.format {
        Format::Json => output::write_document(
            "report",
            &json!({
                "file": path, "recipe": page.recipe.name, "tier": page.recipe.tier, "bytes": text.len(),
                "runs": page.runs.iter().map(|run| json!({ "arm": run.arm, "seed": run.seed, "state": run.state })).collect::<Vec<_>>(),
                "verdicts": verdicts, "evaluations": evaluations, "missing": page.missing,
            }),
        )?,
        Format::Human => output::write(&format!(
            "{}: {runs} runs of {}, {verdicts} verdicts, {evaluations} evaluations, {} bytes\n",
            path.display(),
            page.recipe.name,
            text.len()
        ))?,
        format => {
            let mut table = output::columns(["file", "#runs", "#verdicts", "#evaluations", "#bytes"]);
            let mut row = vec![Cell::words(path.display().to_string())];
            row.extend([runs, verdicts, evaluations, text.len()].map(|count| Cell::count(count as u64)));
            table.push(row);
            output::write(&table.render(format))?;
        }
    }
    Ok(Exit::Ok)
}

/// Prints the tables of a ledger, or writes them into a file.
fn ledger(context: &Context, args: &ReportArgs) -> Result<Exit> {
    let ledger = records::ledger(context, args.file.ledger.as_deref());
    let entries = ledger.entries()?;
    let generated = render(&standings(&entries)?, &entries);
    let Some(path) = &args.into else {
        match context.format {
            Format::Human | Format::Md => {
                output::write(&format!("{}\n{}", generated.runs, generated.results))?
            }
            format => output::write_table("report", "records", &ledger_table(&entries), format)?,
        }
        return Ok(Exit::Ok);
    };
    let text = untrusted::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
    let stale = |error: zoo_results::report::ReadmeError| {
        Failure::new(Exit::Mismatch, format!("{}: {error}", path.display()))
    };
    if args.check {
        let command = format!("zoo report --ledger {} --into {}", ledger.path().display(), path.display());
        check(&text, &generated, &command).map_err(stale)?;
        context.progress.note(&format!("{} is fresh", path.display()));
        return written(context, path, false);
    }
    let fresh = replace(&text, &generated).map_err(stale)?;
    if fresh == text {
        context.progress.note(&format!("{} was fresh already", path.display()));
    } else {
        files::write_whole(path, fresh.as_bytes())?;
        context.progress.note(&format!("{} was refreshed", path.display()));
    }
    written(context, path, fresh != text)
}

/// Prints for programs whether a file was changed.
fn written(context: &Context, path: &Path, changed: bool) -> Result<Exit> {
    if context.format == Format::Json {
        output::write_document("report", &json!({ "file": path, "changed": changed }))?;
    }
    Ok(Exit::Ok)
}
