//! Beam search in which an ended hypothesis goes on to hold its place, in the two forms that recurrent translation was published with.
//!
//! TensorFlow's weighs lengths at every step; NVIDIA's keeps what is likeliest and weighs lengths and attention at the end. See
//! [`DecodeSpec`](zoo_recipes::DecodeSpec). Places that have ended are not computed: only the others are rows of the decoder.
//! Sentences of a batch do not know of each other. TensorFlow's own batches do in one thing: a sentence that is done is weighed again
//! while others go on, its end token counted. Here it is what it was when it was done, which is what batches of one give.

use rayon::prelude::*;
use zoo_recipes::MaxLength;

use super::{Hypothesis, Logits, SearchIds, StepDecoder, limit};
use crate::models::Packed;

/// A beam search with places.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    /// Places of a sentence.
    pub size: usize,
    /// What is kept, and what is best in the end.
    pub weighing: Weighing,
    /// Longest output.
    pub max_length: &'a MaxLength,
}

/// The two forms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weighing {
    /// Every step keeps the best of log p / ((5 + n) / 6)^alpha.
    Tensorflow {
        /// Exponent.
        alpha: f64,
    },
    /// Every step keeps the likeliest; the end weighs.
    Gnmt {
        /// Exponent.
        alpha: f64,
        /// Added to lengths.
        constant: f64,
        /// Times the sum of the logarithms of the attention that each position got.
        coverage: f64,
        /// Attention stays in its place, and a sentence at its limit is not weighed.
        as_coded: bool,
    },
}

/// A hypothesis in its place.
#[derive(Debug, Clone)]
struct Place {
    tokens: Vec<u32>,
    log_p: f64,
    /// Under the weighing of a step.
    score: f64,
    ended: bool,
    /// Attention that the source's positions got.
    attention: Vec<f64>,
}

/// One sentence's search: its places from best to worst.
struct Sentence {
    places: Vec<Place>,
    longest: usize,
}

/// What may come into a place: a place and its next token, none if it had ended.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    parent: usize,
    token: Option<u32>,
    log_p: f64,
    score: f64,
}

/// For each source, hypotheses from best to worst, ended or not.
///
/// # Panics
/// If attention counts and the decoder has none; a checked recipe's has.
pub fn places<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    search: &Places,
    ids: SearchIds,
) -> Vec<Vec<Hypothesis>> {
    let first = |length: u32| Place {
        tokens: Vec::new(),
        log_p: 0.0,
        score: 0.0,
        ended: false,
        attention: vec![0.0; if search.weighing.counts_attention() { length as usize } else { 0 }],
    };
    let sentence =
        |&length: &u32| Sentence { places: vec![first(length)], longest: limit(search.max_length, length) };
    let mut sentences: Vec<Sentence> = sources.lengths.iter().map(sentence).collect();
    let mut active: Vec<usize> = (0..sentences.len()).collect();
    let mut state = decoder.begin(sources);
    let mut last: Option<Vec<u32>> = None;
    let mut n = 0;
    while !active.is_empty() {
        n += 1;
        let mut logits = decoder.step(&mut state, last.as_deref());
        logits.log_softmax();
        if search.weighing.counts_attention() {
            let weights = decoder.attention(&state).expect("the decoder has one attention");
            attend(&mut sentences, &active, &weights);
        }
        let firsts = first_rows(&sentences, &active);
        let chosen: Vec<Vec<Candidate>> = active
            .par_iter()
            .zip(&firsts)
            .map(|(&index, &first)| best(&sentences[index], &logits, first, search, ids))
            .collect();
        let (mut kept, mut next, mut still_active) = (Vec::new(), Vec::new(), Vec::new());
        for ((&index, &first), chosen) in active.iter().zip(&firsts).zip(&chosen) {
            let sentence = &mut sentences[index];
            let rows = sentence.rows();
            sentence.take(chosen, search, ids);
            if n == sentence.longest || sentence.places.iter().all(|place| place.ended) {
                continue;
            }
            still_active.push(index);
            for (place, candidate) in sentence.places.iter().zip(chosen).filter(|(place, _)| !place.ended) {
                kept.push(first + rows[candidate.parent].expect("what goes on was computed"));
                next.push(*place.tokens.last().expect("just extended"));
            }
        }
        decoder.select(&mut state, &kept);
        active = still_active;
        last = Some(next);
    }
    sentences.into_iter().map(|sentence| sentence.results(search)).collect()
}

/// The decoder's first row of each active sentence.
fn first_rows(sentences: &[Sentence], active: &[usize]) -> Vec<usize> {
    let mut rows = 0;
    let rows_of = |&index: &usize| {
        let first = rows;
        rows += sentences[index].places.iter().filter(|place| !place.ended).count();
        first
    };
    active.iter().map(rows_of).collect()
}

/// Adds what the last step weighed to each place that is still written.
fn attend(sentences: &mut [Sentence], active: &[usize], weights: &[f32]) {
    let mut weights = weights.iter();
    for &index in active {
        for place in sentences[index].places.iter_mut().filter(|place| !place.ended) {
            place.attention.iter_mut().zip(&mut weights).for_each(|(sum, &weight)| *sum += f64::from(weight));
        }
    }
}

/// The candidates for a sentence's places, best first; equal ones in the order of places, then tokens.
fn best(
    sentence: &Sentence,
    logits: &Logits,
    first: usize,
    search: &Places,
    ids: SearchIds,
) -> Vec<Candidate> {
    let count = search.size;
    let mut best: Vec<Candidate> = Vec::with_capacity(count + 1);
    let mut offer = |candidate: Candidate| {
        let full = best.len() == count;
        if !candidate.log_p.is_finite() || full && candidate.score <= best[count - 1].score {
            return;
        }
        let place = best.partition_point(|other| other.score >= candidate.score);
        best.insert(place, candidate);
        best.truncate(count);
    };
    let mut row = first;
    for (parent, place) in sentence.places.iter().enumerate() {
        if place.ended {
            // Its end token counts from now on.
            let score = place.log_p / search.weighing.of_step(place.tokens.len() + 1);
            offer(Candidate { parent, token: None, log_p: place.log_p, score });
            continue;
        }
        let scores = &logits.values[row * logits.vocabulary..][..logits.vocabulary];
        row += 1;
        let goes_on = search.weighing.of_step(place.tokens.len() + 1);
        let ends = search.weighing.of_step(place.tokens.len());
        for (token, &step) in (0..).zip(scores) {
            let log_p = place.log_p + f64::from(step);
            let score = log_p / if token == ids.end { ends } else { goes_on };
            offer(Candidate { parent, token: Some(token), log_p, score });
        }
    }
    best
}

impl Sentence {
    /// Which of the sentence's rows each place is.
    fn rows(&self) -> Vec<Option<usize>> {
        let mut row = 0;
        let row_of = |place: &Place| {
            (!place.ended).then(|| {
                row += 1;
                row - 1
            })
        };
        self.places.iter().map(row_of).collect()
    }

    fn take(&mut self, chosen: &[Candidate], search: &Places, ids: SearchIds) {
        let in_place = matches!(search.weighing, Weighing::Gnmt { as_coded: true, .. });
        let place = |(at, candidate): (usize, &Candidate)| {
            let parent = &self.places[candidate.parent];
            let mut tokens = parent.tokens.clone();
            tokens.extend(candidate.token.filter(|&token| token != ids.end));
            // Before the first token all places are one, which is computed once.
            let from = if in_place { self.places.get(at).unwrap_or(&self.places[0]) } else { parent };
            Place {
                tokens,
                log_p: candidate.log_p,
                score: candidate.score,
                ended: candidate.token.is_none_or(|token| token == ids.end),
                attention: from.attention.clone(),
            }
        };
        self.places = chosen.iter().enumerate().map(place).collect();
    }

    fn results(mut self, search: &Places) -> Vec<Hypothesis> {
        if let Weighing::Gnmt { alpha, constant, coverage, as_coded } = search.weighing {
            let all_ended = self.places.iter().all(|place| place.ended);
            let written =
                self.places.iter().map(|p| p.tokens.len() + usize::from(p.ended)).max().unwrap_or(0);
            // The code weighs a sentence in the step behind its last one.
            if !as_coded || all_ended && written < self.longest {
                for place in &mut self.places {
                    let length = (1 + place.tokens.len() + usize::from(place.ended)) as f64;
                    place.score = place.log_p / ((constant + length) / (constant + 1.0)).powf(alpha);
                    let logs = place.attention.iter().map(|sum| sum.clamp(0.0, 1.0).ln());
                    place.score += coverage * logs.filter(|log| log.is_finite()).sum::<f64>();
                }
            }
            self.places.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        let hypothesis = |place: Place| Hypothesis { tokens: place.tokens, score: place.score };
        self.places.into_iter().map(hypothesis).collect()
    }
}

impl Weighing {
    fn counts_attention(self) -> bool {
        matches!(self, Self::Gnmt { coverage, .. } if coverage > 0.0)
    }

    /// What a step divides the log-probability of so many tokens by.
    fn of_step(self, n: usize) -> f64 {
        match self {
            Self::Tensorflow { alpha } => ((5.0 + n as f64) / 6.0).powf(alpha),
            Self::Gnmt { .. } => 1.0,
        }
    }
}
