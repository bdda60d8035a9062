//! From a recipe's `[data]` to what training reads: fetched, verified, prepared once, and kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::prepare::{Place, PrepareOptions, PrepareStep, PreparedTranslation, prepare_from_files};
use zoo_datasets::readers::{pair_splits, split_names};
use zoo_datasets::speech::{self, PreparedSpeech, SpeechPlace, SpeechStep, manifest_stamp, own_folder_stamp};
use zoo_recipes::{AudioManifestSpec, DataSpec, DecoderSpec, ReaderSpec, Recipe, TokenizerSpec, untrusted};

use super::speech::Speech;
use super::synthesis::Synthesis;
use super::task::Task;
use crate::context::Context;
use crate::environment::hex;
use crate::error::{Failure, Result};
use crate::progress::Step;

/// Raised when a change of the code makes prepared data of before unlike that of after.
const VERSION: u32 = 1;

/// Prepared data, by task.
pub enum Prepared {
    /// Pairs of token sequences.
    Translation(Box<PreparedTranslation>),
    /// Recordings and their labels.
    Speech(Box<Speech>),
    /// Recordings and the symbols of what is said in them.
    Synthesis(Box<Synthesis>),
}

impl Prepared {
    /// For each split, the SHA-256 of what training and decoding see of it.
    pub fn fingerprints(&self) -> BTreeMap<String, String> {
        match self {
            Self::Translation(task) => task.fingerprints(),
            Self::Speech(task) => task.fingerprints(),
            Self::Synthesis(task) => task.fingerprints(),
        }
    }
}

/// The data of a recipe. `base` is the folder that the recipe's paths are relative to.
pub fn prepare(ctx: &Context, recipe: &Recipe, base: &Path) -> Result<Prepared> {
    match &recipe.model.decoder {
        DecoderSpec::Ctc {} | DecoderSpec::Tacotron(_) => {
            let prepared = recordings(ctx, &recipe.data, base, &split_names(&recipe.data))?;
            Ok(of_recordings(recipe, prepared, base))
        }
        _ => {
            let options = PrepareOptions::of(recipe);
            Ok(Prepared::Translation(Box::new(translation(ctx, &recipe.data, options, base)?)))
        }
    }
}

/// What some evaluation sets of a recipe need: of recordings these alone, of text all of it, whose vocabulary is that of training.
pub fn prepare_evaluation<'e>(
    ctx: &Context,
    recipe: &Recipe,
    base: &Path,
    sets: impl IntoIterator<Item = &'e str>,
) -> Result<Prepared> {
    if recipe.data.reader.sample_rate_hz().is_none() {
        return prepare(ctx, recipe, base);
    }
    let splits = sets.into_iter().filter_map(|name| recipe.data.eval.get(name)).map(|set| set.split.clone());
    let prepared = recordings(ctx, &recipe.data, base, &splits.collect())?;
    Ok(of_recordings(recipe, prepared, base))
}

/// Recordings, to be recognised or to be spoken.
fn of_recordings(recipe: &Recipe, prepared: PreparedSpeech, base: &Path) -> Prepared {
    let speech = Speech { prepared: Arc::new(prepared), base: base.to_path_buf() };
    match recipe.model.decoder {
        DecoderSpec::Tacotron(_) => Prepared::Synthesis(Box::new(Synthesis { speech })),
        _ => Prepared::Speech(Box::new(speech)),
    }
}

fn translation(
    ctx: &Context,
    data: &DataSpec,
    options: PrepareOptions,
    base: &Path,
) -> Result<PreparedTranslation> {
    let own_files = own_files(data, base)?;
    let corpus = data.corpus.as_deref().filter(|name| !name.is_empty());
    let definition = corpus.map(CorpusDefinition::find).transpose()?;
    // Evaluation sets of one corpus share the training text: its vocabulary does not depend on which are named.
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
    let key = hex(&Sha256::digest(what.to_string()));
    let folder = ctx.home.join("prepared").join(format!("{}-{}", corpus.unwrap_or("own"), &key[..12]));
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

fn recordings(
    ctx: &Context,
    data: &DataSpec,
    base: &Path,
    splits: &BTreeSet<String>,
) -> Result<PreparedSpeech> {
    let corpus = data.corpus.as_deref().filter(|name| !name.is_empty());
    let folder = match (corpus, &data.reader) {
        (None, ReaderSpec::AudioManifest(spec)) => {
            // Each recipe's own recordings have lists of their own.
            let paths: Vec<_> = spec.files.values().map(|file| base.join(file)).collect();
            let paths = hex(&Sha256::digest(format!("{paths:?}")));
            format!("own-recordings-{}", &paths[..12])
        }
        (Some(corpus), ReaderSpec::AudioManifest(AudioManifestSpec { folder: Some(own), .. })) => {
            let path = hex(&Sha256::digest(format!("{:?}", base.join(own))));
            format!("{corpus}-own-{}", &path[..12])
        }
        _ => format!("{}-recordings", corpus.unwrap_or("generated")),
    };
    // The list of a share is not that of all recordings.
    let folder = match data.share {
        Some(share) => format!("{folder}-first-{}-{}", share.train, share.eval),
        None => folder,
    };
    let folder = ctx.home.join("prepared").join(folder);
    let progress = |step: SpeechStep<'_>| match step {
        SpeechStep::Split(split) => ctx.progress.stage(&format!("read {split}")),
        SpeechStep::List(split, done, total) => {
            ctx.progress.stage(&format!("list {split}"));
            let (done, total) = (done as u64, Some(total as u64));
            ctx.progress.step(&Step { done, total, ..Step::default() });
        }
    };
    let place = SpeechPlace { base, progress: &progress };
    let prepared = speech::prepare(&folder, data, place, splits, || -> Result<_> {
        let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
        let fetch = |name: &str| -> Result<_> {
            let definition = CorpusDefinition::find(name)?;
            Ok(definition.fetch_splits(&splits, &ctx.data_home(), &ctx.fetch_options())?)
        };
        corpus.map(fetch).transpose()
    });
    ctx.progress.end_stage();
    let prepared = prepared?;
    for split in prepared.splits.values() {
        let skipped: u64 = split.statistics.skipped.values().sum();
        if let Some(first) = split.skipped.first() {
            let of = split.statistics.read;
            ctx.progress
                .note(&format!("{}: {skipped} of {of} recordings left out, the first: {first}", split.name));
        }
    }
    Ok(prepared)
}

/// Path and SHA-256 of every file that the recipe itself names; of a manifest, with the state of the recordings that it lists.
pub fn own_files(data: &DataSpec, base: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    if let ReaderSpec::ParallelText { files: own, .. } = &data.reader {
        for split in own.values() {
            let targets = [&split.target].into_iter().chain(&split.further_targets);
            files.extend([&split.source].into_iter().chain(targets).map(|file| base.join(file)));
        }
    }
    if let TokenizerSpec::SentencePiece { model: Some(model), .. } = &data.tokenizer {
        files.push(base.join(model));
    }
    let mut stamps: Vec<_> = files.iter().map(|file| stamp(file)).collect::<Result<_>>()?;
    if let ReaderSpec::AudioManifest(spec) = &data.reader {
        for file in spec.files.values().map(|file| base.join(file)) {
            stamps.push((file.display().to_string(), manifest_stamp(&file)?));
        }
    }
    stamps.extend(own_folder_stamp(data, base)?);
    Ok(stamps)
}

fn stamp(file: &Path) -> Result<(String, String)> {
    let bytes = untrusted::read(file).map_err(|e| Failure::io("read", file, &e))?;
    Ok((file.display().to_string(), hex(&Sha256::digest(&bytes))))
}
