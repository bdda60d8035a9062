//! The loop that all token searches share. Sentences of a batch are computed together, and their
//! results are independent of each other.

use rayon::prelude::*;

use super::StepDecoder;
use crate::Packed;

/// Search of one sentence.
pub trait Sentence: Send {
    /// Number of hypotheses to extend: rows of the decoder.
    fn rows(&self) -> usize;

    /// Takes one step. `scores` are log-probabilities `[rows, vocabulary]`; `attention` is
    /// `[rows, source tokens]`, or empty. Returns the rows that continue, each with its new token;
    /// empty when the sentence is done.
    fn advance(&mut self, scores: &[f32], vocabulary: usize, attention: &[f32]) -> Vec<(usize, u32)>;
}

/// Runs the searches until all sentences are done. Each starts with one row. `attends` passes the
/// decoder's attention weights to the searches.
///
/// # Panics
/// If `attends` is set and the decoder has no attention. The decoder of a validated recipe has one.
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
