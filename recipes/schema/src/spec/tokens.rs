//! Tokens of text: how it becomes token ids, and the ids of the special tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NormalizeStep;

/// How text becomes token ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextTokenizerSpec {
    /// Words separated by white space. The vocabulary is counted on the training split.
    Words {
        /// Ids of the special tokens.
        specials: Specials,
        /// The number of vocabulary rows is rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_vocabulary_to: u32,
        /// Whether both sides share one vocabulary.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        joint: bool,
        /// Largest number of vocabulary rows, special tokens included, before padding.
        /// The rarest words are left out (fairseq's `--nwordstgt`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_vocabulary: Option<u32>,
        /// `max_vocabulary` of the target side's own vocabulary. Absent: `max_vocabulary`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_target_vocabulary: Option<u32>,
        /// Words that occur less often than this in training are left out (torchtext's `min_freq`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_count: Option<u32>,
        /// Whether the text is already split into sub-words, marked as by subword-nmt (`@@`).
        /// Sub-words are then joined before scoring.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        subwords: bool,
        /// Normalisation steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// Byte pair encoding of subword-nmt, learned on both sides of the training split together.
    SubwordNmt {
        /// Number of merge operations to learn.
        merges: u32,
        /// Whether both sides share one dictionary, sorted by count as in fairseq.
        joined_dictionary: bool,
        /// Ids of the special tokens.
        specials: Specials,
        /// The number of vocabulary rows is rounded up to a multiple of this.
        #[serde(default = "one")]
        pad_vocabulary_to: u32,
        /// Largest number of vocabulary rows, special tokens included, before padding.
        /// The rarest words are left out (fairseq's `--nwordstgt`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_vocabulary: Option<u32>,
        /// Normalisation steps before splitting.
        #[serde(default)]
        normalize: Vec<NormalizeStep>,
    },
    /// A SentencePiece model on raw text: an existing one, or a BPE model learned on the training
    /// split.
    SentencePiece {
        /// Number of pieces, the four special tokens included.
        pieces: u32,
        /// Whether both sides share one model.
        joint: bool,
        /// Ids of the special tokens.
        specials: Specials,
        /// Existing SentencePiece model to use, relative to the recipe file.
        /// Absent: one is trained.
        #[serde(default)]
        model: Option<String>,
    },
}

impl TextTokenizerSpec {
    /// The `normalize` steps. Empty for SentencePiece, which has its own normalisation.
    pub fn normalize(&self) -> &[NormalizeStep] {
        match self {
            Self::Words { normalize, .. } | Self::SubwordNmt { normalize, .. } => normalize,
            Self::SentencePiece { .. } => &[],
        }
    }
}

/// Ids of the special tokens in the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Specials {
    /// OpenSeq2Seq: pad 0, end 1, begin 2, unknown 3.
    Openseq2seq,
    /// fairseq: begin 0, pad 1, end 2, unknown 3.
    Fairseq,
    /// NVIDIA's GNMT: pad 0, unknown 1, begin 2, end 3.
    Gnmt,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
