//! The `[decode.NAME]` blocks: named searches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FreeRunningSpec;

/// A search for the output of a decoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DecodeSpec {
    /// Greedy search: the most likely token at each step.
    Greedy {
        /// Largest length of an output.
        max_length: MaxLength,
    },
    /// Beam search.
    Beam {
        /// Beam size: number of active hypotheses.
        beam: u32,
        /// Score by which finished hypotheses are ranked.
        length_penalty: LengthPenalty,
        /// Condition that ends the search of a sentence.
        stop: StopRule,
        /// Largest length of an output.
        max_length: MaxLength,
    },
    /// Beam search in which a finished hypothesis keeps one of the `beam` slots (TensorFlow's
    /// BeamSearchDecoder as in OpenSeq2Seq). Every step keeps the best by
    /// log p / ((5 + n) / 6)^alpha, where n counts the end token only from the following step on.
    /// The search ends when all hypotheses have finished, or at the length limit, where unfinished
    /// hypotheses count as they are.
    TensorflowBeam {
        /// Beam size: number of slots.
        beam: u32,
        /// Exponent of the length penalty.
        alpha: f64,
        /// Largest length of an output.
        max_length: MaxLength,
    },
    /// Beam search with the slots of `tensorflow-beam`, kept by log p alone (NVIDIA's GNMT).
    /// Only the final hypotheses are ranked, by log p / ((c + n) / (c + 1))^alpha + b sum over the
    /// source of log min(A, 1). A is the total attention on a source position, and n counts the
    /// tokens and both special tokens. Positions without any attention are left out of the sum.
    GnmtBeam {
        /// Beam size: number of slots.
        beam: u32,
        /// Exponent of the length penalty.
        alpha: f64,
        /// c: constant of the length penalty.
        constant: f64,
        /// b: weight of the coverage term, for a recurrent decoder. 0: no term.
        coverage: f64,
        /// Whether to rank as the source's code does.
        /// It sums attention per slot, whichever hypothesis is in it, and does not rank a sentence
        /// at its length limit. Otherwise the sums follow their hypotheses, and all sentences are
        /// ranked.
        #[serde(default)]
        as_coded: bool,
        /// Largest length of an output.
        max_length: MaxLength,
    },
    /// Beam search in which finished hypotheses are extended like the others (JoeyNMT).
    /// Every step keeps the most likely of all extensions. The search ends when the most likely
    /// hypothesis has just finished, or at the length limit. The hypotheses that finished on the
    /// way and those in the beam at the end, finished or not, are ranked by
    /// log p / ((5 + n) / 6)^alpha. n and p are those of the whole sequence; the output ends at its
    /// first end token.
    JoeynmtBeam {
        /// Beam size: number of hypotheses kept.
        beam: u32,
        /// Exponent of the length penalty.
        alpha: f64,
        /// Whether a hypothesis that finishes again is ranked again, as in the code of 2019.
        /// Otherwise it is ranked only the first time.
        #[serde(default)]
        as_coded: bool,
        /// Largest length of an output.
        max_length: MaxLength,
    },
    /// Greedy CTC: the most likely class of each frame, with repeats merged and blanks removed.
    CtcGreedy {},
    /// The most likely path through the words of the lexicon in `data.tokenizer`, weighted by a
    /// unigram model, with optional silence between words.
    CtcLexicon {
        /// log10 of each word's probability.
        log10: BTreeMap<String, f64>,
        /// log10 of the probability that no further word follows.
        end_log10: f64,
        /// Probability of a silence at each place where one may be.
        silence: f64,
    },
    /// CTC prefix beam search (Hannun et al. 2014), optionally with a language model of words.
    CtcBeam {
        /// Beam size: number of prefixes kept.
        beam: u32,
        /// Classes of a frame are taken by falling probability until their sum reaches this.
        /// 1 takes all classes.
        #[serde(default = "all")]
        cutoff: f64,
        /// Largest number of classes taken from a frame.
        #[serde(default = "classes")]
        cutoff_classes: u32,
        /// n-gram model in ARPA format, optionally gzipped.
        /// The path is relative to the recipe file. Absent: no language model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language_model: Option<String>,
        /// Whether the user must supply the language model.
        /// Without one the search is not run, and its claims are not judged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        needs_language_model: bool,
        /// Weight of the language model's log10 probabilities.
        #[serde(default)]
        alpha: f64,
        /// Bonus added for every word.
        #[serde(default)]
        beta: f64,
        /// Words that may be spelt. Absent: any words.
        /// Prefixes that do not begin any of these words are dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<WordsSpec>,
    },
    /// Free-running inference: each frame of speech is computed from the model's own previous
    /// frame.
    FreeRunning(FreeRunningSpec),
    /// Teacher forcing: each frame of speech is computed from the true previous frame.
    /// The output is as long as the reference.
    TeacherForced {},
}

/// Source of the words that may be spelt. Words that the alphabet cannot spell are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WordsSpec {
    /// The words of the language model, as in Baidu's decoder.
    OfLanguageModel {},
    /// The first word of each line of a file, optionally gzipped.
    Listed {
        /// Path of the file, relative to the recipe file.
        file: String,
    },
}

impl DecodeSpec {
    /// Whether the search reads classes of frames (CTC).
    pub fn is_of_classes(&self) -> bool {
        matches!(self, Self::CtcGreedy {} | Self::CtcLexicon { .. } | Self::CtcBeam { .. })
    }

    /// Whether the search writes frames of speech.
    pub fn is_of_frames(&self) -> bool {
        matches!(self, Self::FreeRunning(_) | Self::TeacherForced {})
    }

    /// Whether the search writes tokens one by one.
    pub fn is_of_tokens(&self) -> bool {
        self.hypotheses().is_some()
    }

    /// Number of hypotheses per sentence; `None` if the search does not write tokens.
    pub fn hypotheses(&self) -> Option<u32> {
        match self {
            Self::Greedy { .. } => Some(1),
            Self::Beam { beam, .. }
            | Self::TensorflowBeam { beam, .. }
            | Self::GnmtBeam { beam, .. }
            | Self::JoeynmtBeam { beam, .. } => Some(*beam),
            Self::CtcGreedy {}
            | Self::CtcLexicon { .. }
            | Self::CtcBeam { .. }
            | Self::FreeRunning(_)
            | Self::TeacherForced {} => None,
        }
    }

    /// The search with output length limited to `tokens`, whatever the source's length.
    pub fn writing(mut self, tokens: u32) -> Self {
        match &mut self {
            Self::Greedy { max_length }
            | Self::Beam { max_length, .. }
            | Self::TensorflowBeam { max_length, .. }
            | Self::GnmtBeam { max_length, .. }
            | Self::JoeynmtBeam { max_length, .. } => *max_length = MaxLength { factor: 0.0, extra: tokens },
            Self::FreeRunning(spec) => spec.max_frames = MaxLength { factor: 0.0, extra: tokens },
            Self::CtcGreedy {} | Self::CtcLexicon { .. } | Self::CtcBeam { .. } | Self::TeacherForced {} => {}
        }
        self
    }

    /// Whether the search sums attention over the source.
    /// Only recurrent decoders have a single attention to sum.
    pub fn counts_attention(&self) -> bool {
        matches!(self, Self::GnmtBeam { coverage, .. } if *coverage > 0.0)
    }

    /// File of the search's language model, relative to the recipe file.
    pub fn language_model(&self) -> Option<&String> {
        match self {
            Self::CtcBeam { language_model, .. } => language_model.as_ref(),
            _ => None,
        }
    }

    /// File of the words that may be written, relative to the recipe file.
    pub fn word_list(&self) -> Option<&String> {
        match self {
            Self::CtcBeam { words: Some(WordsSpec::Listed { file }), .. } => Some(file),
            _ => None,
        }
    }

    /// Whether the search needs a language model that is not given. Its claims are then not run.
    pub fn lacks_language_model(&self) -> bool {
        matches!(self, Self::CtcBeam { needs_language_model: true, language_model: None, .. })
    }
}

/// Largest output length in tokens, including the end token: `factor` x source tokens (including
/// special tokens), rounded down, + `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxLength {
    /// Factor of the source's length.
    pub factor: f64,
    /// Tokens added to that.
    pub extra: u32,
}

/// Score of a finished hypothesis with n tokens, including the end token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LengthPenalty {
    /// log p: no length penalty.
    None,
    /// log p / ((5 + n) / 6)^alpha (Wu et al. 2016; tensor2tensor).
    Gnmt {
        /// Exponent of the length penalty.
        alpha: f64,
    },
    /// log p / n^alpha (fairseq `lenpen`).
    LengthPower {
        /// Exponent of the length penalty.
        alpha: f64,
    },
}

/// Condition that ends the search of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopRule {
    /// No active hypothesis can still beat the worst finished one (tensor2tensor, OpenSeq2Seq).
    CannotImprove,
    /// `beam` hypotheses have finished (fairseq).
    BeamFinished,
}

fn all() -> f64 {
    1.0
}

/// Default of Baidu's decoder in OpenSeq2Seq.
fn classes() -> u32 {
    40
}
