//! The `[data]` block of tasks whose examples are recordings with their texts.

mod check;
mod kept;
mod reader;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::kept::Kept;
use super::{Asked, AugmentationSpec, DataBlock, EvalSet, FeaturesSpec, Generated, References, ShareSpec};

pub use reader::*;

/// Where recordings come from and how they become batches. `L` says how a text becomes labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RecordingDataSpecOf{L}")]
pub struct RecordingDataSpec<L> {
    /// Name of a public corpus definition (URLs, digests, licence, splits).
    /// Absent for generated data and the user's own files.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Split of the corpus or of the files to train on. Absent: `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_split: Option<String>,
    /// How recordings are read.
    pub reader: RecordingReaderSpec,
    /// Limits each split to its first recordings. Absent: all are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// How a text becomes labels.
    pub tokenizer: L,
    #[serde(default)]
    #[schemars(skip)]
    begin_token_in_source: Kept<bool>,
    /// How recordings become frames of features.
    pub features: FeaturesSpec,
    /// Augmentation of training recordings. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<AugmentationSpec>,
    /// Limits on the length of training recordings.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub filter: RecordingFilterSpec,
    /// How training recordings form batches.
    pub batching: RecordingBatchingSpec,
    /// Evaluation sets by name. Training validates on `valid`.
    pub eval: BTreeMap<String, RecordingSetSpec>,
}

/// Limits on training recordings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingFilterSpec {
    #[serde(default)]
    #[schemars(skip)]
    max_source_tokens: Kept<Option<u32>>,
    #[serde(default)]
    #[schemars(skip)]
    max_target_tokens: Kept<Option<u32>>,
    #[serde(default)]
    #[schemars(skip)]
    too_long: Kept<TooLong>,
    /// Shortest recording, in seconds, before speed perturbation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_seconds: Option<f64>,
    /// Longest recording, in seconds, before speed perturbation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
}

/// The only treatment of training recordings that are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TooLong {
    #[default]
    Drop,
}

/// How training recordings form batches. One micro-step computes one batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RecordingBatchingSpec {
    /// A fixed number of utterances in shuffled order. The remainder of an epoch is left out.
    Utterances {
        /// Utterances per batch.
        utterances: u32,
    },
    /// Utterances in shuffled order, as many as fit into `max_seconds`, at least one (lhotse's
    /// simple sampler).
    Seconds {
        /// Largest total duration of a batch, in seconds.
        max_seconds: f64,
    },
}

/// An evaluation set of recordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingSetSpec {
    /// Split of the corpus or reader.
    pub split: String,
    /// Recordings that the set must have. Another number is an error.
    pub lines: u32,
    /// Text that hypotheses are scored against.
    #[serde(default)]
    pub references: References,
    /// Words, split at white space, that the references must have.
    /// This tells versions of a test set apart.
    #[serde(default)]
    pub reference_tokens: Option<u32>,
}

impl<L> RecordingDataSpec<L> {
    /// Name of the split to train on.
    pub fn training(&self) -> &str {
        self.train_split.as_deref().unwrap_or("train")
    }

    /// Largest number of recordings to read of a split; `None` for all.
    pub fn most_of(&self, split: &str) -> Option<usize> {
        self.share.map(|share| share.most(split == self.training()))
    }
}

impl<L> DataBlock for RecordingDataSpec<L> {
    fn corpus(&self) -> Option<&str> {
        self.corpus.as_deref()
    }

    fn corpus_to_fetch(&self) -> Option<&str> {
        match &self.reader {
            RecordingReaderSpec::AudioManifest(AudioManifestSpec { folder: Some(_), .. }) => None,
            RecordingReaderSpec::AudioManifest(_) | RecordingReaderSpec::Tones(_) => {
                self.corpus().filter(|name| !name.is_empty())
            }
        }
    }

    fn is_generated(&self) -> bool {
        matches!(self.reader, RecordingReaderSpec::Tones(_))
    }

    fn training(&self) -> &str {
        Self::training(self)
    }

    fn most_training_examples(&self) -> Option<usize> {
        self.most_of(Self::training(self))
    }

    fn eval_sets(&self) -> Vec<&str> {
        self.eval.keys().map(String::as_str).collect()
    }

    fn eval_set(&self, name: &str) -> Option<EvalSet<'_>> {
        let set = self.eval.get(name)?;
        Some(EvalSet { split: &set.split, lines: set.lines, languages: self.languages(), target: None })
    }

    /// The transcript counts as the one language of the outputs.
    fn languages(&self) -> Vec<&str> {
        vec!["transcript"]
    }

    fn asked(&self, eval: &str) -> Vec<Asked> {
        let Some(set) = self.eval.get(eval) else { return Vec::new() };
        match &self.reader {
            RecordingReaderSpec::Tones(tones) => {
                let letters = f64::from(tones.most_words) * (f64::from(tones.longest_word) + 1.0);
                let longest = letters * tones.letter_ms / 1000.0;
                let seconds = longest * f64::from(tones.generated().of(&set.split));
                vec![Asked::Recordings { seconds, longest, rate_hz: tones.sample_rate_hz }]
            }
            RecordingReaderSpec::AudioManifest(AudioManifestSpec { files, folder, join, .. }) => {
                let own = !files.is_empty() || folder.is_some();
                let joined = join.as_ref().map(|join| {
                    let utterances = join.utterances.get(&set.split).copied().unwrap_or(0);
                    Asked::Joined(u64::from(utterances) * u64::from(join.most))
                });
                own.then_some(Asked::OwnFiles("files")).into_iter().chain(joined).collect()
            }
        }
    }
}

impl TonesSpec {
    /// Numbers of the utterances of each split.
    fn generated(&self) -> Generated {
        Generated { train: self.train, valid: self.valid, test: self.test }
    }
}
