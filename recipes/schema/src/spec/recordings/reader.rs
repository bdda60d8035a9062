//! `data.reader` of recordings with their texts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reader of recordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RecordingReaderSpec {
    /// Recordings with their transcripts, from a corpus or from the user's manifests.
    AudioManifest(AudioManifestSpec),
    /// A toy task of this project: random words in which every letter is a tone.
    /// Splits `train`, `valid`, `test`.
    Tones(TonesSpec),
}

impl RecordingReaderSpec {
    /// Sample rate, in hertz.
    pub fn sample_rate_hz(&self) -> u32 {
        match self {
            Self::AudioManifest(spec) => spec.sample_rate_hz,
            Self::Tones(spec) => spec.sample_rate_hz,
        }
    }
}

/// Recordings with their transcripts, from a corpus or from the user's manifests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AudioManifestSpec {
    /// Sample rate that recordings must have, in hertz.
    pub sample_rate_hz: u32,
    /// Whether an unusable recording is an error.
    /// Unusable is damaged, silent, empty, stereo, or with another sample rate. If not an error, it
    /// is reported, counted and left out.
    #[serde(default)]
    pub strict: bool,
    /// The user's own manifests by split name, relative to the recipe file.
    /// Empty if `data.corpus` names a corpus. A manifest has one JSON object per line:
    /// `{"audio": "a.flac", "text": "what is said"}`. The path is relative to the manifest;
    /// `"speaker"` is optional.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The user's folder with the unpacked corpus, relative to the recipe file.
    /// Absent: it is fetched. The splits are those of `data.corpus`; the recordings are those found
    /// in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Text to use of a corpus with two texts. Absent: the normalised one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<TranscriptText>,
    /// Joins several recordings into one utterance. Absent: no joining.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinSpec>,
}

/// Which text of a recording is its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TranscriptText {
    /// The printed text: numbers in digits, money in symbols.
    Raw,
    /// The spoken text: numbers and money in words.
    Normalized,
}

/// Joins recordings of one speaker, drawn at random, into utterances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinSpec {
    /// Smallest number of recordings per utterance.
    pub least: u32,
    /// Largest number of recordings per utterance.
    pub most: u32,
    /// Silence between two recordings, in milliseconds.
    pub gap_ms: f64,
    /// Number of utterances of each split, by split name.
    pub utterances: BTreeMap<String, u32>,
    /// Seed of the random draw.
    pub seed: u64,
}

/// A toy task of this project: random words in which every letter is a tone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TonesSpec {
    /// Sample rate, in hertz.
    pub sample_rate_hz: u32,
    /// Number of letters `a`, `b`, … that words consist of.
    /// Each letter is a different tone; a space is silence.
    pub letters: u32,
    /// Letters of the longest word. The shortest word has one.
    pub longest_word: u32,
    /// Words of the longest utterance. The shortest utterance has one.
    pub most_words: u32,
    /// Duration of a letter, in milliseconds.
    pub letter_ms: f64,
    /// Number of training utterances.
    pub train: u32,
    /// Number of validation utterances.
    pub valid: u32,
    /// Number of test utterances.
    pub test: u32,
    /// Seed of the generator.
    pub seed: u64,
}
