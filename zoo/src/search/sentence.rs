//! The loop that all searches share. Sentences of a batch are computed together and do not know of each other.

use rayon::prelude::*;

use super::StepDecoder;
use crate::models::Packed;

/// One sentence's search.
pub trait Sentence: Send {
    /// Hypotheses that are to be extended: rows of the decoder.
    fn rows(&self) -> usize;

    /// Takes a step. `scores` are log-probabilities [rows, vocabulary]; `attention` are weights [rows, source tokens], or nothing.
    /// Gives the rows that go on, each with the token that it has got; none if the sentence is done.
    fn advance(&mut self, scores: &[f32], vocabulary: usize, attention: &[f32]) -> Vec<(usize, u32)>;
}

/// Searches until all sentences are done; they begin with one row each. With `attends` they are shown the decoder's attention.
///
/// # Panics
/// If attention is asked for and the decoder has none; a checked recipe's has.
pub fn run<D: StepDecoder, S: Sentence>(decoder: &D, sources: &Packed, sentences: &mut [S], attends: bool) {
    let mut active: Vec<(usize, &mut S)> =
        sources.lengths.iter().map(|&length| length as usize).zip(sentences).collect();
    let mut state = decoder.begin(sources);
    let mut last: Option<Vec<u32>> = None;
    while !active.is_empty() {
        let mut logits = decoder.step(&mut state, last.as_deref());
        logits.log_softmax();
        let weights = match attends {
            true => decoder.attention(&state).expect("the decoder has one attention"),
            false => Vec::new(),
        };
        let (mut rows, mut weighed) = (0, 0);
        let mut of_sentences = Vec::with_capacity(active.len());
        for (length, sentence) in &mut active {
            let (first, before) = (rows, weighed);
            rows += sentence.rows();
            weighed += if attends { sentence.rows() * *length } else { 0 };
            let scores = &logits.values[first * logits.vocabulary..rows * logits.vocabulary];
            of_sentences.push((first, sentence, scores, &weights[before..weighed]));
        }
        let extended: Vec<Vec<(usize, u32)>> = of_sentences
            .into_par_iter()
            .map(|(first, sentence, scores, attention)| {
                let extended = sentence.advance(scores, logits.vocabulary, attention);
                extended.into_iter().map(|(row, token)| (first + row, token)).collect()
            })
            .collect();
        let mut goes_on = extended.iter().map(|rows| !rows.is_empty());
        active.retain(|_| goes_on.next().expect("one answer for each sentence"));
        if active.is_empty() {
            break;
        }
        let (kept, next): (Vec<usize>, Vec<u32>) = extended.into_iter().flatten().unzip();
        decoder.select(&mut state, &kept);
        last = Some(next);
    }
}
