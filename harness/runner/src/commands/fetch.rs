//! `zoo fetch`: fetches and verifies the data of a recipe.

use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::{Document, Selection};
use zoo_results::exit::Exit;

use crate::cli::FetchArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::gate;
use crate::output;

pub fn run(context: &Context, args: &FetchArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    let recipe = document.resolve(&Selection::default())?.recipe;
    let Some(corpus) = recipe.data().corpus() else {
        context.progress.note(&format!("{} generates its data or names files of yours", document.name()));
        return Ok(Exit::Ok);
    };
    let corpus = CorpusDefinition::find(corpus)?;
    if args.verify {
        return verify(context, &corpus);
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
    let mut table = output::columns(["file", "bytes", "sha256", "checked against"]);
    for (file, print) in fetched?.fingerprints {
        table.push(output::words([file, print.bytes.to_string(), print.sha256, print.checked]));
    }
    output::write(&table.render(context.format))?;
    Ok(Exit::Ok)
}

fn verify(context: &Context, corpus: &CorpusDefinition) -> Result<Exit> {
    let mut table = output::columns(["file", "path", "result"]);
    let mut bad = Vec::new();
    for check in corpus.verify(&context.data_home(), &*context.progress) {
        let result = match check.result {
            Ok(sha256) => format!("sha256:{sha256}"),
            Err(error) => {
                bad.push(error.to_string());
                "FAILED".to_owned()
            }
        };
        table.push(output::words([check.file, context.shown(&check.path), result]));
    }
    output::write(&table.render(context.format))?;
    if bad.is_empty() { Ok(Exit::Ok) } else { Err(Failure::new(Exit::Data, bad.join("\n"))) }
}
