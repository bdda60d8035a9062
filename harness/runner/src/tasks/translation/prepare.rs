//! Preparation of a recipe's `[data]`: fetches, verifies, encodes and caches pairs of token
//! sequences.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::readers::{EmptyLines, ReadError};
use zoo_datasets::readers::{PairReader, split_names};
use zoo_datasets::tasks::translation::pair_splits;
use zoo_datasets::tasks::translation::prepare::{
    Place, PrepareError, PrepareOptions, PrepareStep, PreparedTranslation, check_files, prepare_from_files,
};
use zoo_recipes::TextTokenizerSpec;
use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec};
use zoo_recipes::{DataBlock, untrusted};
use zoo_results::exit::Exit;

use super::Recipe;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::data::TaskData;
use crate::run::folder::{Run, VOCABULARY};

/// Version of the cache key. Increase it when a code change alters the prepared data.
const VERSION: u32 = 1;

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        let exit = match error {
            PrepareError::Unavailable { .. } => Exit::Recipe,
            PrepareError::Kept { .. } => Exit::Damaged,
            _ => Exit::Data,
        };
        Self::new(exit, error.to_string())
    }
}

/// Fetches and prepares the data of a recipe. `base` is the folder that its paths are relative to.
///
/// # Errors
/// The data cannot be obtained, or it is damaged.
pub fn prepare(ctx: &Context, recipe: &Recipe, base: &Path) -> Result<PreparedTranslation> {
    let (data, options) = (&recipe.data, PrepareOptions::of(recipe));
    let definition = definition(data)?;
    let folder = folder(ctx, recipe, base)?;
    let progress = |step: PrepareStep<'_>| match step {
        PrepareStep::Text(split) => ctx.progress.stage(&format!("read {split}")),
        PrepareStep::Shuffle => ctx.progress.stage("shuffle"),
        PrepareStep::Learn => ctx.progress.stage("learn sub-words and vocabulary"),
        PrepareStep::Encode(split) => ctx.progress.stage(&format!("encode {split}")),
        PrepareStep::Load => {}
    };
    let place = Place { base, definition: definition.as_ref(), progress: &progress };
    let prepared = prepare_from_files(&folder, data, options, place, || -> Result<_> {
        let splits = split_names(data);
        let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
        let fetch = |definition: &CorpusDefinition| {
            definition.fetch_splits(&splits, &ctx.data_home(), &ctx.fetch_options())
        };
        Ok(definition.as_ref().map(fetch).transpose()?)
    });
    ctx.progress.end_stage();
    prepared
}

/// Sub-words and vocabularies that a run kept, without text. A run by an earlier version kept none:
/// its data is prepared again, and must be that which the run was trained on.
///
/// # Errors
/// A kept file is missing or was changed, or the data cannot be obtained or has changed.
pub fn of_run(ctx: &Context, recipe: &Recipe, run: &Run) -> Result<PreparedTranslation> {
    let folder = run.folder.join(VOCABULARY);
    if let Some(kept) = PreparedTranslation::kept(&recipe.data, PrepareOptions::of(recipe), &folder)? {
        return Ok(kept);
    }
    run.may_read_data()?;
    let prepared = prepare(ctx, recipe, &run.card.base)?;
    TaskData::check(&prepared, recipe, run)?;
    Ok(prepared)
}

/// Compares the vocabulary that a run kept with its digests.
///
/// # Errors
/// A kept file is missing or was changed.
pub fn check_vocabulary(recipe: &Recipe, run: &Run) -> Result<()> {
    let folder = run.folder.join(VOCABULARY);
    PreparedTranslation::kept(&recipe.data, PrepareOptions::of(recipe), &folder)?;
    Ok(())
}

fn definition(data: &TextDataSpec) -> Result<Option<CorpusDefinition>> {
    let corpus = data.corpus.as_deref().filter(|name| !name.is_empty());
    Ok(corpus.map(CorpusDefinition::find).transpose()?)
}

/// Folder of the prepared data of a recipe, whether it exists or not.
///
/// # Errors
/// The corpus is unknown, or a file that the recipe names cannot be read.
pub fn folder(ctx: &Context, recipe: &Recipe, base: &Path) -> Result<PathBuf> {
    let (data, options) = (&recipe.data, PrepareOptions::of(recipe));
    let own_files = own_files(data, base)?;
    let definition = definition(data)?;
    // The key does not depend on which evaluation sets are named: all sets of a corpus share the
    // training text and its vocabulary.
    let splits: Vec<String> = pair_splits(data).iter().map(|split| split.name().to_string()).collect();
    let mut what = serde_json::json!({
        "version": VERSION, "corpus": data.corpus, "reader": data.reader, "tokenizer": data.tokenizer, "filter": data.filter,
        "splits": splits, "files": own_files, "begin": options.begin_token_in_target,
    });
    if let Some(share) = data.share {
        what["share"] = serde_json::json!(share);
    }
    if data.begin_token_in_source {
        what["begin_in_source"] = serde_json::json!(true);
        what["begin_counts_in_target"] = serde_json::json!(options.begins_before_target(data));
    }
    if let Some(preparation) = definition.as_ref().and_then(|definition| definition.preparation.as_ref()) {
        what["preparation"] = serde_json::json!(preparation);
    }
    let key = hex::encode(Sha256::digest(what.to_string()));
    let corpus = definition.as_ref().map_or("own", |definition| definition.name.as_str());
    Ok(ctx.prepared_dir().join(format!("{corpus}-{}", &key[..12])))
}

/// Compares the files of a prepared folder with the digests in it. `None` if the folder is not of
/// this task.
pub fn check_prepared(folder: &Path) -> Option<Vec<(PathBuf, Result<()>)>> {
    let checked = check_files(folder)?;
    Some(checked.into_iter().map(|(path, result)| (path, result.map_err(Failure::from))).collect())
}

/// Path and SHA-256 of the text files and of the tokenizer model that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_files(data: &TextDataSpec, base: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    if let TextReaderSpec::ParallelText { files: own, .. } = &data.reader {
        for split in own.values() {
            let targets = [&split.target].into_iter().chain(&split.further_targets);
            files.extend([&split.source].into_iter().chain(targets).map(|file| base.join(file)));
        }
    }
    if let TextTokenizerSpec::SentencePiece { model: Some(model), .. } = &data.tokenizer {
        files.push(base.join(model));
    }
    files.iter().map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Result<(String, String)> {
    let bytes = untrusted::read(file).map_err(|e| Failure::io("read", file, &e))?;
    Ok((file.display().to_string(), hex::encode(Sha256::digest(&bytes))))
}

/// Number of sentence pairs in the training files that the recipe itself names.
///
/// # Errors
/// A file cannot be read.
pub fn own_examples(data: &TextDataSpec, base: &Path) -> Result<Option<usize>> {
    let TextReaderSpec::ParallelText { files, .. } = &data.reader else { return Ok(None) };
    let count = |source: &str, target: &str| count_pairs(&base.join(source), &base.join(target));
    let counted = files.get(data.training()).map(|files| count(&files.source, &files.target));
    counted.transpose().map_err(|error| Failure::new(Exit::Data, error.to_string()))
}

fn count_pairs(source: &Path, target: &Path) -> std::result::Result<usize, ReadError> {
    let mut pairs = PairReader::open(source, target, EmptyLines::Skip)?;
    let mut count = 0;
    while let Some(chunk) = pairs.next_chunk(1 << 16)? {
        count += chunk.len();
    }
    Ok(count)
}
