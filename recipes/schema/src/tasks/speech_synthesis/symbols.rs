//! The input symbols of a speech synthesiser: `data.tokenizer` with kind `symbols`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of symbols. Id 0 of every set is the pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SymbolSet {
    /// OpenSeq2Seq's set for LJSpeech: pad, begin, end, and the 91 characters of its
    /// `vocab_tts.txt`, including digits and accented letters.
    Openseq2seq,
    /// NVIDIA's set for Tacotron 2: pad, 10 punctuation marks, the space, 52 letters, and the 84
    /// ARPAbet sounds. In a text the sounds are written in braces.
    Nvidia,
    /// Pad, begin, end, and the characters of `data.tokenizer.characters`.
    Own,
}

/// Cleaning of a text before it is split into symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaners {
    /// No cleaning.
    #[default]
    None,
    /// Unicode lower case.
    Lowercase,
    /// NVIDIA's `english_cleaners`: converts to ASCII and lower case, spells out numbers, money and
    /// abbreviations, and turns all white space into single spaces.
    English,
}

/// Names of OpenSeq2Seq's ids 0, 1 and 2.
const PAD_BEGIN_END: [&str; 3] = ["<p>", "<s>", "</s>"];

/// The lines of OpenSeq2Seq's vocabulary, one character each.
const OPENSEQ2SEQ: &str =
    " !\"'(),-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyzÄÖÜßàâäèéêöü’“”";

/// NVIDIA's pad, hyphen, punctuation marks and letters.
const NVIDIA: &str = "_-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Vowels of ARPAbet. A vowel may carry a stress of 0, 1 or 2.
const VOWELS: [&str; 15] =
    ["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"];
/// Consonants of ARPAbet.
const CONSONANTS: [&str; 24] = [
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH", "T", "TH",
    "V", "W", "Y", "Z", "ZH",
];

impl SymbolSet {
    /// The symbols by id. ARPAbet sounds have an `@` before their name.
    /// `characters` are those of the set `own`.
    pub fn names(self, characters: &str) -> Vec<String> {
        let marked = |characters: &str| {
            PAD_BEGIN_END.into_iter().map(String::from).chain(characters.chars().map(String::from)).collect()
        };
        match self {
            Self::Openseq2seq => marked(OPENSEQ2SEQ),
            Self::Own => marked(characters),
            Self::Nvidia => {
                let stressed = |vowel: &str| ["", "0", "1", "2"].map(|stress| format!("@{vowel}{stress}"));
                let consonants = CONSONANTS.iter().map(|sound| format!("@{sound}"));
                let mut sounds: Vec<String> =
                    VOWELS.iter().copied().flat_map(stressed).chain(consonants).collect();
                sounds.sort_unstable();
                NVIDIA.chars().map(String::from).chain(sounds).collect()
            }
        }
    }

    /// Whether the set has a begin symbol (id 1) and an end symbol (id 2).
    pub fn has_ends(self) -> bool {
        self != Self::Nvidia
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn published_sets_have_their_sizes_and_no_symbol_twice() {
        for (set, size) in [(SymbolSet::Openseq2seq, 94), (SymbolSet::Nvidia, 148)] {
            let names = set.names("");
            assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len()), (size, size), "{set:?}");
        }
        let nvidia = SymbolSet::Nvidia.names("");
        let at = |name: &str| nvidia.iter().position(|own| own == name);
        assert_eq!(
            (at("_"), at("-"), at(" "), at("A"), at("z")),
            (Some(0), Some(1), Some(11), Some(12), Some(63))
        );
        assert_eq!((at("@AA"), at("@AA2"), at("@B"), at("@ZH")), (Some(64), Some(67), Some(88), Some(147)));
        let openseq2seq = SymbolSet::Openseq2seq.names("");
        assert_eq!((openseq2seq[3].as_str(), openseq2seq[93].as_str()), (" ", "”"));
        assert_eq!(SymbolSet::Own.names("ab"), ["<p>", "<s>", "</s>", "a", "b"]);
    }
}
