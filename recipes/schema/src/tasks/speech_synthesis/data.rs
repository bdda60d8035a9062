//! The `[data]` block of a speech synthesis recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cleaners, SymbolSet};
use crate::spec::{FeaturesSpec, RecordingDataSpec};
use crate::validate::Findings;

/// Recordings, and the symbols of their texts.
pub type SynthesisDataSpec = RecordingDataSpec<SymbolTokenizerSpec>;

/// How a text becomes symbols.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SymbolTokenizerSpec {
    /// Input symbols of a speech synthesiser, each with an id.
    /// A character that is not a symbol is an error.
    Symbols {
        /// Set of symbols.
        symbols: SymbolSet,
        /// Characters of the set `own`, in the order of their ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        characters: Option<String>,
        /// Cleaning of a text before it is split into symbols.
        #[serde(default)]
        cleaners: Cleaners,
        /// Characters of a cleaned text that are ignored.
        /// NVIDIA ignores every character that is not a symbol: in LJSpeech these are `"`, `[` and
        /// `]`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        leave_out: String,
        /// Whether a text is enclosed in the set's begin and end symbols.
        #[serde(default)]
        ends: bool,
        /// After the text, at least one pad is added, up to a multiple of this length.
        /// The pads count in the length (OpenSeq2Seq: 8). Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pad_to: Option<u32>,
    },
}

impl SymbolTokenizerSpec {
    /// The symbols by id.
    pub fn names(&self) -> Vec<String> {
        let Self::Symbols { symbols, characters, .. } = self;
        symbols.names(characters.as_deref().unwrap_or_default())
    }

    /// Checks the symbols of a text.
    fn check(&self, findings: &mut Findings<'_, '_>) {
        let Self::Symbols { symbols: set, characters, leave_out, ends, pad_to, cleaners: _ } = self;
        let path = "data.tokenizer.characters";
        match (set, characters) {
            (SymbolSet::Own, None) => {
                findings.report_with(
                    "data.tokenizer",
                    "the set `own` has no characters",
                    "characters = \" abc\"",
                );
            }
            (SymbolSet::Own, Some(characters)) => {
                findings.distinct(characters, path, "the set `own` is empty")
            }
            (_, Some(_)) => {
                let hint = "leave them out, or symbols = \"own\"";
                findings.report_with(path, "the set that is named has characters of its own", hint);
            }
            (_, None) => {}
        }
        let names = self.names();
        let mut twice = leave_out.chars().filter(|c| names.iter().any(|name| name.chars().eq([*c])));
        if let Some(character) = twice.next() {
            findings.report("data.tokenizer.leave_out", format!("{character:?} is a symbol"));
        }
        if *ends && !set.has_ends() {
            let hint = "in an overlay: without = [\"data.tokenizer.ends\"]";
            findings.report_with("data.tokenizer.ends", "NVIDIA's set has no begin and no end", hint);
        }
        if let Some(pad_to) = pad_to {
            findings.positive(u64::from(*pad_to), "data.tokenizer.pad_to");
        }
    }
}

/// Checks the recordings, their features, and the symbols of their texts.
pub(super) fn check(data: &SynthesisDataSpec, findings: &mut Findings<'_, '_>) {
    data.check(findings);
    data.tokenizer.check(findings);
    if !matches!(data.features, FeaturesSpec::Tacotron { .. }) {
        findings.report_with(
            "data.features.kind",
            "a text's symbols are to be spoken, and these features are those of a recogniser",
            "kind = \"tacotron\"",
        );
    }
    if data.augmentation.is_some() {
        findings.report_with(
            "data.augmentation",
            "the recordings are what is to be learnt; varied ones are others",
            "leave it out",
        );
    }
}
