//! `zoo fetch`: fetches and verifies the data of a recipe.

use serde_json::Value;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;

use crate::cli::FetchArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::gate;
use crate::output::{self, Cell, Format, Table};

pub fn run(context: &Context, args: &FetchArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let recipe = document.resolve(&Selection::default())?.recipe;
    let columns = || match args.verify {
        true => output::columns(["file", "path", "result|sha256", "error"]),
        false => output::columns(["file", "#bytes", "sha256", "checked against"]),
    };
    let Some(corpus) = recipe.data().corpus() else {
        context.progress.note(&format!("{} generates its data or names files of yours", document.name()));
        if context.format != Format::Human {
            output::write_table("fetch", "files", &columns(), context.format)?;
        }
        return Ok(Exit::Ok);
    };
    let corpus = CorpusDefinition::find(corpus)?;
    if args.verify {
        return verify(context, &corpus, columns());
    }
    let home = context.data_home();
    let missing = corpus.bytes_to_download(&home);
    context.progress.note(&format!(
        "{}: {}\nlicence: {} ({})\nto download: {missing}; on disk: {}",
        corpus.name,
        corpus.summary,
        corpus.licence.terms,
        corpus.licence.source,
        corpus.disk_bytes()
    ));
    gate::pass(context, &gate::Cost { seconds: None, bytes: missing.known, unknown_sizes: missing.unknown })?;
    let fetched = corpus.fetch_all(&home, &context.fetch_options());
    context.progress.end_stage();
    let mut table = columns();
    for (file, print) in fetched?.fingerprints {
        table.push(vec![
            Cell::words(file),
            Cell::count(print.bytes),
            Cell::words(print.sha256),
            Cell::words(print.checked),
        ]);
    }
    output::write_table("fetch", "files", &table, context.format)?;
    Ok(Exit::Ok)
}

fn verify(context: &Context, corpus: &CorpusDefinition, mut table: Table) -> Result<Exit> {
    let mut bad = Vec::new();
    for check in corpus.verify(&context.data_home(), &*context.progress) {
        let [sha256, error] = match check.result {
            Ok(sha256) => [Cell::of(format!("sha256:{sha256}"), sha256), Cell::words("")],
            Err(error) => {
                bad.push(error.to_string());
                let first = bad.last().and_then(|error| error.lines().next()).unwrap_or_default();
                [Cell::of("FAILED", Value::Null), Cell::words(first)]
            }
        };
        table.push(vec![Cell::words(check.file), Cell::words(context.shown(&check.path)), sha256, error]);
    }
    output::write_table("fetch", "files", &table, context.format)?;
    if bad.is_empty() { Ok(Exit::Ok) } else { Err(Failure::new(Exit::Data, bad.join("\n"))) }
}
