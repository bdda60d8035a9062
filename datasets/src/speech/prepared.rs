//! What is known of the utterances of a recipe; their sound stays in its files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use zoo_recipes::{EvalSetSpec, FeaturesSpec, References};

use super::classes::Classes;
use super::error::{Fault, Skipped, SpeechError};
use super::source::Sounds;
use crate::audio::FrontEnd;

/// All splits of a recipe of speech.
#[derive(Debug)]
pub struct PreparedSpeech {
    /// The classes of a frame.
    pub classes: Arc<Classes>,
    /// How recordings become frames.
    pub features: FeaturesSpec,
    /// Samples a second.
    pub sample_rate_hz: u32,
    /// A recording that cannot be used is an error in training, too.
    pub strict: bool,
    /// Name of the split that is trained on.
    pub training: String,
    /// The splits by name.
    pub splits: BTreeMap<String, Arc<SpeechSplit>>,
    pub(super) front_end: FrontEnd,
    /// Where frames that a synthesiser is to write may be kept.
    pub(super) frames: Option<PathBuf>,
}

/// One split.
#[derive(Debug)]
pub struct SpeechSplit {
    /// Its name.
    pub name: String,
    /// Its utterances.
    pub utterances: Vec<Utterance>,
    /// What is said in each, as it is labelled: normalised, single spaces between words; what is to be spoken, as its tokenizer cleans it.
    pub references: Vec<String>,
    /// The same as it is written where it was read; empty for the one that is trained on.
    pub raw: Vec<String>,
    /// Counts.
    pub statistics: SpeechStatistics,
    /// Utterances that cannot be used, the first hundred of them; [`SpeechStatistics::skipped`] counts all.
    pub skipped: Vec<Skipped>,
    pub(super) sounds: Sounds,
    pub(super) classes: Arc<Classes>,
}

/// What is known of an utterance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Its name: of its file, as the corpus or the manifest has it; else its number.
    pub id: Box<str>,
    /// Samples, before any change of speed.
    pub samples: u64,
    pub(super) parts: Parts,
}

/// Which sounds of a split an utterance is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parts {
    One(u32),
    Several(Box<[u32]>),
}

/// Counts of a split.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SpeechStatistics {
    /// Utterances that were named or generated.
    pub read: u64,
    /// Those that cannot be used, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<Fault, u64>,
    /// Training utterances below `data.filter.min_seconds`.
    pub too_short: u64,
    /// Training utterances above `data.filter.max_seconds`.
    pub too_long: u64,
    /// Utterances kept.
    pub utterances: u64,
    /// Seconds of the utterances kept, before any change of speed.
    pub seconds: f64,
    /// The shortest of them.
    pub shortest_seconds: f64,
    /// The longest of them.
    pub longest_seconds: f64,
    /// Words of their references.
    pub words: u64,
    /// Labels of their references.
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

    /// A split by name; `user` is what needs it, for the message.
    ///
    /// # Errors
    /// [`SpeechError::MissingSplit`].
    pub fn split(&self, name: &str, user: &str) -> Result<&Arc<SpeechSplit>, SpeechError> {
        self.splits.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.splits.keys().map(String::as_str).collect();
            SpeechError::MissingSplit { split: name.into(), user: user.into(), known: known.join(", ") }
        })
    }

    /// The split of the evaluation set `name`, which must have the utterances and words that `spec` states.
    ///
    /// # Errors
    /// [`SpeechError::MissingSplit`], [`SpeechError::EvalSet`].
    pub fn eval_set(&self, name: &str, spec: &EvalSetSpec) -> Result<&Arc<SpeechSplit>, SpeechError> {
        if spec.split == self.training {
            let hint = "give the evaluation set a split of its own";
            return Err(SpeechError::recipe(format!("eval.{name}.split"), "it is trained on", hint));
        }
        let split = self.split(&spec.split, &format!("data.eval.{name}"))?;
        let due = |what, found: usize, expected: u32| match found == expected as usize {
            true => Ok(()),
            false => Err(SpeechError::EvalSet {
                set: name.into(),
                split: split.name.clone(),
                what,
                found,
                expected,
            }),
        };
        due("utterances", split.utterances.len(), spec.lines)?;
        if let Some(expected) = spec.reference_tokens {
            let words = |line: &String| line.split_whitespace().count();
            due("reference words", split.references_as(spec.references).iter().map(words).sum(), expected)?;
        }
        Ok(split)
    }

    /// The front end that makes the frames.
    pub fn front_end(&self) -> &FrontEnd {
        &self.front_end
    }
}

impl SpeechSplit {
    /// Number of utterances.
    pub fn len(&self) -> usize {
        self.utterances.len()
    }

    /// Whether there is no utterance.
    pub fn is_empty(&self) -> bool {
        self.utterances.is_empty()
    }

    /// The labels of an utterance; none if there is no such utterance.
    pub fn labels(&self, utterance: u32) -> Vec<u32> {
        let text = self.references.get(utterance as usize);
        // Whatever has no label was left out when the split was made.
        text.and_then(|text| self.classes.labels_of_normalized(text).ok()).unwrap_or_default()
    }

    /// The references that an evaluation set is scored against; `raw` is not kept of `train`.
    pub fn references_as(&self, references: References) -> &[String] {
        match references {
            References::Normalized => &self.references,
            References::Raw => &self.raw,
        }
    }

    /// The files that an utterance is made of; none if it is generated.
    pub fn files(&self, utterance: &Utterance) -> Vec<PathBuf> {
        utterance.parts.places().iter().filter_map(|place| self.sounds.file(*place)).collect()
    }

    /// SHA-256 over name, length and text of every utterance in order: what training and decoding saw, beside the sound itself.
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
