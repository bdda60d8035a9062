//! `zoo list`.

use rayon::prelude::*;
use zoo_recipes::{DataStatus, Document};
use zoo_results::exit::Exit;

use crate::cli::ListArgs;
use crate::context::Context;
use crate::error::Result;
use crate::evidence::{RecordedRun, ladder, reached};
use crate::output::{self, Cell};
use crate::records;

pub fn run(context: &Context, args: &ListArgs) -> Result<Exit> {
    let runs = records::known_runs(context)?;
    let mut table = output::columns(["name", "task", "arms", "#claims", "evidence", "data", "summary"]);
    let rows: Result<Vec<Option<Vec<Cell>>>> =
        zoo_recipes::names().par_iter().map(|name| row(name, args, &runs)).collect();
    rows?.into_iter().flatten().for_each(|row| table.push(row));
    output::write(&table.render(context.format))?;
    if table.rows.is_empty() {
        context.progress.note("no recipe is like that; `zoo list` shows all");
    }
    Ok(Exit::Ok)
}

/// The line of a recipe, if it is one of those that were asked for.
fn row(name: &str, args: &ListArgs, runs: &[RecordedRun]) -> Result<Option<Vec<Cell>>> {
    let document = Document::load(name)?;
    let about = document.about();
    let tagged = args.tag.iter().all(|tag| about.tags.contains(tag));
    if !tagged || args.task.as_ref().is_some_and(|task| *task != about.task) {
        return Ok(None);
    }
    let rung = reached(&ladder(&document, runs));
    if args.evidence.is_some_and(|least| rung.is_none_or(|rung| rung < least)) {
        return Ok(None);
    }
    Ok(Some(vec![
        Cell::words(&about.name),
        Cell::words(&about.task),
        Cell::words(document.arms().join(" ")),
        Cell::count(document.claim_count() as u64),
        Cell::words(rung.map_or("none", |rung| rung.name())),
        Cell::words(status(about.status)),
        Cell::words(&about.summary),
    ]))
}

/// The word of recipes for it.
pub fn status(status: DataStatus) -> &'static str {
    match status {
        DataStatus::Public => "public",
        DataStatus::Generated => "generated",
        DataStatus::Gated => "gated",
        DataStatus::Private => "private",
    }
}
