//! `zoo check`.

use zoo_recipes::{Document, LoadError, Selection};
use zoo_results::exit::Exit;

use crate::cli::CheckArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell};
use crate::signatures::check_signatures;

/// All recipes are looked at before the first finding ends the command.
pub fn run(context: &Context, args: &CheckArgs) -> Result<Exit> {
    let all: Vec<String> = match args.recipes.as_slice() {
        [] => zoo_recipes::names().into_iter().map(str::to_owned).collect(),
        some => some.to_vec(),
    };
    let mut table = output::columns(["recipe", "file", "arms", "tiers", "#claims", "result"]);
    let mut findings = Vec::new();
    for name in &all {
        match check(name) {
            Ok(document) => {
                let claims = document.resolve(&Selection::default())?.recipe.claim.len();
                table.push(vec![
                    Cell::words(document.name()),
                    Cell::words(document.file()),
                    Cell::words(document.arms().join(" ")),
                    Cell::words(document.tiers().join(" ")),
                    Cell::count(claims as u64),
                    Cell::words("sound"),
                ]);
            }
            Err(LoadError::Invalid(found)) => {
                let result = format!("{} findings", found.len());
                let unknown = || Cell::words("");
                table.push(vec![
                    Cell::words(name),
                    Cell::words(name),
                    unknown(),
                    unknown(),
                    unknown(),
                    Cell::words(result),
                ]);
                findings.push(found);
            }
            Err(other) => return Err(other.into()),
        }
    }
    output::write(&table.render(context.format))?;
    let mut all = zoo_recipes::Diagnostics::default();
    findings.into_iter().for_each(|found| all.extend(found));
    if all.is_empty() { Ok(Exit::Ok) } else { Err(Failure::from(all)) }
}

fn check(name: &str) -> std::result::Result<Document, LoadError> {
    let document = Document::load(name)?;
    document.check()?;
    check_signatures(&document, &document.resolve(&Selection::default())?.recipe.claim)?;
    Ok(document)
}
