//! Options of word and character error rate, as closed sets.

use crate::metrics::error::{ScoreError, unknown};
use crate::metrics::text::options::Case;

/// What an error rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorUnit {
    /// Words: the metric is `wer`.
    Word,
    /// Code points, spaces among them: the metric is `cer`.
    Character,
}

/// What an error rate makes of white space; ends of lines never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// As jiwer 4.0 does unasked. Words part at U+0020 and at two white-space characters or more: one tab alone stays inside of a word.
    /// Characters stand as they are.
    #[default]
    Jiwer,
    /// Runs of any white space are one space: Python's `str.split`, which OpenSeq2Seq counts words by.
    Collapse,
}

impl Whitespace {
    /// All of them.
    pub const ALL: [Whitespace; 2] = [Whitespace::Jiwer, Whitespace::Collapse];

    /// The name in a signature's `space:` part.
    pub fn name(self) -> &'static str {
        match self {
            Whitespace::Jiwer => "jiwer",
            Whitespace::Collapse => "collapse",
        }
    }

    /// The treatment of that name.
    pub fn parse(name: &str) -> Result<Self, ScoreError> {
        let all = Whitespace::ALL.map(Whitespace::name);
        let found = Whitespace::ALL.into_iter().find(|w| w.name() == name);
        found.ok_or_else(|| unknown("treatment of white space", name, &all))
    }
}

/// Options of word and character error rate. Edits cost 1 each; of equally short alignments jiwer's is counted (`align:jiwer`).
/// sclite's costs of 4, 3 and 3 are not built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRateOptions {
    /// Words or characters.
    pub unit: ErrorUnit,
    /// Case.
    pub case: Case,
    /// White space.
    pub whitespace: Whitespace,
}
