//! References of an evaluation set, in the form that hypotheses are scored against.

use std::path::Path;

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::readers::parallel_text::{EmptyLines, read};
use zoo_datasets::readers::{SplitText, reversal};
use zoo_datasets::text::bpe::undo;
use zoo_datasets::text::moses::Normalizer;
use zoo_recipes::References;
use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec, TextSetSpec, TextTokenizerSpec};
use zoo_results::exit::Exit;

use super::Recipe;
use crate::context::Context;
use crate::error::{Failure, Result};

/// References of the evaluation set `name`. Checks their number, and normalises them if the recipe
/// asks for it.
///
/// # Errors
/// The set mixes languages, its data cannot be obtained, or the data is another version of the set.
pub fn of(context: &Context, recipe: &Recipe, base: &Path, name: &str) -> Result<Vec<String>> {
    let data = &recipe.data;
    let eval = &data.eval[name];
    let &[target] = data.targets_of(eval).as_slice() else {
        let message = format!("the references of {name} are in {}", data.reader.targets().join(", "));
        return Err(Failure::usage(message).hint("name an evaluation set that has one `target`"));
    };
    let raw = side_lines(context, data, base, eval, Side::Target(target))?;
    if raw.len() as u64 != u64::from(eval.lines) {
        return Err(another(name, "lines", raw.len(), eval.lines));
    }
    let lines = match (eval.references, &data.reader) {
        (References::Normalized, TextReaderSpec::ParallelText { .. }) => {
            let normalizer = Normalizer::new(data.tokenizer.normalize(), data.reader.targets()[target])
                .map_err(|error| Failure::new(Exit::Recipe, error.to_string()))?;
            let lines = normalizer.lines(&raw);
            match data.tokenizer {
                TextTokenizerSpec::Words { subwords: true, .. } => {
                    lines.iter().map(|line| undo(line)).collect()
                }
                _ => lines,
            }
        }
        _ => raw,
    };
    if let Some(expected) = eval.reference_tokens {
        let tokens = lines.iter().map(|line| line.split_whitespace().count()).sum();
        if tokens as u64 != u64::from(expected) {
            return Err(another(name, "tokens", tokens, expected));
        }
    }
    Ok(lines)
}

/// The source lines of the evaluation set `name`. `base` is the folder that the recipe's paths are
/// relative to.
///
/// # Errors
/// There is no such set, or its data cannot be obtained.
pub fn sources(context: &Context, recipe: &Recipe, base: &Path, name: &str) -> Result<Vec<String>> {
    let set = recipe.data.eval.get(name);
    let set = set.ok_or_else(|| Failure::usage(format!("the recipe has no evaluation set {name}")))?;
    side_lines(context, &recipe.data, base, set, Side::Source)
}

fn another(name: &str, what: &str, found: usize, expected: u32) -> Failure {
    Failure::new(Exit::Data, format!("the references of {name} have {found} {what}, expected {expected}"))
        .hint("another version of the set; scores on it are not comparable")
}

/// A side of parallel text.
#[derive(Debug, Clone, Copy)]
enum Side {
    Source,
    /// The target side in the language of this index.
    Target(usize),
}

impl Side {
    fn of(self, pairs: SplitText) -> Vec<String> {
        match self {
            Self::Source => pairs.source,
            Self::Target(_) => pairs.target,
        }
    }
}

fn side_lines(
    context: &Context,
    data: &TextDataSpec,
    base: &Path,
    eval: &TextSetSpec,
    side: Side,
) -> Result<Vec<String>> {
    // Every target language has the same source.
    let target = match side {
        Side::Source => data.targets_of(eval).first().copied().unwrap_or(0),
        Side::Target(target) => target,
    };
    let data_failure = |error: &dyn std::fmt::Display| Failure::new(Exit::Data, error.to_string());
    match (&data.reader, &data.corpus) {
        (TextReaderSpec::Reversal(spec), _) => match reversal::generate(spec, &eval.split, target) {
            Ok(pairs) => Ok(side.of(pairs)),
            Err(error) => Err(Failure::new(Exit::Recipe, error.to_string())),
        },
        (TextReaderSpec::ParallelText { source, .. }, Some(corpus)) => {
            let corpus = CorpusDefinition::find(corpus)?;
            let split = eval.split.as_str();
            let missing = corpus.bytes_to_download(&context.data_home());
            if missing.known > 0 || missing.unknown > 0 {
                context.progress.note(&format!("licence of {}: {}", corpus.name, corpus.licence.terms));
            }
            let fetched = corpus.fetch_splits(&[split], &context.data_home(), &context.fetch_options());
            context.progress.end_stage();
            let language = match side {
                Side::Source => source.as_str(),
                Side::Target(target) => data.reader.targets()[target],
            };
            Ok(fetched?.split(split)?.read(language)?)
        }
        (TextReaderSpec::ParallelText { files, .. }, None) => {
            let pair = files.get(&eval.split);
            let Some((source, target)) = pair.and_then(|pair| Some((&pair.source, pair.target(target)?)))
            else {
                return Err(Failure::new(
                    Exit::Recipe,
                    format!("the reader names no files of the split {}", eval.split),
                ));
            };
            let path = |name: &str| base.join(name);
            let pairs =
                read(&path(source), &path(target), EmptyLines::Keep).map_err(|error| data_failure(&error))?;
            Ok(side.of(pairs))
        }
    }
}
