//! Locates good and bad parts of a corpus of sentences: the worst sentences, and the score by
//! length.

use zoo_recipes::spec::Direction;

use super::numpy_random::NumpyRandom;
use super::scorer::Scorer;
use super::segments::SegmentStatistics;
use crate::metrics::contract::{Arithmetic, ScoreError};
use crate::metrics::registry::Convention;

/// Statistics of every sentence of a corpus, by the corpus's convention and by one that suits
/// single sentences.
#[derive(Debug, Clone, PartialEq)]
pub struct SentenceReport {
    corpus: SegmentStatistics,
    sentences: SegmentStatistics,
    lengths: Vec<u64>,
}

/// A sentence with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SentenceScore {
    /// Line number, from 1.
    pub line: usize,
    /// Score of this sentence alone.
    pub score: f64,
}

/// Sentences of similar length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredLength {
    /// Fewest words of the reference.
    pub from: u64,
    /// Most words of the reference; `None` means no limit.
    pub to: Option<u64>,
    /// Number of sentences.
    pub sentences: usize,
    /// Their score as a corpus.
    pub score: f64,
}

impl SentenceReport {
    /// The report of hypotheses against references, one of each per sentence.
    ///
    /// # Errors
    /// There are none, their numbers differ, or the metric is not computed from text.
    pub fn new(
        hypotheses: &[String],
        references: &[String],
        convention: Convention,
    ) -> Result<Self, ScoreError> {
        let streams = [references.to_vec()];
        let corpus = Scorer::new(convention)?.statistics(hypotheses, &streams)?;
        let sentences = Scorer::new(convention.of_sentences())?.statistics(hypotheses, &streams)?;
        let lengths = references.iter().map(|line| line.split_whitespace().count() as u64).collect();
        Ok(Self { corpus, sentences, lengths })
    }

    /// Convention for single sentences. For BLEU, it is sacreBLEU's sentence BLEU, which is
    /// smoothed and uses no higher orders than the sentence has. For other metrics, it is the
    /// metric itself.
    pub fn convention(&self) -> &Convention {
        &self.sentences.signature().convention
    }

    /// The score of a single sentence; `line` counts from 1. `None` beyond the end of the corpus.
    pub fn score(&self, line: usize) -> Option<f64> {
        let at = line.checked_sub(1).filter(|at| *at < self.sentences.len())?;
        Some(self.sentences.resampled_value(&[at as u32], &mut Vec::new(), Arithmetic::Double))
    }

    /// The worst sentences, at most `most`. Ties are ordered by longer reference, then by line.
    pub fn worst(&self, most: usize) -> Vec<SentenceScore> {
        let mut all: Vec<SentenceScore> = (1..=self.sentences.len())
            .filter_map(|line| Some(SentenceScore { line, score: self.score(line)? }))
            .collect();
        let higher = self.convention().entry().direction == Direction::Higher;
        let worse = |one: &SentenceScore, other: &SentenceScore| match higher {
            true => one.score.total_cmp(&other.score),
            false => other.score.total_cmp(&one.score),
        };
        let length = |one: &SentenceScore| self.lengths[one.line - 1];
        all.sort_by(|one, other| worse(one, other).then(length(other).cmp(&length(one))));
        all.truncate(most);
        all
    }

    /// Draws `most` sentences with a fixed seed, in the order of their lines. Corpora of equal size
    /// give the same lines.
    pub fn drawn(&self, most: usize) -> Vec<SentenceScore> {
        let (mut random, mut lines) = (NumpyRandom::new(0), std::collections::BTreeSet::new());
        let all = self.sentences.len();
        while lines.len() < most.min(all) {
            lines.insert(1 + random.below(u32::try_from(all).unwrap_or(u32::MAX)) as usize);
        }
        lines.into_iter().filter_map(|line| Some(SentenceScore { line, score: self.score(line)? })).collect()
    }

    /// The corpus score by words of the reference. Classes end at each of `limits`, which must
    /// rise, and the last class has no end. Empty classes are left out.
    pub fn by_length(&self, limits: &[u64]) -> Vec<ScoredLength> {
        let ends = limits.iter().copied().map(Some).chain([None]);
        let starts = std::iter::once(0).chain(limits.iter().map(|limit| limit + 1));
        let class = |(from, to): (u64, Option<u64>)| {
            let inside = |at: &u32| (from..=to.unwrap_or(u64::MAX)).contains(&self.lengths[*at as usize]);
            let of: Vec<u32> = (0..self.lengths.len() as u32).filter(inside).collect();
            let score = self.corpus.resampled_value(&of, &mut Vec::new(), Arithmetic::Double);
            ScoredLength { from, to, sentences: of.len(), score }
        };
        starts.zip(ends).map(class).filter(|class| class.sentences > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::signature::Signature;
    use super::*;

    fn text(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn the_worst_come_first_and_classes_are_scored_as_corpora() {
        let references = text(&["a b c d", "a b", "e f g h i", "e f", ""]);
        let hypotheses = text(&["a b c d", "x y", "e f g x i", "x", ""]);
        let bleu = Signature::parse("nrefs:1|case:mixed|eff:no|tok:none|smooth:exp").unwrap();
        let convention = bleu.convention;
        let report = SentenceReport::new(&hypotheses, &references, convention).unwrap();
        let lines = |most| report.worst(most).iter().map(|worst| worst.line).collect::<Vec<_>>();
        // Empty sentences and those without a match score 0; of these, the longer reference comes
        // first.
        assert_eq!(lines(9), [2, 4, 5, 3, 1]);
        assert_eq!(lines(1), [2]);
        assert!((report.score(1).unwrap() - 100.0).abs() < 1e-9);
        // sacrebleu.sentence_bleu("e f g x i", ["e f g h i"], tokenize="none").score
        assert!((report.score(3).unwrap() - 42.728_700_639_623_4).abs() < 1e-9, "{:?}", report.score(3));
        assert_eq!((report.score(0), report.score(6)), (None, None));
        let classes = report.by_length(&[2, 4]);
        let found: Vec<_> = classes.iter().map(|c| (c.from, c.to, c.sentences)).collect();
        assert_eq!(found, [(0, Some(2), 3), (3, Some(4), 1), (5, None, 1)]);
        assert!((classes[1].score - 100.0).abs() < 1e-9 && classes[0].score == 0.0);
        let whole = report.by_length(&[]);
        assert_eq!(whole.len(), 1);
        assert_eq!(whole[0].score, report.corpus.value());
        assert!(SentenceReport::new(&hypotheses, &references[..2], convention).is_err());
    }

    #[test]
    fn lower_is_better_is_minded_and_draws_are_the_same_for_all() {
        let references = text(&["a b", "c d", "e f"]);
        let report = |hypotheses: &[&str]| {
            SentenceReport::new(&text(hypotheses), &references, Convention::ExactMatch(Default::default()))
                .unwrap()
        };
        let right = report(&["a b", "x", "e f"]);
        assert_eq!(right.worst(1)[0], SentenceScore { line: 2, score: 0.0 });
        let drawn = |report: &SentenceReport| report.drawn(2).iter().map(|one| one.line).collect::<Vec<_>>();
        assert_eq!(drawn(&right).len(), 2);
        assert_eq!(drawn(&right), drawn(&report(&["", "", ""])));
        assert_eq!(right.drawn(9).len(), 3);
    }
}
