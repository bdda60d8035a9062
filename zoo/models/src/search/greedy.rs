//! Greedy search: the most likely token at each step.

use zoo_recipes::MaxLength;

use super::sentence::{Sentence, run};
use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::Packed;

/// A sentence and its one hypothesis.
struct GreedySentence {
    best: Hypothesis,
    longest: usize,
    end: u32,
}

/// Returns one hypothesis for each source. Ended sentences are not computed further.
pub fn greedy<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    max_length: &MaxLength,
    ids: SearchIds,
) -> Vec<Hypothesis> {
    let line = |&length: &u32| GreedySentence {
        best: Hypothesis { tokens: Vec::new(), score: 0.0 },
        longest: limit(max_length, length),
        end: ids.end,
    };
    let mut lines: Vec<GreedySentence> = sources.lengths.iter().map(line).collect();
    run(decoder, sources, &mut lines, false);
    lines.into_iter().map(|line| line.best).collect()
}

impl Sentence for GreedySentence {
    fn rows(&self) -> usize {
        1
    }

    fn advance(&mut self, scores: &[f32], _: usize, _: &[f32]) -> Vec<(usize, u32)> {
        let (token, score) = best(scores);
        self.best.score += f64::from(score);
        if token == self.end {
            return Vec::new();
        }
        self.best.tokens.push(token);
        if self.best.tokens.len() < self.longest { vec![(0, token)] } else { Vec::new() }
    }
}

/// The largest score and its first token. No token is forbidden.
fn best(scores: &[f32]) -> (u32, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, &score) in scores.iter().enumerate() {
        if score > best.1 {
            best = (token as u32, score);
        }
    }
    best
}
