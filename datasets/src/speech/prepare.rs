//! Prepares the splits of a recipe's `[data]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use zoo_recipes::{AudioManifestSpec, FeaturesSpec, RecordingDataSpec, RecordingReaderSpec};

use super::classes::{Classes, Labels};
use super::error::SpeechError;
use super::listing::{Candidate, Listing, Origin};
use super::prepared::{PreparedSpeech, SpeechSplit};
use super::source::Recordings;
use super::splits::{Judge, whole};
use super::{manifest, own, recordings, tones};
use crate::audio::FrontEnd;
use crate::corpora::FetchedCorpus;

/// A step of the preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeechStep<'a> {
    /// Makes a split from its stored list or from tones.
    Split(&'a str),
    /// Checks the recordings of a split for the first time: (split, recordings done, recordings in
    /// total).
    List(&'a str, usize, usize),
}

/// Paths and progress callback for [`prepare`].
#[derive(Clone, Copy)]
pub struct SpeechPlace<'a> {
    /// The folder that the recipe's paths are relative to.
    pub base: &'a Path,
    /// Called at every step.
    pub progress: &'a dyn Fn(SpeechStep<'_>),
}

/// Prepares some splits of `data`: all that it uses ([`crate::readers::split_names`]), or those to
/// be scored. Every recording is checked once. The lists of recordings are stored in `folder`, and
/// verified when they are read again. A list is made again if the recordings differ (another digest
/// of the corpus or of the manifest). No other part of the recipe affects it, so recipes may share
/// a folder.
///
/// `fetch` fetches the corpus that the recipe names, with these splits. Unlike for text, it is
/// called every time, because training reads the recordings themselves.
///
/// # Errors
/// See [`SpeechError`]. No incomplete list is left behind.
pub fn prepare<L: Labels, E: From<SpeechError>>(
    folder: &Path,
    data: &RecordingDataSpec<L>,
    place: SpeechPlace<'_>,
    splits: &BTreeSet<String>,
    fetch: impl FnOnce() -> Result<Option<FetchedCorpus>, E>,
) -> Result<PreparedSpeech, E> {
    let preparing = Preparing::new(folder, data, place)?;
    let corpus = match &data.reader {
        RecordingReaderSpec::AudioManifest(AudioManifestSpec { folder: Some(own), .. }) => {
            Some(own::corpus(data, &place.base.join(own), splits)?)
        }
        RecordingReaderSpec::AudioManifest(spec) if spec.files.is_empty() => fetch()?,
        RecordingReaderSpec::AudioManifest(_) | RecordingReaderSpec::Tones(_) => None,
    };
    Ok(preparing.all(splits, corpus.as_ref())?)
}

struct Preparing<'a, L> {
    folder: &'a Path,
    data: &'a RecordingDataSpec<L>,
    place: SpeechPlace<'a>,
    classes: Arc<Classes>,
    front_end: FrontEnd,
}

impl<'a, L: Labels> Preparing<'a, L> {
    fn new(
        folder: &'a Path,
        data: &'a RecordingDataSpec<L>,
        place: SpeechPlace<'a>,
    ) -> Result<Self, SpeechError> {
        let front_end = FrontEnd::new(&data.features, data.reader.sample_rate_hz())?;
        Ok(Self { folder, data, place, classes: Arc::new(data.tokenizer.classes()?), front_end })
    }

    fn all(
        self,
        wanted: &BTreeSet<String>,
        corpus: Option<&FetchedCorpus>,
    ) -> Result<PreparedSpeech, SpeechError> {
        let strict = matches!(&self.data.reader, RecordingReaderSpec::AudioManifest(spec) if spec.strict);
        let mut splits = BTreeMap::new();
        for name in wanted {
            (self.place.progress)(SpeechStep::Split(name));
            let judge = Judge::new(name, self.data, &self.classes, &self.front_end, strict);
            let split = match &self.data.reader {
                RecordingReaderSpec::Tones(spec) => {
                    let known = || Some(tones::SPLITS.map(String::from).join(", "));
                    judge.tones(spec)?.ok_or_else(|| self.missing(name, known()))?
                }
                RecordingReaderSpec::AudioManifest(spec) => self.recordings(spec, &judge, corpus)?,
            };
            splits.insert(name.clone(), Arc::new(split));
        }
        let targets = matches!(self.data.features, FeaturesSpec::Tacotron { .. });
        let prepared = PreparedSpeech {
            frames: targets.then(|| self.folder.join("frames")),
            classes: self.classes,
            features: self.data.features.clone(),
            sample_rate_hz: self.front_end.rate(),
            strict,
            training: self.data.training().to_string(),
            splits,
            front_end: self.front_end,
        };
        let sets = self.data.eval.iter().filter(|(_, set)| wanted.contains(&set.split));
        sets.into_iter().try_for_each(|(name, spec)| prepared.eval_set(name, spec).map(|_| ()))?;
        Ok(prepared)
    }

    fn recordings(
        &self,
        spec: &AudioManifestSpec,
        judge: &Judge<'_>,
        corpus: Option<&FetchedCorpus>,
    ) -> Result<SpeechSplit, SpeechError> {
        let split = judge.split;
        let file = self.folder.join(format!("{}.jsonl", file_stem(split)?));
        let mut found = match (spec.files.get(split), corpus) {
            (Some(manifest), _) => Found::in_manifest(&self.place.base.join(manifest))?,
            (None, Some(corpus)) => Found::in_corpus(corpus, split, spec)?,
            (None, None) => {
                let known: Vec<&str> = spec.files.keys().map(String::as_str).collect();
                return Err(self.missing(split, Some(known.join(", "))));
            }
        };
        // With `join`, the limit applies to joined utterances, which are made from all recordings.
        let most = self.data.most_of(split).filter(|_| spec.join.is_none());
        if let Some(most) = most {
            found.settings["first"] = json!(most);
        }
        let origin = Origin {
            split,
            rate: spec.sample_rate_hz,
            roots: &found.roots,
            whole: whole(split == self.data.training(), spec.strict),
            settings: found.settings,
        };
        let listing = match Listing::load(&file, &origin)? {
            Some(listing) => listing,
            None => {
                let told = |done, total| (self.place.progress)(SpeechStep::List(split, done, total));
                let mut candidates = (found.candidates)()?;
                candidates.truncate(most.unwrap_or(usize::MAX));
                let listing = Listing::make(candidates, &origin, &told)?;
                listing.save(&file, &origin)?;
                listing
            }
        };
        let gap_ms = spec.join.as_ref().map_or(0.0, |join| join.gap_ms);
        let sounds = Recordings {
            gap: (gap_ms / 1000.0 * f64::from(spec.sample_rate_hz)).round() as usize,
            roots: found.roots,
            files: Vec::new(),
            rate: spec.sample_rate_hz,
            listing: file,
        };
        judge.recordings(listing, spec.join.as_ref(), sounds)
    }

    fn missing(&self, split: &str, known: Option<String>) -> SpeechError {
        let users = self.data.eval.iter().filter(|(_, set)| set.split == split);
        let user = users.map(|(name, _)| format!("data.eval.{name}")).next().unwrap_or("training".into());
        let known = known.filter(|known| !known.is_empty()).unwrap_or("none".into());
        SpeechError::MissingSplit { split: split.into(), user, known }
    }
}

/// Source of a split's recordings. They are searched for only if they are not listed yet.
struct Found<'a> {
    roots: Vec<PathBuf>,
    settings: serde_json::Value,
    candidates: Box<dyn FnOnce() -> Result<Vec<Candidate>, SpeechError> + 'a>,
}

impl<'a> Found<'a> {
    fn in_manifest(file: &Path) -> Result<Self, SpeechError> {
        let stamp = manifest::stamp(file)?;
        let root = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let file = file.to_path_buf();
        Ok(Self {
            // The same manifest in another folder refers to other recordings, since its paths are
            // relative.
            settings: json!({"manifest": stamp, "folder": root.to_string_lossy()}),
            roots: vec![root],
            candidates: Box::new(move || manifest::read(&file)),
        })
    }

    fn in_corpus(
        corpus: &'a FetchedCorpus,
        name: &'a str,
        spec: &AudioManifestSpec,
    ) -> Result<Self, SpeechError> {
        let split = corpus.split(name)?;
        let Some(recordings) = &split.recordings else {
            let known = corpus.splits.values().filter(|split| split.recordings.is_some());
            let known: Vec<&str> = known.map(|split| split.name.as_str()).collect();
            let known = if known.is_empty() { "of text".into() } else { known.join(", ") };
            return Err(SpeechError::MissingSplit { split: name.into(), user: "data.corpus".into(), known });
        };
        let files = recordings.definition.folders.iter().map(|folder| folder.file.as_str());
        let digests: BTreeMap<&str, Option<&str>> = files
            .map(|file| (file, corpus.fingerprints.get(file).map(|print| print.sha256.as_str())))
            .collect();
        let mut settings = json!({
            "corpus": corpus.name, "files": digests, "recordings": recordings.definition, "lines": split.lines,
        });
        if let Some(transcript) = spec.transcript {
            settings["transcript"] = json!(transcript);
        }
        if spec.folder.is_some() {
            settings["folder"] =
                json!({"of": recordings.folders, "state": own::state(recordings, spec.transcript)?});
        }
        let transcript = spec.transcript;
        Ok(Self {
            roots: recordings.folders.clone(),
            settings,
            candidates: Box::new(move || {
                let found = recordings::find(recordings, transcript)?;
                match split.lines {
                    Some(expected) if expected != found.len() as u64 => Err(SpeechError::Recordings {
                        split: name.into(),
                        found: found.len() as u64,
                        expected,
                    }),
                    _ => Ok(found),
                }
            }),
        })
    }
}

/// Checks that a split's name is valid as the file name of its list.
fn file_stem(split: &str) -> Result<&str, SpeechError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match split.is_empty() || split.starts_with('.') || !split.chars().all(plain) {
        true => Err(SpeechError::recipe(
            format!("reader.files.{split}"),
            "a split's name is letters, digits, `_`, `-` and `.`, and does not begin with `.`",
            "rename the split",
        )),
        false => Ok(split),
    }
}
