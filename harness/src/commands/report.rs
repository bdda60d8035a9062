//! `zoo report`.

use std::fs;

use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;
use zoo_results::ledger::Entry;
use zoo_results::report::{RecipeStanding, check, ledger_table, render, replace};

use crate::cli::ReportArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::{ladder, reached};
use crate::output::{self, Format};
use crate::records;

/// Every recipe that is built in, with the evidence that this ledger alone gives it: the same wherever it is made.
fn standings(entries: &[Entry]) -> Result<Vec<RecipeStanding>> {
    let runs = records::runs_of(entries.iter().map(|entry| &entry.record));
    let mut all = Vec::new();
    for name in zoo_recipes::names() {
        let document = Document::load(name)?;
        let rung = reached(&ladder(&document, &runs));
        all.push(RecipeStanding {
            recipe: document.name().to_owned(),
            hash: document.hash(None, &[])?,
            claims: document.resolve(&Selection::default())?.recipe.claim,
            evidence: rung.map_or("none", |rung| rung.name()).to_owned(),
        });
    }
    Ok(all)
}

pub fn run(context: &Context, args: &ReportArgs) -> Result<Exit> {
    let ledger = records::ledger(context, args.file.ledger.as_deref());
    let entries = ledger.entries()?;
    let generated = render(&standings(&entries)?, &entries);
    let Some(path) = &args.into else {
        match context.format {
            Format::Human | Format::Md => output::write(&generated)?,
            format => output::write(&ledger_table(&entries).render(format))?,
        }
        return Ok(Exit::Ok);
    };
    let text = fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
    let stale = |error: zoo_results::report::ReadmeError| Failure::new(Exit::Mismatch, error.to_string());
    if args.check {
        let command = format!("zoo report --ledger {} --into {}", ledger.path().display(), path.display());
        check(&text, &generated, &command).map_err(stale)?;
        context.progress.note(&format!("{} is fresh", path.display()));
        return Ok(Exit::Ok);
    }
    let fresh = replace(&text, &generated).map_err(stale)?;
    if fresh == text {
        context.progress.note(&format!("{} was fresh already", path.display()));
    } else {
        records::write_whole(path, fresh.as_bytes())?;
        context.progress.note(&format!("{} was refreshed", path.display()));
    }
    Ok(Exit::Ok)
}
