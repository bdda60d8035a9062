//! `zoo list`: lists recipes with their evidence.

use rayon::prelude::*;
use zoo_recipes::{DataStatus, Document, Selection, nearest};
use zoo_results::exit::Exit;

use crate::cli::ListArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::{RecordedRun, ladder, reached};
use crate::output::{self, Cell};
use crate::records;
use crate::wording::ClaimCounts;

pub fn run(context: &Context, args: &ListArgs) -> Result<Exit> {
    let runs = records::known_runs(context)?;
    let documents: Result<Vec<Document>> =
        zoo_recipes::names().par_iter().map(|name| Ok(Document::load(name)?)).collect();
    let documents = documents?;
    if let Some(task) = &args.task {
        known("task", task, documents.iter().map(|document| document.about().task.as_str()))?;
    }
    for tag in &args.tag {
        let tags = documents.iter().flat_map(|document| &document.about().tags);
        known("tag", tag, tags.map(String::as_str))?;
    }
    let [published, extended, own, not_judgeable] = ClaimCounts::TITLES;
    let mut table = output::columns([
        "name",
        "task",
        "arms",
        published,
        extended,
        own,
        not_judgeable,
        "evidence",
        "data",
        "summary",
    ]);
    let rows: Result<Vec<Option<Vec<Cell>>>> =
        documents.par_iter().map(|document| row(document, args, &runs)).collect();
    rows?.into_iter().flatten().for_each(|row| table.push(row));
    output::write_table("list", "recipes", &table, context.format)?;
    if table.rows.is_empty() {
        context.progress.note("no recipe matches all of these filters; `zoo list` shows every recipe");
    }
    Ok(Exit::Ok)
}

/// Rejects a filter value that no recipe has, because an empty list would look like a valid answer.
fn known<'a>(what: &str, given: &str, words: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    if words.contains(&given) {
        return Ok(());
    }
    let hint = match nearest(given, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    Err(Failure::usage(format!("no recipe has the {what} `{given}`"))
        .hint(format!("{hint}the {what}s are {}", words.join(", "))))
}

/// Table row of a recipe; `None` if a filter excludes it.
fn row(document: &Document, args: &ListArgs, runs: &[RecordedRun]) -> Result<Option<Vec<Cell>>> {
    let about = document.about();
    let tagged = args.tag.iter().all(|tag| about.tags.contains(tag));
    if !tagged || args.task.as_ref().is_some_and(|task| about.task != **task) {
        return Ok(None);
    }
    let rung = reached(&ladder(document, runs));
    if args.evidence.is_some_and(|least| rung.is_none_or(|rung| rung < least)) {
        return Ok(None);
    }
    let counts = ClaimCounts::of(&document.resolve(&Selection::default())?.recipe);
    let mut row =
        vec![Cell::words(&about.name), Cell::words(about.task.as_str()), Cell::list(document.arms(), " ")];
    row.extend(counts.numbers().map(Cell::count));
    row.extend([
        Cell::of(rung.map_or("none", |rung| rung.name()), rung.map(|rung| rung.name())),
        Cell::words(status(about.status)),
        Cell::words(&about.summary),
    ]);
    Ok(Some(row))
}

/// Name of a data status, as recipes write it.
pub fn status(status: DataStatus) -> &'static str {
    match status {
        DataStatus::Public => "public",
        DataStatus::Generated => "generated",
        DataStatus::Gated => "gated",
        DataStatus::Private => "private",
    }
}
