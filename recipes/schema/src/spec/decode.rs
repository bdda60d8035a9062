//! The `[decode.NAME]` blocks: named searches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FreeRunningSpec;

/// A search over a decoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DecodeSpec {
    /// The likeliest token at each step.
    Greedy {
        /// Longest output.
        max_length: MaxLength,
    },
    /// Beam search.
    Beam {
        /// Hypotheses kept alive.
        beam: u32,
        /// How finished hypotheses are ranked.
        length_penalty: LengthPenalty,
        /// When a sentence is done.
        stop: StopRule,
        /// Longest output.
        max_length: MaxLength,
    },
    /// Beam search of which an ended hypothesis goes on to hold one of the `beam` places (TensorFlow's BeamSearchDecoder, as
    /// OpenSeq2Seq has it): every step keeps the best of log p / ((5 + n) / 6)^alpha. n counts the end token from the step on that
    /// follows it. Done when all have ended, or at the limit, where those that have not count as they are.
    TensorflowBeam {
        /// Places.
        beam: u32,
        /// Exponent.
        alpha: f64,
        /// Longest output.
        max_length: MaxLength,
    },
    /// The same places, kept by log p alone; what is weighed are the hypotheses at the end (NVIDIA's GNMT): log p / ((c + n) /
    /// (c + 1))^alpha + b sum over the source of log min(A, 1), A being the attention that a position got, n the tokens and both
    /// special ones. Positions without any attention count nothing.
    GnmtBeam {
        /// Places.
        beam: u32,
        /// Exponent.
        alpha: f64,
        /// c.
        constant: f64,
        /// b, of a recurrent decoder. 0: attention does not count.
        coverage: f64,
        /// Attention is summed by place, whichever hypothesis is in it, and a sentence at its limit is not weighed. Otherwise sums
        /// go with their hypotheses, and all are weighed.
        #[serde(default)]
        as_coded: bool,
        /// Longest output.
        max_length: MaxLength,
    },
    /// A beam in which ended hypotheses go on to be extended like the others (JoeyNMT): every step keeps the likeliest of all
    /// extensions. Done when the likeliest has just ended, or at the limit. What is ranked by log p / ((5 + n) / 6)^alpha is what ended
    /// on the way and what is in the beam then, ended or not; n and p are of all that was written, what is read ends at the first end token.
    JoeynmtBeam {
        /// Hypotheses kept.
        beam: u32,
        /// Exponent.
        alpha: f64,
        /// What ends again, having ended before, is ranked again, as in the code of 2019. Otherwise the first time alone.
        #[serde(default)]
        as_coded: bool,
        /// Longest output.
        max_length: MaxLength,
    },
    /// The likeliest class of each frame; runs are one label, blanks none.
    CtcGreedy {},
    /// The likeliest path through the words of `data.tokenizer`'s lexicon, weighed by a unigram, silence between them.
    CtcLexicon {
        /// log10 of the probability of each word.
        log10: BTreeMap<String, f64>,
        /// log10 of the probability that no word follows.
        end_log10: f64,
        /// Probability of a silence wherever one may stand.
        silence: f64,
    },
    /// Prefix beam search (Hannun et al. 2014), with a language model of words where one is given.
    CtcBeam {
        /// Prefixes kept.
        beam: u32,
        /// Classes of a frame are taken from the likeliest down until they have this probability together; 1 takes all.
        #[serde(default = "all")]
        cutoff: f64,
        /// And so many at most.
        #[serde(default = "classes")]
        cutoff_classes: u32,
        /// An n-gram model in ARPA's format, gzipped or not; relative to the recipe file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language_model: Option<String>,
        /// The language model is the user's to bring: until one is given the search is not run, and claims on it are not judged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        needs_language_model: bool,
        /// Weight of its log10 probabilities.
        #[serde(default)]
        alpha: f64,
        /// Added for every word.
        #[serde(default)]
        beta: f64,
        /// The words that may be spelt; absent: any. Prefixes that begin none of them are dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<WordsSpec>,
    },
    /// Frames of speech, each made of the one that was written before it.
    FreeRunning(FreeRunningSpec),
    /// Frames of speech, each made of the true one before it: as many as there are.
    TeacherForced {},
}

/// See [`DecodeSpec::CtcBeam`]. Words that the alphabet cannot spell are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WordsSpec {
    /// Those of the language model, as in Baidu's decoder.
    OfLanguageModel {},
    /// Those that a file begins its lines with, gzipped or not; relative to the recipe file.
    Listed {
        /// The file.
        file: String,
    },
}

impl DecodeSpec {
    /// Does it read the classes of frames?
    pub fn is_of_classes(&self) -> bool {
        matches!(self, Self::CtcGreedy {} | Self::CtcLexicon { .. } | Self::CtcBeam { .. })
    }

    /// Does it write frames of speech?
    pub fn is_of_frames(&self) -> bool {
        matches!(self, Self::FreeRunning(_) | Self::TeacherForced {})
    }

    /// Does it write token by token?
    pub fn is_of_tokens(&self) -> bool {
        self.hypotheses().is_some()
    }

    /// Hypotheses of each sentence, of a search of tokens.
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

    /// The same search, of outputs of so many tokens at most, whatever the source.
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

    /// Does it sum the attention of the source, which recurrent decoders alone have one of?
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

    /// It means nothing without the language model that it has not: what is claimed of it is not run.
    pub fn lacks_language_model(&self) -> bool {
        matches!(self, Self::CtcBeam { needs_language_model: true, language_model: None, .. })
    }
}

/// Tokens at most, the end token included: `factor` x source tokens (special tokens included), rounded down, + `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxLength {
    /// Times the source's length.
    pub factor: f64,
    /// Plus this.
    pub extra: u32,
}

/// Score of a finished hypothesis of n tokens (end token included).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LengthPenalty {
    /// log p.
    None,
    /// log p / ((5 + n) / 6)^alpha (Wu et al. 2016; tensor2tensor).
    Gnmt {
        /// Exponent.
        alpha: f64,
    },
    /// log p / n^alpha (fairseq `lenpen`).
    LengthPower {
        /// Exponent.
        alpha: f64,
    },
}

/// When the search of a sentence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopRule {
    /// No alive hypothesis can beat the worst finished one any more (tensor2tensor, OpenSeq2Seq).
    CannotImprove,
    /// As soon as `beam` hypotheses have ended (fairseq).
    BeamFinished,
}

fn all() -> f64 {
    1.0
}

/// Baidu's decoder in OpenSeq2Seq.
fn classes() -> u32 {
    40
}
