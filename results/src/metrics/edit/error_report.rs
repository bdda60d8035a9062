//! Locates the errors of a corpus: the worst utterances, and the rate by length.

use serde::{Deserialize, Serialize};

use super::error_rate::{self, Alignment, EditCounts};
use super::options::ErrorRateOptions;
use crate::metrics::contract::ScoreError;

/// The edits of every utterance of a corpus.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorReport<'a> {
    hypotheses: &'a [String],
    references: &'a [String],
    options: ErrorRateOptions,
    counts: Vec<EditCounts>,
}

/// An utterance with its errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utterance {
    /// Line number, from 1.
    pub line: usize,
    /// Number of edits of each kind.
    pub counts: EditCounts,
    /// Alignment of its words or characters.
    pub alignment: Alignment,
}

/// Utterances of similar length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthClass {
    /// Fewest units of the reference.
    pub from: u64,
    /// Most units of the reference; `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Number of utterances.
    pub utterances: usize,
    /// Their edits.
    pub counts: EditCounts,
}

impl<'a> ErrorReport<'a> {
    /// The report of hypotheses against references, one of each per utterance.
    ///
    /// # Errors
    /// There are none, or their numbers differ.
    pub fn new(
        hypotheses: &'a [String],
        references: &'a [String],
        options: ErrorRateOptions,
    ) -> Result<Self, ScoreError> {
        let counts = error_rate::corpus(hypotheses, &[references], &options)?;
        Ok(ErrorReport { hypotheses, references, options, counts })
    }

    /// Edits by utterance.
    pub fn counts(&self) -> &[EditCounts] {
        &self.counts
    }

    /// The utterances with the most errors, at most `most`; correct utterances are left out. Ties
    /// are ordered by shorter reference, then by line.
    pub fn worst(&self, most: usize) -> Vec<Utterance> {
        let mut wrong: Vec<usize> =
            (0..self.counts.len()).filter(|at| self.counts[*at].errors() > 0).collect();
        wrong.sort_by_key(|at| {
            let counts = self.counts[*at];
            (std::cmp::Reverse(counts.errors()), counts.reference_length())
        });
        wrong.truncate(most);
        let utterance = |at: usize| Utterance {
            line: at + 1,
            counts: self.counts[at],
            alignment: self.options.align(&self.references[at], &self.hypotheses[at]),
        };
        wrong.into_iter().map(utterance).collect()
    }

    /// The edits by length of the reference. Classes end at each of `limits`, which must rise, and
    /// the last class has no end. Empty classes are left out.
    pub fn by_length(&self, limits: &[u64]) -> Vec<LengthClass> {
        let ends = limits.iter().copied().map(Some).chain([None]);
        let starts = std::iter::once(0).chain(limits.iter().map(|limit| limit + 1));
        let class = |(from, to): (u64, Option<u64>)| {
            let inside =
                |counts: &&EditCounts| (from..=to.unwrap_or(u64::MAX)).contains(&counts.reference_length());
            let of = self.counts.iter().filter(inside);
            LengthClass { from, to, utterances: of.clone().count(), counts: of.copied().sum() }
        };
        starts.zip(ends).map(class).filter(|class| class.utterances > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{ErrorUnit, Whitespace};
    use super::*;
    use crate::metrics::contract::Case;

    #[test]
    fn the_worst_come_first_and_lengths_add_up() {
        let text = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
        let references = text(&["a b c", "d", "e f g h", "i j", ""]);
        let hypotheses = text(&["a b c", "x y", "e f", "k l", ""]);
        let options =
            ErrorRateOptions { unit: ErrorUnit::Word, case: Case::Mixed, whitespace: Whitespace::Jiwer };
        let report = ErrorReport::new(&hypotheses, &references, options).unwrap();
        let lines = |most| report.worst(most).iter().map(|worst| worst.line).collect::<Vec<_>>();
        assert_eq!((lines(9), lines(1), lines(0)), (vec![2, 4, 3], vec![2], vec![]));
        let worst = &report.worst(1)[0];
        assert_eq!((worst.counts, worst.alignment.counts().errors()), (worst.alignment.counts(), 2));
        let classes = report.by_length(&[1, 2, 3, 3, 9]);
        let found: Vec<_> = classes.iter().map(|c| (c.from, c.to, c.utterances, c.counts.errors())).collect();
        assert_eq!(found, [(0, Some(1), 2, 2), (2, Some(2), 1, 2), (3, Some(3), 1, 0), (4, Some(9), 1, 2)]);
        let whole: EditCounts = report.counts().iter().copied().sum();
        assert_eq!(classes.iter().map(|class| class.counts).sum::<EditCounts>(), whole);
        assert_eq!(report.by_length(&[]), [LengthClass { from: 0, to: None, utterances: 5, counts: whole }]);
        assert!(ErrorReport::new(&hypotheses, &references[..2], options).is_err());
    }
}
