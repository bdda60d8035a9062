//! Prepared data of a recipe's utterances. The sound stays in its files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use zoo_recipes::{FeaturesSpec, RecordingSetSpec, References};

use super::classes::Classes;
use super::error::{Fault, Skipped, SpeechError};
use super::source::Sounds;
use crate::audio::FrontEnd;
use crate::set_size::SetSizeError;

/// All splits of a speech recipe.
#[derive(Debug)]
pub struct PreparedSpeech {
    /// The classes of a frame.
    pub classes: Arc<Classes>,
    /// The front end's settings.
    pub features: FeaturesSpec,
    /// Sample rate in hertz.
    pub sample_rate_hz: u32,
    /// Whether a recording that cannot be used is an error in training, too.
    pub strict: bool,
    /// Name of the training split.
    pub training: String,
    /// The splits by name.
    pub splits: BTreeMap<String, Arc<SpeechSplit>>,
    pub(super) front_end: FrontEnd,
    /// Folder of the cache for frames that a synthesiser learns to predict.
    pub(super) frames: Option<PathBuf>,
}

/// One split.
#[derive(Debug)]
pub struct SpeechSplit {
    /// Name of the split.
    pub name: String,
    /// Utterances of the split.
    pub utterances: Vec<Utterance>,
    /// Transcript of each utterance in the form for labelling: normalised, with single spaces
    /// between words; for synthesis, as its tokenizer cleans it.
    pub references: Vec<String>,
    /// Transcript of each utterance as it was read; empty for the training split.
    pub raw: Vec<String>,
    /// Statistics of the split.
    pub statistics: SpeechStatistics,
    /// The first hundred utterances that cannot be used; [`SpeechStatistics::skipped`] counts all.
    pub skipped: Vec<Skipped>,
    pub(super) sounds: Sounds,
    pub(super) classes: Arc<Classes>,
}

/// Data of one utterance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Name of the utterance: that of its file in the corpus or the manifest, or else its number.
    pub id: Box<str>,
    /// Number of samples before any change of speed.
    pub samples: u64,
    pub(super) parts: Parts,
}

/// The recordings of a split that form an utterance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parts {
    One(u32),
    Several(Box<[u32]>),
}

/// Statistics of a split.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SpeechStatistics {
    /// Number of utterances that were named or generated.
    pub read: u64,
    /// Number of unusable utterances, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<Fault, u64>,
    /// Number of training utterances below `data.filter.min_seconds`.
    pub too_short: u64,
    /// Number of training utterances above `data.filter.max_seconds`.
    pub too_long: u64,
    /// Number of utterances kept.
    pub utterances: u64,
    /// Total duration in seconds of the utterances kept, before any change of speed.
    pub seconds: f64,
    /// Duration in seconds of the shortest utterance kept.
    pub shortest_seconds: f64,
    /// Duration in seconds of the longest utterance kept.
    pub longest_seconds: f64,
    /// Number of words in the references.
    pub words: u64,
    /// Number of labels of the references.
    pub labels: u64,
}

impl PreparedSpeech {
    /// The training split.
    ///
    /// # Errors
    /// [`SpeechError::MissingSplit`].
    pub fn train(&self) -> Result<&Arc<SpeechSplit>, SpeechError> {
        self.split(&self.training, "training")
    }

    /// A split by name. `user` is the setting that needs it, for the message.
    ///
    /// # Errors
    /// [`SpeechError::MissingSplit`].
    pub fn split(&self, name: &str, user: &str) -> Result<&Arc<SpeechSplit>, SpeechError> {
        self.splits.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.splits.keys().map(String::as_str).collect();
            SpeechError::MissingSplit { split: name.into(), user: user.into(), known: known.join(", ") }
        })
    }

    /// The split of the evaluation set `name`, checked for the numbers of utterances and words that
    /// `spec` states.
    ///
    /// # Errors
    /// [`SpeechError::MissingSplit`], [`SpeechError::EvalSet`].
    pub fn eval_set(&self, name: &str, spec: &RecordingSetSpec) -> Result<&Arc<SpeechSplit>, SpeechError> {
        if spec.split == self.training {
            let hint = "give the evaluation set a split of its own";
            return Err(SpeechError::recipe(format!("eval.{name}.split"), "it is trained on", hint));
        }
        let split = self.split(&spec.split, &format!("data.eval.{name}"))?;
        let due = |what, found, expected| SetSizeError::check((name, &split.name), what, found, expected);
        due("utterances", split.utterances.len(), spec.lines)?;
        if let Some(expected) = spec.reference_tokens {
            let words = |line: &String| line.split_whitespace().count();
            due("reference words", split.references_as(spec.references).iter().map(words).sum(), expected)?;
        }
        Ok(split)
    }

    /// The front end that computes the frames.
    pub fn front_end(&self) -> &FrontEnd {
        &self.front_end
    }
}

impl SpeechSplit {
    /// Number of utterances.
    pub fn len(&self) -> usize {
        self.utterances.len()
    }

    /// Whether there are no utterances.
    pub fn is_empty(&self) -> bool {
        self.utterances.is_empty()
    }

    /// The labels of an utterance; empty if there is no such utterance.
    pub fn labels(&self, utterance: u32) -> Vec<u32> {
        let text = self.references.get(utterance as usize);
        // Text without labels was left out when the split was made.
        text.and_then(|text| self.classes.labels_of_normalized(text).ok()).unwrap_or_default()
    }

    /// The references for scoring an evaluation set. `raw` is not stored for `train`.
    pub fn references_as(&self, references: References) -> &[String] {
        match references {
            References::Normalized => &self.references,
            References::Raw => &self.raw,
        }
    }

    /// The files of an utterance; empty if it is generated.
    pub fn files(&self, utterance: &Utterance) -> Vec<PathBuf> {
        utterance.parts.places().iter().filter_map(|place| self.sounds.file(*place)).collect()
    }

    /// SHA-256 over name, length and text of every utterance in order. It identifies the inputs of
    /// training and decoding, except the sound itself.
    pub fn fingerprint(&self) -> String {
        let mut sha256 = Sha256::new();
        for (utterance, text) in self.utterances.iter().zip(&self.references) {
            sha256.update(utterance.samples.to_le_bytes());
            for text in [&*utterance.id, text.as_str()] {
                sha256.update((text.len() as u64).to_le_bytes());
                sha256.update(text);
            }
        }
        hex::encode(sha256.finalize())
    }
}

impl Parts {
    pub fn places(&self) -> &[u32] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }
}
