//! Prepared data on disk: written atomically, verified when read.
//!
//! A folder has `manifest.jsonl`, `codes` or SentencePiece models, the vocabularies, and for each
//! split its text in tokens, its references and its ids. The manifest holds the settings, the
//! statistics and the SHA-256 of every other file; its second line holds its own SHA-256.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zoo_recipes::TextTokenizerSpec;
use zoo_recipes::atomic::write_whole;
use zoo_recipes::tasks::translation::TextDataSpec;
use zoo_recipes::untrusted;

use super::build::{Built, build};
use super::error::PrepareError;
use super::pieces::Pieces;
use super::pipeline::{Segmenter, TextPipeline, Treatment};
use super::prepared::{PrepareOptions, PreparedSplit, PreparedTranslation, SplitReferences, SplitStatistics};
use super::sequences::read_ids;
use super::surroundings::{CODES, PrepareStep, Surroundings, model_file, vocabulary_file};
use crate::corpora::{CorpusDefinition, FetchedCorpus, Preparation};
use crate::fetch::sha256_file;
use crate::readers::{PairReader, SplitText};
use crate::tasks::translation::{PairSplit, open_split, pair_splits};
use crate::temporary::{PREPARING, TemporaryFolder};
use crate::text::bpe::Codes;
use crate::text::sentencepiece::SentencePiece;
use crate::text::vocabulary::Vocabulary;

const MANIFEST: &str = "manifest.jsonl";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    settings: Value,
    splits: BTreeMap<String, SplitStatistics>,
    /// SHA-256 of each file.
    files: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestDigest {
    sha256: String,
}

/// The preparation of the corpus that `data` names. `None` if it does not name a built-in corpus.
fn preparation_of(data: &TextDataSpec) -> Option<Preparation> {
    CorpusDefinition::find(data.corpus.as_deref()?).ok()?.preparation
}

/// Loads the prepared data in `folder`. If there is none, prepares `text` and writes it to
/// `folder`. The caller names the folder after everything that the text depends on; the settings
/// are compared.
///
/// All text is in memory, by [`PairSplit::name`]. A model's path is relative to the current folder.
/// For large corpora see [`prepare_from_files`].
///
/// # Errors
/// See [`PrepareError`]. Nothing is left behind.
pub fn prepare_cached<E: From<PrepareError>>(
    folder: &Path,
    data: &TextDataSpec,
    options: PrepareOptions,
    read: impl FnOnce() -> Result<BTreeMap<String, SplitText>, E>,
) -> Result<PreparedTranslation, E> {
    let preparation = preparation_of(data);
    let surroundings =
        Surroundings { base: Path::new(""), preparation: preparation.as_ref(), progress: &|_| () };
    if folder.exists() {
        return Ok(load_from(folder, data, options, &surroundings)?);
    }
    let mut splits = read()?;
    for (name, text) in &splits {
        if text.source.len() != text.target.len() {
            let (source_lines, target_lines) = (text.source.len(), text.target.len());
            let split = name.clone();
            return Err(PrepareError::LineCounts { split, source_lines, target_lines }.into());
        }
    }
    let known = pair_splits(data);
    let of_name = |name: &String| {
        let known = known.iter().find(|split| split.name() == name).cloned();
        known.unwrap_or_else(|| PairSplit::new(name, &data.reader.targets(), 0))
    };
    let names: Vec<PairSplit> = splits.keys().map(of_name).collect();
    let mut open = |split: &PairSplit| Ok(PairReader::of(splits.remove(split.name()).unwrap_or_default()));
    Ok(prepare_into(folder, data, options, &surroundings, &names, &mut open)?)
}

/// Paths, corpus and progress callback for [`prepare_from_files`].
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The folder that the recipe's paths are relative to.
    pub base: &'a Path,
    /// The corpus that the recipe names.
    pub definition: Option<&'a CorpusDefinition>,
    /// Called at the beginning of every step.
    pub progress: &'a dyn Fn(PrepareStep<'_>),
}

/// Loads the prepared data in `folder`. If there is none, reads the text from its files, prepares
/// it and writes it to `folder`. For a corpus of any size, memory holds only its words with their
/// counts, and at the end its ids.
///
/// `fetch` fetches the corpus. It is called only if there is something to prepare.
///
/// # Errors
/// See [`PrepareError`]. Nothing is left behind.
pub fn prepare_from_files<E: From<PrepareError>>(
    folder: &Path,
    data: &TextDataSpec,
    options: PrepareOptions,
    place: Place<'_>,
    fetch: impl FnOnce() -> Result<Option<FetchedCorpus>, E>,
) -> Result<PreparedTranslation, E> {
    let preparation = place.definition.and_then(|definition| definition.preparation.as_ref());
    let surroundings = Surroundings { base: place.base, preparation, progress: place.progress };
    if folder.exists() {
        return Ok(load_from(folder, data, options, &surroundings)?);
    }
    let corpus = fetch()?;
    let names: Vec<PairSplit> = pair_splits(data).into_iter().collect();
    let mut open = |split: &PairSplit| Ok(open_split(data, place.base, corpus.as_ref(), split)?);
    Ok(prepare_into(folder, data, options, &surroundings, &names, &mut open)?)
}

/// Prepares in a temporary folder beside `folder`, which is then renamed to it.
fn prepare_into(
    folder: &Path,
    data: &TextDataSpec,
    options: PrepareOptions,
    surroundings: &Surroundings<'_>,
    names: &[PairSplit],
    open: &mut dyn FnMut(&PairSplit) -> Result<PairReader, PrepareError>,
) -> Result<PreparedTranslation, PrepareError> {
    let parent = folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(PrepareError::io(parent))?;
    let temporary = TemporaryFolder::new_in(parent, PREPARING).map_err(PrepareError::io(parent))?;
    let settings = surroundings.settings(data, options)?;
    let built = build(temporary.path(), data, options, surroundings, names, open)?;
    write_manifest(temporary.path(), settings, built)?;
    (surroundings.progress)(PrepareStep::Load);
    // Load the data before the rename, so that a wrong evaluation set leaves nothing behind.
    let prepared = load_from(temporary.path(), data, options, surroundings)?;
    match temporary.rename(folder) {
        Ok(()) => Ok(prepared),
        // Another process finished first; its output is the same.
        Err(_) if folder.join(MANIFEST).exists() => Ok(prepared),
        Err(error) => Err(PrepareError::io(folder)(error)),
    }
}

fn write_manifest(folder: &Path, settings: Value, built: Built) -> Result<(), PrepareError> {
    let manifest = Manifest { format: FORMAT, settings, splits: built.splits, files: built.files };
    let first = serde_json::to_string(&manifest).expect("a manifest is plain data");
    let digest = ManifestDigest { sha256: hex::encode(Sha256::digest(first.as_bytes())) };
    let second = serde_json::to_string(&digest).expect("a digest is plain data");
    let file = folder.join(MANIFEST);
    write_whole(&file, format!("{first}\n{second}\n").as_bytes()).map_err(PrepareError::io(&file))
}

/// Loads a prepared folder. Every file is checked against its digest, and an error names the file
/// that differs. A model's path is relative to the current folder.
///
/// # Errors
/// A file is damaged, or the folder was made with other settings.
pub fn load(
    folder: &Path,
    data: &TextDataSpec,
    options: PrepareOptions,
) -> Result<PreparedTranslation, PrepareError> {
    let preparation = preparation_of(data);
    let surroundings =
        Surroundings { base: Path::new(""), preparation: preparation.as_ref(), progress: &|_| () };
    load_from(folder, data, options, &surroundings)
}

fn load_from(
    folder: &Path,
    data: &TextDataSpec,
    options: PrepareOptions,
    surroundings: &Surroundings<'_>,
) -> Result<PreparedTranslation, PrepareError> {
    let folder = Folder { path: folder };
    let manifest = folder.manifest()?;
    let expected = surroundings.settings(data, options)?;
    if manifest.settings != expected {
        let differs = |(key, value): &(&String, &Value)| manifest.settings.get(key.as_str()) != Some(value);
        let what = expected.as_object().into_iter().flatten().find(differs).map_or("keys", |(key, _)| key);
        return Err(PrepareError::OtherSettings { folder: folder.path.into(), what: what.into() });
    }
    let mut unread = manifest.files.clone();
    let mut due = |name: &str| {
        unread.remove(name).ok_or_else(|| folder.damaged(MANIFEST, format!("it does not list `{name}`")))
    };
    let begin = (data.begin_token_in_source, options.begin_token_in_target);
    let pipeline = folder.pipeline(&manifest.files, data, begin, &mut due)?;

    let training: Vec<String> =
        pair_splits(data).iter().filter(|split| split.is_train()).map(|split| split.name().into()).collect();
    let mut splits = BTreeMap::new();
    for (name, statistics) in manifest.splits {
        let ids = format!("{name}.ids");
        let rows = (pipeline.source.len() as u32, pipeline.target.len() as u32);
        let (source, target, lines) = folder.ids(&ids, &due(&ids)?, rows)?;
        let references = if training.contains(&name) {
            None
        } else {
            let mut lines_of = |kind: &str| -> Result<Vec<String>, PrepareError> {
                let file_name = format!("{name}.{kind}");
                let text = folder.text(&file_name, &due(&file_name)?)?;
                Ok(text.split_terminator('\n').map(String::from).collect())
            };
            Some(SplitReferences { raw: lines_of("raw")?, normalized: lines_of("normalized")? })
        };
        let split = PreparedSplit { name: name.clone(), source, target, lines, references, statistics };
        splits.insert(name, Arc::new(split));
    }
    // Files that are not used here and exist for inspection.
    for (name, digest) in unread {
        folder.check(&name, &digest)?;
    }
    let targets = data.reader.targets().into_iter().map(String::from).collect();
    let prepared = PreparedTranslation { pipeline, targets, splits };
    prepared.check_eval_sets(data)?;
    Ok(prepared)
}

/// Reads every file of a prepared folder and compares it with the digest in the manifest. `None` if
/// the folder has no manifest.
pub fn check_files(folder: &Path) -> Option<Vec<(PathBuf, Result<(), PrepareError>)>> {
    let of = Folder { path: folder };
    let file = folder.join(MANIFEST);
    if !file.is_file() {
        return None;
    }
    let manifest = match of.manifest() {
        Ok(manifest) => manifest,
        Err(error) => return Some(vec![(file, Err(error))]),
    };
    let checked = manifest.files.iter().map(|(name, digest)| (folder.join(name), of.check(name, digest)));
    Some([(file, Ok(()))].into_iter().chain(checked).collect())
}

/// A folder with prepared data, or with the pipeline alone.
pub(super) struct Folder<'p> {
    pub path: &'p Path,
}

impl Folder<'_> {
    fn damaged(&self, name: &str, problem: impl Into<String>) -> PrepareError {
        PrepareError::Damaged {
            file: self.path.join(name),
            problem: problem.into(),
            folder: self.path.into(),
        }
    }

    /// The pipeline that the files of the folder give. `files` has their digests by name, `due` gives
    /// and ticks off the digest of one.
    pub(super) fn pipeline(
        &self,
        files: &BTreeMap<String, String>,
        data: &TextDataSpec,
        begin: (bool, bool),
        due: &mut dyn FnMut(&str) -> Result<String, PrepareError>,
    ) -> Result<TextPipeline, PrepareError> {
        let treatment = Treatment::of(data, None)?;
        let segmenter = match &data.tokenizer {
            TextTokenizerSpec::SentencePiece { specials, pieces, model, .. } => {
                // A model that was learnt on a share of the text may have fewer pieces.
                let pieces = (data.share.is_none() || model.is_some()).then_some(*pieces);
                let joined = files.contains_key(&model_file(true, ""));
                let mut model = |side| -> Result<Arc<Pieces>, PrepareError> {
                    let name = model_file(joined, side);
                    let (file, bytes) = (self.path.join(&name), self.read(&name, &due(&name)?)?);
                    let model = SentencePiece::parse(bytes, &file)?;
                    Ok(Arc::new(Pieces::new(model, *specials, pieces, &file)?))
                };
                let source = model("source")?;
                let target = if joined { source.clone() } else { model("target")? };
                let vocabularies = (source.vocabulary().clone(), target.vocabulary().clone());
                let segmenter = Segmenter::SentencePiece { source, target };
                return Ok(TextPipeline::new(treatment, segmenter, vocabularies, begin));
            }
            TextTokenizerSpec::SubwordNmt { .. } => {
                let text = self.text(CODES, &due(CODES)?)?;
                Segmenter::subword_nmt(Codes::parse(&text, &self.path.join(CODES))?)
            }
            TextTokenizerSpec::Words { .. } => Segmenter::Words,
        };
        let joined = files.contains_key(&vocabulary_file(true, ""));
        let mut vocabulary = |side| -> Result<Arc<Vocabulary>, PrepareError> {
            let name = vocabulary_file(joined, side);
            let text = self.text(&name, &due(&name)?)?;
            Ok(Arc::new(Vocabulary::parse(&text, &self.path.join(&name))?))
        };
        let source = vocabulary("source")?;
        let target = if joined { source.clone() } else { vocabulary("target")? };
        Ok(TextPipeline::new(treatment, segmenter, (source, target), begin))
    }

    fn ids(&self, name: &str, digest: &str, rows: (u32, u32)) -> Result<super::sequences::Ids, PrepareError> {
        let path = self.path.join(name);
        let damaged = |e: std::io::Error| self.damaged(name, e.to_string());
        let file = File::open(&path).map_err(damaged)?;
        let length = file.metadata().map_err(damaged)?.len();
        let mut sha256 = Sha256::new();
        let mut tee = Tee { inner: file, sha256: &mut sha256 };
        let ids = read_ids(&mut tee, length, rows).map_err(damaged)?;
        self.compare(name, digest, &hex::encode(sha256.finalize()))?;
        Ok(ids)
    }

    fn compare(&self, name: &str, due: &str, found: &str) -> Result<(), PrepareError> {
        match due == found {
            true => Ok(()),
            false => Err(self.damaged(name, format!("its SHA-256 is {found}, not {due}"))),
        }
    }

    fn check(&self, name: &str, digest: &str) -> Result<(), PrepareError> {
        let path: PathBuf = self.path.join(name);
        let found = sha256_file(&path).map_err(|e| self.damaged(name, e.to_string()))?;
        self.compare(name, digest, &found)
    }

    fn read(&self, name: &str, digest: &str) -> Result<Vec<u8>, PrepareError> {
        let bytes = untrusted::read(&self.path.join(name)).map_err(|e| self.damaged(name, e.to_string()))?;
        self.compare(name, digest, &hex::encode(Sha256::digest(&bytes)))?;
        Ok(bytes)
    }

    fn text(&self, name: &str, digest: &str) -> Result<String, PrepareError> {
        let bytes = self.read(name, digest)?;
        Ok(crate::text::decode_utf8(bytes, &self.path.join(name))?)
    }

    fn manifest(&self) -> Result<Manifest, PrepareError> {
        let file = self.path.join(MANIFEST);
        let bytes = std::fs::read(&file).map_err(|e| self.damaged(MANIFEST, e.to_string()))?;
        let text = crate::text::decode_utf8(bytes, &file)?;
        let mut lines = text.split_terminator('\n');
        let (Some(first), Some(second), None) = (lines.next(), lines.next(), lines.next()) else {
            return Err(self.damaged(MANIFEST, "it does not have two lines"));
        };
        let digest: ManifestDigest =
            serde_json::from_str(second).map_err(|e| self.damaged(MANIFEST, format!("line 2: {e}")))?;
        if digest.sha256 != hex::encode(Sha256::digest(first.as_bytes())) {
            return Err(self.damaged(MANIFEST, "its first line does not have the SHA-256 of its second"));
        }
        let value: Value =
            serde_json::from_str(first).map_err(|e| self.damaged(MANIFEST, format!("line 1: {e}")))?;
        if value["format"] != json!(FORMAT) {
            let what = format!("format {}, this version reads {FORMAT}", value["format"]);
            return Err(PrepareError::OtherSettings { folder: self.path.into(), what });
        }
        serde_json::from_value(value).map_err(|e| self.damaged(MANIFEST, format!("line 1: {e}")))
    }
}

/// A reader that digests its bytes.
struct Tee<'s> {
    inner: File,
    sha256: &'s mut Sha256,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.sha256.update(&buffer[..n]);
        Ok(n)
    }
}
