//! The likeliest token at each step.

use zoo_recipes::MaxLength;

use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::models::Packed;

/// One hypothesis for each source. A sentence that ended is computed no further.
pub fn greedy<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    max_length: &MaxLength,
    ids: SearchIds,
) -> Vec<Hypothesis> {
    let mut done = vec![Hypothesis { tokens: Vec::new(), score: 0.0 }; sources.lengths.len()];
    let limits: Vec<usize> = sources.lengths.iter().map(|&length| limit(max_length, length)).collect();
    let mut active: Vec<usize> = (0..done.len()).collect();
    let mut state = decoder.begin(sources);
    let mut last: Option<Vec<u32>> = None;
    while !active.is_empty() {
        let mut logits = decoder.step(&mut state, last.as_deref());
        logits.log_softmax();
        let mut kept = Vec::new();
        let mut next = Vec::new();
        for (row, scores) in logits.values.chunks_exact(logits.vocabulary).enumerate() {
            let sentence = &mut done[active[row]];
            let (token, score) = best(scores);
            sentence.score += f64::from(score);
            if token == ids.end {
                continue;
            }
            sentence.tokens.push(token);
            if sentence.tokens.len() < limits[active[row]] {
                kept.push(row);
                next.push(token);
            }
        }
        decoder.select(&mut state, &kept);
        active = kept.iter().map(|&row| active[row]).collect();
        last = Some(next);
    }
    done
}

/// The largest score and the first token that has it. No token is forbidden.
fn best(scores: &[f32]) -> (u32, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, &score) in scores.iter().enumerate() {
        if score > best.1 {
            best = (token as u32, score);
        }
    }
    best
}
