//! Searches that write token by token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MaxLength, SearchBlock};
use crate::validate::Findings;

/// A search for the output of a decoder of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TokenSearchSpec {
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

impl SearchBlock for TokenSearchSpec {}

impl TokenSearchSpec {
    /// Number of hypotheses per sentence.
    pub fn hypotheses(&self) -> u32 {
        match self {
            Self::Greedy { .. } => 1,
            Self::Beam { beam, .. }
            | Self::TensorflowBeam { beam, .. }
            | Self::GnmtBeam { beam, .. }
            | Self::JoeynmtBeam { beam, .. } => *beam,
        }
    }

    /// The search with output length limited to `tokens`, whatever the source's length.
    pub fn writing(mut self, tokens: u32) -> Self {
        let (Self::Greedy { max_length }
        | Self::Beam { max_length, .. }
        | Self::TensorflowBeam { max_length, .. }
        | Self::GnmtBeam { max_length, .. }
        | Self::JoeynmtBeam { max_length, .. }) = &mut self;
        *max_length = MaxLength::fixed(tokens);
        self
    }

    /// Whether the search sums attention over the source.
    /// Only recurrent decoders have a single attention to sum.
    pub fn counts_attention(&self) -> bool {
        matches!(self, Self::GnmtBeam { coverage, .. } if *coverage > 0.0)
    }

    /// Checks the numbers of the search at `path`. `attends`: whether the decoder has one
    /// attention.
    pub(crate) fn check(&self, attends: bool, path: &str, findings: &mut Findings<'_, '_>) {
        findings.positive(u64::from(self.hypotheses()), &format!("{path}.beam"));
        let max_length = match self {
            Self::Greedy { max_length } => max_length,
            Self::Beam { beam: _, length_penalty, stop: _, max_length } => {
                if let LengthPenalty::Gnmt { alpha } | LengthPenalty::LengthPower { alpha } = length_penalty {
                    findings.not_negative(*alpha, &format!("{path}.length_penalty.alpha"));
                }
                max_length
            }
            Self::TensorflowBeam { beam: _, alpha, max_length }
            | Self::JoeynmtBeam { beam: _, alpha, as_coded: _, max_length } => {
                findings.not_negative(*alpha, &format!("{path}.alpha"));
                max_length
            }
            Self::GnmtBeam { beam: _, alpha, constant, coverage, as_coded: _, max_length } => {
                for (value, key) in [(alpha, "alpha"), (constant, "constant"), (coverage, "coverage")] {
                    findings.not_negative(*value, &format!("{path}.{key}"));
                }
                max_length
            }
        };
        max_length.check(&format!("{path}.max_length"), findings);
        if self.counts_attention() && !attends {
            findings.report_with(
                &format!("{path}.coverage"),
                "the decoder has no one attention whose weights could be summed",
                "coverage = 0.0, or a recurrent decoder",
            );
        }
    }
}
