//! Recordings and what is said in them: `data.reader`, the classes of a frame, and the loss and searches over them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`ReaderSpec::AudioManifest`](super::ReaderSpec::AudioManifest).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AudioManifestSpec {
    /// Samples a second that recordings must have.
    pub sample_rate_hz: u32,
    /// A recording that cannot be used (damaged, silent, empty, of another rate, stereo) is an error. Else it is named, counted and
    /// left out.
    #[serde(default)]
    pub strict: bool,
    /// The user's own manifests by split name, relative to the recipe file; empty when `data.corpus` names a corpus. One JSON object a
    /// line: `{"audio": "a.flac", "text": "what is said"}`, the path relative to the manifest, `"speaker"` if known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// A folder of the user's own that holds the corpus unpacked, relative to the recipe file: nothing is fetched. The splits are those of
    /// `data.corpus`; the recordings are listed as they are found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Which text of a corpus that has two; absent: the normalised one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<TranscriptText>,
    /// Utterances made of several recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinSpec>,
}

/// See [`AudioManifestSpec::transcript`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TranscriptText {
    /// As it was printed: numbers in digits, money by its signs.
    Raw,
    /// As it is read: numbers and money in words.
    Normalized,
}

/// Recordings of one speaker behind each other, drawn at random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinSpec {
    /// Fewest recordings an utterance.
    pub least: u32,
    /// Most recordings an utterance.
    pub most: u32,
    /// Silence between two.
    pub gap_ms: f64,
    /// Utterances of each split.
    pub utterances: BTreeMap<String, u32>,
    /// Seed of the draw.
    pub seed: u64,
}

/// See [`ReaderSpec::Tones`](super::ReaderSpec::Tones).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TonesSpec {
    /// Samples a second.
    pub sample_rate_hz: u32,
    /// The letters `a`, `b`, … that words are made of; each is a tone of its own, a space is silence.
    pub letters: u32,
    /// Letters of the longest word; the shortest has one.
    pub longest_word: u32,
    /// Words of the longest utterance; the shortest has one.
    pub most_words: u32,
    /// Length of a letter.
    pub letter_ms: f64,
    /// Training utterances.
    pub train: u32,
    /// Validation utterances.
    pub valid: u32,
    /// Test utterances.
    pub test: u32,
    /// Seed of the generator.
    pub seed: u64,
}

/// See [`LossSpec::Ctc`](super::LossSpec::Ctc).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CtcDenominator {
    /// Utterances of the update (OpenSeq2Seq).
    Utterances,
    /// Batches of the update: the loss of a batch is a sum (icefall).
    Batches,
}
