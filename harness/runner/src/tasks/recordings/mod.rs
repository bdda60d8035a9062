//! Transcribed recordings: preparation, counts and training batches that several tasks share.

mod front_end;
mod training;
mod usual;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::readers::split_names;
use zoo_datasets::speech::{
    self, Fault, Labels, PreparedSpeech, SpeechPlace, SpeechSplit, SpeechStep, manifest_stamp,
    own_folder_stamp,
};
use zoo_recipes::atomic::is_temporary;
use zoo_recipes::tasks::speech_recognition::ClassTokenizerSpec;
use zoo_recipes::tasks::speech_synthesis::SymbolTokenizerSpec;
use zoo_recipes::{AudioManifestSpec, RecipeOf, RecordingDataSpec, RecordingReaderSpec, TaskTypes};
use zoo_results::report::page::SplitCounts;

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::lines;
use crate::progress::Step;
use crate::run::data::Sets;

pub use front_end::{decoded, features, front_end};
pub use training::Recordings;
pub use usual::{USUAL_SECONDS, hop_ms, shape, workload};

/// Folder of cached frames in a folder of lists.
const FRAMES: &str = "frames";

/// A task whose data are recordings.
pub trait RecordingTask: TaskTypes<Data = RecordingDataSpec<<Self as RecordingTask>::Tokenizer>> {
    /// How the texts of the recordings become labels.
    type Tokenizer: Labels;
}

impl RecordingTask for zoo_recipes::SpeechRecognition {
    type Tokenizer = ClassTokenizerSpec;
}

impl RecordingTask for zoo_recipes::SpeechSynthesis {
    type Tokenizer = SymbolTokenizerSpec;
}

/// Prepared recordings of a recipe.
pub struct RecordingData {
    /// Splits and label classes.
    pub prepared: Arc<PreparedSpeech>,
    /// The folder that the recipe's paths are relative to.
    pub base: PathBuf,
}

impl RecordingData {
    /// Fetches and lists the recordings of all splits, or of the splits of some evaluation sets.
    ///
    /// # Errors
    /// The data cannot be obtained, or it is damaged.
    pub fn prepare(
        ctx: &Context,
        recipe: &RecipeOf<impl RecordingTask>,
        base: &Path,
        sets: Sets<'_>,
    ) -> Result<Self> {
        let splits = match sets {
            Sets::All => split_names(&recipe.data),
            Sets::Evaluation(names) => {
                let sets = names.iter().filter_map(|name| recipe.data.eval.get(*name));
                sets.map(|set| set.split.clone()).collect()
            }
        };
        let prepared = prepare(ctx, &recipe.data, base, &splits)?;
        Ok(Self { prepared: Arc::new(prepared), base: base.to_path_buf() })
    }

    /// For each split, the SHA-256 of everything that training and decoding read from it.
    pub fn fingerprints(&self) -> BTreeMap<String, String> {
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), split.fingerprint())).collect()
    }

    /// For each split, the numbers of utterances that were read, used and skipped.
    pub fn counts(&self) -> BTreeMap<String, SplitCounts> {
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), counts(split))).collect()
    }

    /// Name of the training split.
    ///
    /// # Errors
    /// There is no training split.
    pub fn training_splits(&self) -> Result<Vec<String>> {
        Ok(vec![self.prepared.train()?.name.clone()])
    }

    /// Name of the split of an evaluation set.
    ///
    /// # Errors
    /// The split was not prepared.
    pub fn evaluation_splits<L>(&self, data: &RecordingDataSpec<L>, name: &str) -> Result<Vec<String>> {
        Ok(vec![self.prepared.eval_set(name, &data.eval[name])?.name.clone()])
    }
}

fn counts(split: &SpeechSplit) -> SplitCounts {
    let counts = &split.statistics;
    let named = |fault: &Fault| {
        let name = serde_json::to_value(fault).ok();
        name.as_ref().and_then(|name| name.as_str()).unwrap_or("other").replace('-', " ")
    };
    let mut left_out: BTreeMap<String, u64> =
        counts.skipped.iter().map(|(fault, count)| (named(fault), *count)).collect();
    for (why, count) in [("too short", counts.too_short), ("too long", counts.too_long)] {
        if count > 0 {
            left_out.insert(why.to_owned(), count);
        }
    }
    let amounts = [
        ("seconds", counts.seconds),
        ("shortest, s", counts.shortest_seconds),
        ("longest, s", counts.longest_seconds),
        ("words", counts.words as f64),
        ("labels", counts.labels as f64),
    ];
    SplitCounts {
        read: counts.read,
        kept: counts.utterances,
        left_out,
        amounts: amounts.into_iter().map(|(what, amount)| (what.to_owned(), amount)).collect(),
    }
}

/// Transcripts of an evaluation set.
///
/// # Errors
/// The recordings cannot be obtained.
pub fn references(
    ctx: &Context,
    recipe: &RecipeOf<impl RecordingTask>,
    base: &Path,
    eval: &str,
) -> Result<Vec<String>> {
    let data = RecordingData::prepare(ctx, recipe, base, Sets::Evaluation(&[eval]))?;
    let set = &recipe.data.eval[eval];
    Ok(data.prepared.eval_set(eval, set)?.references_as(set.references).to_vec())
}

/// Path and hash of the manifests that the recipe itself names, and of its own folder. The hash of
/// a manifest covers the state of its recordings.
///
/// # Errors
/// A manifest cannot be read.
pub fn own_files<L>(data: &RecordingDataSpec<L>, base: &Path) -> Result<Vec<(String, String)>> {
    let mut stamps = Vec::new();
    if let RecordingReaderSpec::AudioManifest(spec) = &data.reader {
        for file in spec.files.values().map(|file| base.join(file)) {
            stamps.push((file.display().to_string(), manifest_stamp(&file)?));
        }
    }
    stamps.extend(own_folder_stamp(data, base)?);
    Ok(stamps)
}

/// Number of lines in the training manifest that the recipe itself names.
///
/// # Errors
/// The manifest cannot be read.
pub fn own_examples<L>(data: &RecordingDataSpec<L>, base: &Path) -> Result<Option<usize>> {
    let RecordingReaderSpec::AudioManifest(AudioManifestSpec { join: None, files, .. }) = &data.reader else {
        return Ok(None);
    };
    let file = files.get(data.training());
    file.map(|file| Ok(lines::read(&base.join(file))?.len())).transpose()
}

/// Description of the numbers of generated utterances; `None` if the recipe does not generate them.
pub fn generated<L>(data: &RecordingDataSpec<L>) -> Option<String> {
    let RecordingReaderSpec::Tones(spec) = &data.reader else { return None };
    let (train, valid, test) = (spec.train, spec.valid, spec.test);
    Some(format!("{train} training, {valid} validation, {test} test utterances"))
}

/// Folder of the lists of a recipe's recordings, whether it exists or not.
pub fn folder<L>(ctx: &Context, data: &RecordingDataSpec<L>, base: &Path) -> PathBuf {
    let corpus = data.corpus.as_deref().filter(|name| !name.is_empty());
    let folder = match (corpus, &data.reader) {
        (None, RecordingReaderSpec::AudioManifest(spec)) => {
            // The lists of a recipe's own recordings are cached under a key of their paths.
            let paths: Vec<_> = spec.files.values().map(|file| base.join(file)).collect();
            let paths = hex::encode(Sha256::digest(format!("{paths:?}")));
            format!("own-recordings-{}", &paths[..12])
        }
        (Some(corpus), RecordingReaderSpec::AudioManifest(AudioManifestSpec { folder: Some(own), .. })) => {
            let path = hex::encode(Sha256::digest(format!("{:?}", base.join(own))));
            format!("{corpus}-own-{}", &path[..12])
        }
        _ => format!("{}-recordings", corpus.unwrap_or("generated")),
    };
    // A share of the recordings has its own list.
    let folder = match data.share {
        Some(share) => format!("{folder}-first-{}-{}", share.train, share.eval),
        None => folder,
    };
    ctx.prepared_dir().join(folder)
}

/// Compares the lists and the cached frames of a folder with the digests in them. `None` if the
/// folder has none.
pub fn check_prepared(folder: &Path) -> Option<Vec<(PathBuf, Result<()>)>> {
    let is_list = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = |folder: &Path| -> Vec<PathBuf> {
        let files = entries(folder).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let named = files.filter(|entry| !is_temporary(&entry.file_name().to_string_lossy()));
        named.map(|entry| entry.path()).collect()
    };
    let lists = files(folder).into_iter().filter(is_list).map(|list| (speech::check_list(&list), list));
    let frames = entries(&folder.join(FRAMES)).flat_map(|entry| files(&entry.path()));
    let frames = frames.map(|file| (speech::check_frames(&file), file));
    let mut checked: Vec<(PathBuf, Result<()>)> =
        lists.chain(frames).map(|(result, path)| (path, result.map_err(Failure::from))).collect();
    checked.sort_by(|(one, _), (other, _)| one.cmp(other));
    (!checked.is_empty()).then_some(checked)
}

fn prepare<L: Labels>(
    ctx: &Context,
    data: &RecordingDataSpec<L>,
    base: &Path,
    splits: &BTreeSet<String>,
) -> Result<PreparedSpeech> {
    let corpus = data.corpus.as_deref().filter(|name| !name.is_empty());
    let folder = folder(ctx, data, base);
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
