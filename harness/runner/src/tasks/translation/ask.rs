//! `zoo infer` for translation: translates lines of text.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;

use serde_json::json;
use zoo_datasets::tasks::translation::prepare::PreparedTranslation;
use zoo_models::precision::Compute;
use zoo_models::tasks::translation::Seq2Seq;
use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use super::Recipe;
use super::data::vocabularies;
use super::decode::Translator;
use super::material::Text;
use super::prepare::of_run;
use crate::cli::InferArgs;
use crate::error::{Failure, Result};
use crate::lines;
use crate::output::Format;
use crate::run::evaluate::{evaluated_weights, load_model};
use crate::task::inference::Inference;

/// Argument that selects stdin.
const STDIN: &str = "-";

/// Maximum number of lines in a batch.
const SENTENCES: usize = 64;

/// Translates lines of a file or of stdin. Prints one translation per line, in order, as soon as it
/// is done.
///
/// # Errors
/// A line or the weights cannot be read.
pub fn translate(inference: &Inference, recipe: &Recipe, args: &InferArgs) -> Result<()> {
    if args.nbest.is_some() {
        return Err(Failure::usage("--nbest needs a speech recognition run"));
    }
    let input = match (&args.input, args.files.as_slice()) {
        (Some(file), _) => Some(file.as_path()),
        (None, []) => None,
        (None, [file]) => Some(file.as_path()),
        (None, _) => return Err(Failure::usage("a translation run takes one text file")),
    };
    let input = input.filter(|path| *path != Path::new(STDIN));
    let lines: Box<dyn BufRead> = match input {
        Some(path) => {
            let file = untrusted::open(path).map_err(|error| Failure::io("open", path, &error))?;
            Box::new(BufReader::new(file))
        }
        None => Box::new(std::io::stdin().lock()),
    };
    let mut out = std::io::stdout().lock();
    let json = inference.ctx.format == Format::Json;
    let write = |source: &str, translation: &str| {
        let written = match json {
            true => writeln!(out, "{}", json!({ "text": source, "translation": translation })),
            false => writeln!(out, "{translation}"),
        };
        match written.and_then(|()| out.flush()) {
            // The reader closed the pipe. The work is done, and this is not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            other => other,
        }
    };
    let name = input.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    translate_lines(inference, recipe, args.target.as_deref(), &name, lines::arriving(lines), write)
}

/// Loads the vocabulary and the model of a run.
///
/// # Errors
/// They are missing or damaged, or do not fit each other.
pub fn open(inference: &Inference, recipe: &Recipe) -> Result<(PreparedTranslation, Seq2Seq)> {
    let Inference { ctx, run, .. } = inference;
    let prepared = of_run(ctx, recipe, run)?;
    let weights = evaluated_weights(run, recipe)?.values;
    let text = Text { train: Vec::new(), vocabularies: vocabularies(&prepared) };
    let model = load_model(recipe, &text, weights, &ctx.open_device()?)?;
    Ok((prepared, model))
}

/// Translates `lines`. `input` is the name of the input in messages.
fn translate_lines(
    inference: &Inference,
    recipe: &Recipe,
    target: Option<&str>,
    input: &str,
    lines: impl Iterator<Item = std::io::Result<String>>,
    mut write: impl FnMut(&str, &str) -> std::io::Result<()>,
) -> Result<()> {
    let Inference { ctx, search, .. } = inference;
    let search = &recipe.decode[search];
    let language = language(recipe, target)?;
    let (prepared, model) = open(inference, recipe)?;
    let compute = Compute::of(&recipe.precision);
    let translator = Translator { model: &model, prepared: &prepared, language, spec: search, compute };
    let mut number = 0;
    let mut read = |line: std::io::Result<String>| {
        number += 1;
        line.map_err(|e| {
            let failure = Failure::new(Exit::Data, format!("{input}:{number}: {e}"));
            failure.hint("lines are UTF-8; convert the file, e.g. with iconv")
        })
    };
    let mut lines = lines.peekable();
    while lines.peek().is_some() {
        ctx.check_stop()?;
        let batch: Vec<String> = lines.by_ref().take(SENTENCES).map(&mut read).collect::<Result<_>>()?;
        let sources: Vec<Vec<u32>> = batch.iter().map(|line| prepared.pipeline.encode_source(line)).collect();
        let sources: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
        for (source, line) in batch.iter().zip(translator.translate(&sources)) {
            write(source, &line)
                .map_err(|e| Failure::new(Exit::Internal, format!("cannot write to stdout: {e}")))?;
        }
    }
    Ok(())
}

/// Index of a target language.
fn language(recipe: &Recipe, name: Option<&str>) -> Result<usize> {
    let targets = recipe.data.reader.targets();
    let Some(name) = name else { return Ok(0) };
    targets.iter().position(|target| *target == name).ok_or_else(|| {
        Failure::usage(format!("the model does not write `{name}`"))
            .hint(format!("it writes {}", targets.join(", ")))
    })
}
