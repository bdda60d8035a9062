//! Beam search in which an ended hypothesis goes on to be extended, as JoeyNMT has it: see [`DecodeSpec`](zoo_recipes::DecodeSpec).
//!
//! What the decoder writes behind an end token is never read; it only decides how long such a hypothesis keeps its place, and by how much
//! its score changes. Sentences of a batch do not know of each other. JoeyNMT's did until June 2019: states followed their hypotheses in
//! those steps alone in which a hypothesis of any sentence ended.

use zoo_recipes::MaxLength;

use super::extension::{Extension, likeliest};
use super::sentence::{Sentence, run};
use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::models::Packed;

/// A beam search that extends what has ended too.
#[derive(Debug, Clone)]
pub struct Extended<'a> {
    /// Hypotheses kept.
    pub size: usize,
    /// Of the length penalty ((5 + n) / 6)^alpha.
    pub alpha: f64,
    /// What ends again is ranked again.
    pub as_coded: bool,
    /// Longest output.
    pub max_length: &'a MaxLength,
}

/// A hypothesis in the beam.
#[derive(Debug, Clone)]
struct Kept {
    /// Up to the first end token, which is left out.
    tokens: Vec<u32>,
    log_p: f64,
    /// End tokens in it.
    ends: usize,
    /// The last token is one.
    just_ended: bool,
}

/// One sentence's search.
struct ExtendedSentence<'a> {
    search: &'a Extended<'a>,
    end: u32,
    kept: Vec<Kept>,
    ranked: Vec<Hypothesis>,
    longest: usize,
    /// Steps taken.
    n: usize,
}

/// For each source, hypotheses from best to worst, as many as the beam holds at most.
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
        // All are of one length, which therefore decides nothing.
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
