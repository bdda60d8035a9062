//! Beam search in its two published forms.
//!
//! Both select the 2 x beam most likely one-token extensions of a sentence's hypotheses, so that
//! enough hypotheses remain when others end. They differ in when an ended hypothesis counts and
//! when the search of a sentence stops; see [`StopRule`]. The result for a sentence does not depend
//! on its batch.

use zoo_recipes::MaxLength;
use zoo_recipes::tasks::translation::{LengthPenalty, StopRule};

use super::extension::{Extension, likeliest};
use super::sentence::{Sentence, run};
use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::Packed;

/// Settings of a beam search.
#[derive(Debug, Clone)]
pub struct Beam<'a> {
    /// Number of hypotheses kept alive.
    pub size: usize,
    /// Length penalty that ranks finished hypotheses.
    pub length_penalty: &'a LengthPenalty,
    /// Rule that ends the search of a sentence.
    pub stop: StopRule,
    /// Maximum output length.
    pub max_length: &'a MaxLength,
}

impl Beam<'_> {
    /// Divisor of the log-probability of `n` tokens, including the end token.
    fn penalty(&self, n: usize) -> f64 {
        match self.length_penalty {
            LengthPenalty::None => 1.0,
            LengthPenalty::Gnmt { alpha } => ((5.0 + n as f64) / 6.0).powf(*alpha),
            LengthPenalty::LengthPower { alpha } => (n as f64).powf(*alpha),
        }
    }
}

/// A hypothesis that has not ended.
#[derive(Debug, Clone)]
struct Alive {
    tokens: Vec<u32>,
    log_p: f64,
}

/// Search of one sentence.
struct BeamSentence<'a> {
    beam: &'a Beam<'a>,
    ids: SearchIds,
    alive: Vec<Alive>,
    finished: Vec<Hypothesis>,
    longest: usize,
    /// Number of steps taken.
    n: usize,
}

/// Returns for each source its finished hypotheses from best to worst.
pub fn beam<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    beam: &Beam,
    ids: SearchIds,
) -> Vec<Vec<Hypothesis>> {
    let sentence = |&length: &u32| BeamSentence {
        beam,
        ids,
        alive: vec![Alive { tokens: Vec::new(), log_p: 0.0 }],
        finished: Vec::new(),
        longest: limit(beam.max_length, length),
        n: 0,
    };
    let mut sentences: Vec<BeamSentence> = sources.lengths.iter().map(sentence).collect();
    run(decoder, sources, &mut sentences, false);
    sentences.into_iter().map(BeamSentence::results).collect()
}

impl Sentence for BeamSentence<'_> {
    fn rows(&self) -> usize {
        self.alive.len()
    }

    fn advance(&mut self, scores: &[f32], vocabulary: usize, _: &[f32]) -> Vec<(usize, u32)> {
        self.n += 1;
        let extensions = self.likeliest(scores, vocabulary);
        let done = self.finish(&extensions);
        let going_on: Vec<&Extension> =
            extensions.iter().filter(|e| e.token != self.ids.end).take(self.beam.size).collect();
        let alive = going_on.iter().map(|e| {
            let mut tokens = self.alive[e.parent].tokens.clone();
            tokens.push(e.token);
            Alive { tokens, log_p: e.log_p }
        });
        self.alive = alive.collect();
        if done { Vec::new() } else { going_on.iter().map(|e| (e.parent, e.token)).collect() }
    }
}

impl BeamSentence<'_> {
    /// The 2 x beam most likely extensions.
    fn likeliest(&self, scores: &[f32], vocabulary: usize) -> Vec<Extension> {
        let log_ps = self.alive.iter().map(|alive| alive.log_p);
        likeliest(log_ps, scores, vocabulary, 2 * self.beam.size, |token| self.allows(token))
    }

    /// Whether a token is allowed. fairseq forbids padding, an empty output, and continuing at the
    /// maximum length; tensor2tensor forbids nothing.
    fn allows(&self, token: u32) -> bool {
        match self.beam.stop {
            StopRule::CannotImprove => true,
            StopRule::BeamFinished if token == self.ids.pad => false,
            StopRule::BeamFinished if self.n == self.longest => token == self.ids.end,
            StopRule::BeamFinished => self.n > 1 || token != self.ids.end,
        }
    }

    /// Moves the extensions that end to the finished hypotheses. Returns whether the sentence is
    /// done.
    fn finish(&mut self, extensions: &[Extension]) -> bool {
        let (beam, end, n) = (self.beam, self.ids.end, self.n);
        let ended = |e: &Extension, alive: &[Alive]| Hypothesis {
            tokens: alive[e.parent].tokens.clone(),
            score: e.log_p / beam.penalty(n),
        };
        match beam.stop {
            StopRule::CannotImprove => {
                let new = extensions.iter().filter(|e| e.token == end).map(|e| ended(e, &self.alive));
                self.finished.extend(new);
                self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
                self.finished.truncate(beam.size);
                let best_alive = extensions.iter().find(|e| e.token != end).map(|e| e.log_p);
                // The best score that an alive hypothesis can reach: its log p, which can only
                // fall, with the penalty of the maximum length.
                let reachable =
                    best_alive.map_or(f64::NEG_INFINITY, |log_p| log_p / beam.penalty(self.longest));
                n == self.longest || self.finished.last().is_some_and(|worst| worst.score > reachable)
            }
            StopRule::BeamFinished => {
                let room = beam.size - self.finished.len();
                let new = extensions.iter().take(beam.size).filter(|e| e.token == end).take(room);
                self.finished.extend(new.map(|e| ended(e, &self.alive)));
                self.finished.len() == beam.size || n == self.longest
            }
        }
    }

    /// Finished hypotheses, best first; without any, the alive ones with their log-probabilities.
    fn results(mut self) -> Vec<Hypothesis> {
        if self.finished.is_empty() {
            let alive = self.alive.into_iter();
            self.finished = alive.map(|a| Hypothesis { tokens: a.tokens, score: a.log_p }).collect();
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(self.beam.size);
        self.finished
    }
}
