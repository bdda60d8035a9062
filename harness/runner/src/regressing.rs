//! Inputs of a regression check: current records, recorded ones, and the places of claims in recipe
//! files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zoo_recipes::{ClaimSpec, Document, Origin, Selection};
use zoo_results::exit::Exit;
use zoo_results::ledger::{Entry, Ledger, Record, RunEnd};
use zoo_results::regress::{Place, Row};

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::records;
use crate::stages::{Request, reproduce};

/// The recipes that `--select` names by name, path, task or tag; all built-in recipes if `words` is
/// empty.
///
/// # Errors
/// A word matches no recipe.
pub fn selected(words: &[String]) -> Result<Vec<Document>> {
    let mut all = Vec::new();
    for name in zoo_recipes::names() {
        all.push(Document::load(name)?);
    }
    if words.is_empty() {
        return Ok(all);
    }
    let mut chosen: Vec<Document> = Vec::new();
    let mut add = |document: Document| {
        if !chosen.iter().any(|known| known.file() == document.file()) {
            chosen.push(document);
        }
    };
    for word in words {
        let about = |document: &&Document| {
            let about = document.about();
            about.task == **word || about.tags.contains(word)
        };
        let of_kind: Vec<&Document> = all.iter().filter(about).collect();
        if of_kind.is_empty() {
            add(Document::load(word)?);
        }
        of_kind.into_iter().for_each(|document| add(document.clone()));
    }
    Ok(chosen)
}

/// The current record of a recipe, from a run or from a ledger.
pub struct Ours {
    pub record: Record,
    /// `new`, `reused, same program`, or the count of each; `None` if the record comes from a
    /// ledger.
    pub run: Option<String>,
}

/// Runs a recipe in every arm. Runs in the home are reused only if this program made them.
///
/// # Errors
/// The run fails.
pub fn run(context: &Context, document: &Document, tier: Option<&str>, seeds: u32) -> Result<Ours> {
    let request = Request { own_runs: true, ..Request::of(document, tier, seeds)? };
    let outcome = reproduce(&context.for_fixtures(), &request)?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for run in &outcome.runs {
        *counts.entry(run.made.to_string()).or_default() += 1;
    }
    let run = match counts.len() {
        1 => counts.into_keys().next(),
        _ => Some(counts.iter().map(|(made, n)| format!("{n} {made}")).collect::<Vec<_>>().join("; ")),
    };
    Ok(Ours { record: outcome.record, run })
}

/// The entries of a ledger. A ledger that the user named must exist.
///
/// # Errors
/// The ledger is missing or damaged.
pub fn entries(context: &Context, path: Option<&Path>) -> Result<Vec<Entry>> {
    let ledger: Ledger = records::ledger(context, path);
    if path.is_some() && !ledger.path().is_file() {
        return Err(Failure::new(Exit::Data, format!("there is no ledger {}", ledger.path().display()))
            .hint(
                "the project's ledger is results/data/ledger.jsonl; `zoo reproduce` writes the ledger in --home",
            ));
    }
    Ok(ledger.entries()?)
}

/// The newest record of a recipe and tier that can be compared.
pub fn newest<'e>(entries: &'e [Entry], document: &Document, tier: Option<&str>) -> Option<&'e Record> {
    let fits = |record: &&Record| {
        let full = |tier: Option<&str>| tier.filter(|tier| *tier != "full").map(str::to_owned);
        record.recipe == document.name()
            && full(record.tier.as_deref()) == full(tier)
            && record.overrides.is_empty()
            && !matches!(record.end, RunEnd::Started | RunEnd::Interrupted)
    };
    entries.iter().rev().map(|entry| &entry.record).find(fits)
}

/// Sets the place of each row: its claim, else the recipe's first claim, else the file.
///
/// # Errors
/// The recipe does not resolve.
pub fn locate(rows: &mut [Row], documents: &[Document]) -> Result<()> {
    for document in documents {
        let claims: Vec<ClaimSpec> = document.resolve(&Selection::default())?.recipe.claim.clone();
        for row in rows.iter_mut().filter(|row| row.recipe == document.name()) {
            let at = row.claim.as_ref().and_then(|claim| claims.iter().position(|known| known == claim));
            row.place = place(&document.claim_origin(at.unwrap_or(0)), document);
        }
    }
    Ok(())
}

/// Place of a claim, which may be in another file. Paths are relative to the working directory,
/// because annotations need paths from the repository's root.
fn place(origin: &Origin, document: &Document) -> Option<Place> {
    match origin {
        Origin::File { file, line, .. } => {
            let path = PathBuf::from(file.as_ref());
            let here = std::env::current_dir().ok();
            let path = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or(path);
            Some(Place { file: path.display().to_string(), line: *line })
        }
        Origin::Override { .. } | Origin::Tier { .. } => {
            Some(Place { file: document.file().to_owned(), line: 1 })
        }
    }
}
