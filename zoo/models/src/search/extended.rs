//! Beam search in which an ended hypothesis is extended further, as in JoeyNMT: see
//! [`TokenSearchSpec`](zoo_recipes::tasks::translation::TokenSearchSpec).
//!
//! Tokens after an end token are not part of the output. They only decide how long such a
//! hypothesis keeps its place, and by how much its score changes. The result for a sentence does
//! not depend on its batch. In JoeyNMT it did until June 2019: states followed their hypotheses
//! only in steps in which a hypothesis of any sentence ended.

use zoo_recipes::MaxLength;

use super::extension::{Extension, likeliest};
use super::sentence::{Sentence, run};
use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::Packed;

/// Settings of a beam search that also extends ended hypotheses.
#[derive(Debug, Clone)]
pub struct Extended<'a> {
    /// Beam size.
    pub size: usize,
    /// Exponent of the length penalty ((5 + n) / 6)^alpha.
    pub alpha: f64,
    /// Whether a hypothesis that ends a second time is ranked again, as in JoeyNMT's code.
    pub as_coded: bool,
    /// Maximum output length.
    pub max_length: &'a MaxLength,
}

/// A hypothesis of the beam.
#[derive(Debug, Clone)]
struct Kept {
    /// Tokens before the first end token.
    tokens: Vec<u32>,
    log_p: f64,
    /// Number of end tokens in the hypothesis.
    ends: usize,
    /// Whether the last token is an end token.
    just_ended: bool,
}

/// Search of one sentence.
struct ExtendedSentence<'a> {
    search: &'a Extended<'a>,
    end: u32,
    kept: Vec<Kept>,
    ranked: Vec<Hypothesis>,
    longest: usize,
    /// Number of steps taken.
    n: usize,
}

/// Returns for each source its hypotheses from best to worst, at most as many as the beam size.
pub fn extended<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    search: &Extended,
    ids: SearchIds,
) -> Vec<Vec<Hypothesis>> {
    let sentence = |&length: &u32| ExtendedSentence {
        search,
        end: ids.end,
        kept: vec![Kept { tokens: Vec::new(), log_p: 0.0, ends: 0, just_ended: false }],
        ranked: Vec::new(),
        longest: limit(search.max_length, length),
        n: 0,
    };
    let mut sentences: Vec<ExtendedSentence> = sources.lengths.iter().map(sentence).collect();
    run(decoder, sources, &mut sentences, false);
    sentences.into_iter().map(ExtendedSentence::results).collect()
}

impl Sentence for ExtendedSentence<'_> {
    fn rows(&self) -> usize {
        self.kept.len()
    }

    fn advance(&mut self, scores: &[f32], vocabulary: usize, _: &[f32]) -> Vec<(usize, u32)> {
        self.n += 1;
        // All hypotheses have the same length, so the length penalty does not change their order.
        let log_ps = self.kept.iter().map(|kept| kept.log_p);
        let chosen = likeliest(log_ps, scores, vocabulary, self.search.size, |_| true);
        self.kept = chosen.iter().map(|extension| self.extend(extension)).collect();
        let done = self.n == self.longest || self.kept.first().is_none_or(|best| best.just_ended);
        let penalty = ((5.0 + self.n as f64) / 6.0).powf(self.search.alpha);
        let counts = |kept: &&Kept| (done || kept.just_ended) && (self.search.as_coded || kept.ends < 2);
        let ranked = self.kept.iter().filter(counts);
        let ranked =
            ranked.map(|kept| Hypothesis { tokens: kept.tokens.clone(), score: kept.log_p / penalty });
        self.ranked.extend(ranked);
        if done { Vec::new() } else { chosen.iter().map(|e| (e.parent, e.token)).collect() }
    }
}

impl ExtendedSentence<'_> {
    fn extend(&self, extension: &Extension) -> Kept {
        let (parent, just_ended) = (&self.kept[extension.parent], extension.token == self.end);
        let mut tokens = parent.tokens.clone();
        if parent.ends == 0 && !just_ended {
            tokens.push(extension.token);
        }
        Kept { tokens, log_p: extension.log_p, ends: parent.ends + usize::from(just_ended), just_ended }
    }

    fn results(mut self) -> Vec<Hypothesis> {
        self.ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.ranked.truncate(self.search.size);
        self.ranked
    }
}
