//! The `[data]` block of a speech recognition recipe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{FeaturesSpec, NormalizeStep, RecordingDataSpec, References, check_steps};
use crate::validate::Findings;

/// Recordings, and the classes of their transcripts.
pub type RecognitionDataSpec = RecordingDataSpec<ClassTokenizerSpec>;

/// How a transcript becomes classes of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClassTokenizerSpec {
    /// Characters of a transcript. Each is an output class.
    Characters {
        /// All characters, in the order of their classes. The space separates words.
        alphabet: String,
        /// Normalisation steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// Words of a small lexicon, spelled in sounds. Each sound is an output class.
    Lexicon {
        /// Pronunciation of each word, as a list of sounds.
        words: BTreeMap<String, Vec<String>>,
        /// Optional sound before, between and after words. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silence: Option<String>,
    },
}

/// Checks the recordings, their features, and the classes of their transcripts.
pub(super) fn check(data: &RecognitionDataSpec, findings: &mut Findings<'_, '_>) {
    data.check(findings);
    if matches!(data.features, FeaturesSpec::Tacotron { .. }) {
        findings.report_with(
            "data.features.kind",
            "these features are what a synthesiser writes; a recogniser reads others",
            "kind = \"librosa\", \"kaldi\", \"python-speech-features\" or \"tensorflow\"",
        );
    }
    match &data.tokenizer {
        ClassTokenizerSpec::Characters { alphabet, normalize } => {
            findings.distinct(alphabet, "data.tokenizer.alphabet", "the alphabet is empty");
            check_steps(normalize, findings);
        }
        ClassTokenizerSpec::Lexicon { words, silence } => {
            lexicon(words, silence.as_deref(), findings);
            for (name, set) in &data.eval {
                let path = format!("data.eval.{name}.references");
                findings.require(set.references == References::Normalized, &path, || {
                    "words of a lexicon are scored as they are written there".to_owned()
                });
            }
        }
    }
}

fn lexicon(words: &BTreeMap<String, Vec<String>>, silence: Option<&str>, findings: &mut Findings<'_, '_>) {
    findings.require(!words.is_empty(), "data.tokenizer.words", || "the lexicon has no word".to_owned());
    for (word, sounds) in words {
        let path = format!("data.tokenizer.words.{word}");
        findings.require(!word.is_empty() && !word.contains(char::is_whitespace), &path, || {
            format!("{word:?} is not a single word")
        });
        findings.require(!sounds.is_empty(), &path, || format!("{word} has no sound"));
        findings.require(!sounds.iter().any(|sound| Some(sound.as_str()) == silence), &path, || {
            format!("the silence is part of {word}")
        });
    }
}
