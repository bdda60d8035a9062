//! `zoo list`.

use zoo_recipes::{DataStatus, Document, Selection};
use zoo_results::exit::Exit;

use crate::cli::ListArgs;
use crate::context::Context;
use crate::error::Result;
use crate::evidence::{ladder, reached};
use crate::output::{self, Cell};
use crate::records;

pub fn run(context: &Context, args: &ListArgs) -> Result<Exit> {
    let runs = records::known_runs(context)?;
    let mut table = output::columns(["name", "task", "arms", "#claims", "evidence", "data", "summary"]);
    for name in zoo_recipes::names() {
        let document = Document::load(name)?;
        let about = document.about();
        let tagged = args.tag.iter().all(|tag| about.tags.contains(tag));
        if !tagged || args.task.as_ref().is_some_and(|task| *task != about.task) {
            continue;
        }
        let rung = reached(&ladder(&document, &runs));
        if args.evidence.is_some_and(|least| rung.is_none_or(|rung| rung < least)) {
            continue;
        }
        let claims = document.resolve(&Selection::default())?.recipe.claim.len();
        table.push(vec![
            Cell::words(&about.name),
            Cell::words(&about.task),
            Cell::words(document.arms().join(" ")),
            Cell::count(claims as u64),
            Cell::words(rung.map_or("none", |rung| rung.name())),
            Cell::words(status(about.status)),
            Cell::words(&about.summary),
        ]);
    }
    output::write(&table.render(context.format))?;
    if table.rows.is_empty() {
        context.progress.note("no recipe is like that; `zoo list` shows all");
    }
    Ok(Exit::Ok)
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
