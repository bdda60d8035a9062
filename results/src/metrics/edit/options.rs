//! Options of word and character error rate.

use crate::metrics::contract::{Case, ScoreError, unknown};

/// Unit that an error rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorUnit {
    /// Words; the metric is `wer`.
    Word,
    /// Code points, including spaces; the metric is `cer`.
    Character,
}

/// Treatment of white space by an error rate. White space at the ends of lines is always ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// The default of jiwer 4.0. Words are separated by U+0020 and by two or more white-space
    /// characters; a single tab stays inside a word. Characters are unchanged.
    #[default]
    Jiwer,
    /// Runs of any white space become one space, as in Python's `str.split`, which OpenSeq2Seq uses
    /// to count words.
    Collapse,
}

impl Whitespace {
    /// All treatments.
    pub const ALL: [Whitespace; 2] = [Whitespace::Jiwer, Whitespace::Collapse];

    /// The name in a signature's `space:` part.
    pub fn name(self) -> &'static str {
        match self {
            Whitespace::Jiwer => "jiwer",
            Whitespace::Collapse => "collapse",
        }
    }

    /// The treatment with this name.
    pub fn parse(name: &str) -> Result<Self, ScoreError> {
        let all = Whitespace::ALL.map(Whitespace::name);
        let found = Whitespace::ALL.into_iter().find(|w| w.name() == name);
        found.ok_or_else(|| unknown("treatment of white space", name, &all))
    }
}

/// Options of word and character error rate. Each edit costs 1. Of equally short alignments,
/// jiwer's is counted (`align:jiwer`). sclite's costs of 4, 3 and 3 are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRateOptions {
    /// Words or characters.
    pub unit: ErrorUnit,
    /// Treatment of case.
    pub case: Case,
    /// Treatment of white space.
    pub whitespace: Whitespace,
}
