//! `zoo infer` for speech recognition: transcribes recordings.

use std::path::{Path, PathBuf};

use zoo_recipes::tasks::speech_recognition::CtcSearchSpec;
use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use super::Recipe;
use super::infer::{Hypothesis, Listener, Transcription};
use crate::cli::InferArgs;
use crate::error::{Failure, Result};
use crate::lines;
use crate::output::{self, Format};
use crate::task::inference::Inference;

/// Argument that selects stdin.
const STDIN: &str = "-";

/// Transcribes recordings. Prints each transcript as soon as it is done.
///
/// # Errors
/// A recording or the weights cannot be read.
pub fn transcribe(inference: &Inference, recipe: &Recipe, args: &InferArgs) -> Result<()> {
    let context = &inference.ctx;
    if args.input.is_some() || args.target.is_some() {
        return Err(Failure::usage("a speech recognition run takes recordings, not --input or --target")
            .hint("zoo infer RUN file.wav"));
    }
    let files = recordings(&args.files)?;
    let nbest = args.nbest.map(|count| count as usize);
    if let Some(other) =
        search_of_many(recipe, &inference.search).filter(|_| nbest.is_some_and(|count| count > 1))
    {
        let hint = if other.is_empty() { String::new() } else { format!("; --decode {other} has more") };
        context.progress.note(&format!("the search returns one hypothesis per recording{hint}"));
    }
    let read = |file: &Path| {
        let read = if file == Path::new(STDIN) { lines::stdin() } else { untrusted::read(file) };
        read.map_err(|error| Failure::io("read", file, &error))
    };
    let alone = files.len() == 1;
    let (mut spoken, mut taken) = (0.0, 0.0);
    let found = |one: Transcription| {
        (spoken, taken) = (spoken + one.seconds, taken + one.latency);
        match context.format {
            Format::Json => output::write_json_line(&one),
            _ => {
                let file = if alone { String::new() } else { format!("{}\t", one.file) };
                let scored = |best: &Hypothesis| format!("{file}{:.4}\t{}\n", best.score, best.text);
                output::write(&match nbest {
                    Some(_) => one.hypotheses.iter().map(scored).collect(),
                    None => format!("{file}{}\n", one.text),
                })
            }
        }
    };
    listener(inference, recipe)?.listen(files.iter().map(PathBuf::as_path), nbest, read, found)?;
    context.progress.note(&format!("{spoken:.1} s of speech in {taken:.3} s"));
    Ok(())
}

/// Loads the model of a run and its search.
///
/// # Errors
/// The weights, the language model or the word list cannot be read.
pub fn open(inference: &Inference, recipe: &Recipe) -> Result<()> {
    listener(inference, recipe)?.recogniser().map(drop)
}

fn listener(inference: &Inference, recipe: &Recipe) -> Result<Listener> {
    let Inference { ctx, run, search, .. } = inference;
    Listener::new(ctx, run, recipe, &recipe.decode[search])
}

/// Name of a beam search of the recipe, if the selected search returns only one hypothesis. An
/// empty string if the recipe has no beam search.
fn search_of_many(recipe: &Recipe, search: &str) -> Option<String> {
    let has_many = |search: &CtcSearchSpec| matches!(search, CtcSearchSpec::Beam { .. });
    let other = || recipe.decode.iter().find(|(_, search)| has_many(search));
    (!has_many(&recipe.decode[search])).then(|| other().map(|(name, _)| name.clone()).unwrap_or_default())
}

/// The named recordings. A folder is replaced by its WAV and FLAC files, sorted.
fn recordings(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| Failure::io("read", path, &error))?;
        let mut found = Vec::new();
        for entry in entries {
            let file = entry.map_err(|error| Failure::io("read", path, &error))?.path();
            let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
            if ending.is_some_and(|ending| ending == "wav" || ending == "flac") {
                found.push(file);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(Exit::Data, format!("no WAV or FLAC file lies in {}", path.display())));
        }
        found.sort();
        files.extend(found);
    }
    match files.is_empty() {
        true => Err(Failure::usage("no recording is named").hint("zoo infer RUN file.wav")),
        false => Ok(files),
    }
}
