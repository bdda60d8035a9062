//! Beam search in which an ended hypothesis keeps its place in the beam, in the two forms published
//! with recurrent translation models.
//!
//! TensorFlow's form applies the length penalty at every step. NVIDIA's form keeps the most likely
//! hypotheses and applies length and coverage penalties at the end. See
//! [`TokenSearchSpec`](zoo_recipes::tasks::translation::TokenSearchSpec). Ended places are not computed: only the other places
//! are rows of the decoder.
//!
//! The result for a sentence does not depend on its batch. In TensorFlow's batches it does, in one
//! respect: a finished sentence is scored again while others continue, with its end token counted.
//! Here a finished sentence keeps its scores, which is what TensorFlow computes for batches of one.

use zoo_recipes::MaxLength;

use super::sentence::{Sentence, run};
use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::Packed;

/// Settings of a beam search with places.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    /// Number of places of a sentence.
    pub size: usize,
    /// Rule that ranks the hypotheses during the search and at its end.
    pub weighing: Weighing,
    /// Maximum output length.
    pub max_length: &'a MaxLength,
}

/// The two published forms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weighing {
    /// Every step keeps the hypotheses with the best log p / ((5 + n) / 6)^alpha.
    Tensorflow {
        /// Exponent of the length penalty.
        alpha: f64,
    },
    /// Every step keeps the most likely hypotheses; penalties apply at the end of the search.
    Gnmt {
        /// Exponent of the length penalty.
        alpha: f64,
        /// Constant of the length penalty, added to lengths.
        constant: f64,
        /// Weight of the coverage penalty: the sum of log of the attention that each source
        /// position received.
        coverage: f64,
        /// Follows NVIDIA's code: attention sums stay with the place, not with the hypothesis, and
        /// a sentence at its maximum length is not rescored.
        as_coded: bool,
    },
}

/// One place of the beam.
#[derive(Debug, Clone)]
struct Place {
    tokens: Vec<u32>,
    log_p: f64,
    /// Score by which the last step ranked the place.
    score: f64,
    ended: bool,
    /// Sum of the attention that each source position received.
    attention: Vec<f64>,
}

/// Search of one sentence. Its places are ordered from best to worst.
struct PlacesSentence<'a> {
    search: &'a Places<'a>,
    end: u32,
    places: Vec<Place>,
    longest: usize,
    /// Number of steps taken.
    n: usize,
}

/// Candidate for a place: a parent place and its next token; `None` if the parent has ended.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    parent: usize,
    token: Option<u32>,
    log_p: f64,
    score: f64,
}

/// Returns for each source its hypotheses from best to worst, ended or not.
///
/// # Panics
/// If attention counts and the decoder has none. The decoder of a validated recipe has one.
pub fn places<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    search: &Places,
    ids: SearchIds,
) -> Vec<Vec<Hypothesis>> {
    let attends = search.weighing.counts_attention();
    let first = |length: u32| Place {
        tokens: Vec::new(),
        log_p: 0.0,
        score: 0.0,
        ended: false,
        attention: vec![0.0; if attends { length as usize } else { 0 }],
    };
    let row = |&length: &u32| PlacesSentence {
        search,
        end: ids.end,
        places: vec![first(length)],
        longest: limit(search.max_length, length),
        n: 0,
    };
    let mut rows: Vec<PlacesSentence> = sources.lengths.iter().map(row).collect();
    run(decoder, sources, &mut rows, attends);
    rows.into_iter().map(PlacesSentence::results).collect()
}

impl Sentence for PlacesSentence<'_> {
    fn rows(&self) -> usize {
        self.written().count()
    }

    fn advance(&mut self, scores: &[f32], vocabulary: usize, attention: &[f32]) -> Vec<(usize, u32)> {
        self.n += 1;
        let mut weights = attention.iter();
        for place in self.places.iter_mut().filter(|place| !place.ended) {
            place.attention.iter_mut().zip(&mut weights).for_each(|(sum, &weight)| *sum += f64::from(weight));
        }
        // Decoder row of each place that has not ended.
        let mut rows = vec![0; self.places.len()];
        self.written().enumerate().for_each(|(row, at)| rows[at] = row);
        let chosen = self.best(scores, vocabulary);
        self.take(&chosen);
        if self.n == self.longest {
            return Vec::new();
        }
        let goes_on = chosen.iter().filter_map(|candidate| Some((candidate, candidate.token?)));
        let goes_on = goes_on.filter(|(_, token)| *token != self.end);
        goes_on.map(|(candidate, token)| (rows[candidate.parent], token)).collect()
    }
}

impl PlacesSentence<'_> {
    /// Indices of the places that have not ended.
    fn written(&self) -> impl Iterator<Item = usize> {
        self.places.iter().enumerate().filter(|(_, place)| !place.ended).map(|(at, _)| at)
    }

    /// The best candidates, best first. Equal candidates are in the order of places, then tokens.
    fn best(&self, scores: &[f32], vocabulary: usize) -> Vec<Candidate> {
        let (count, weighing) = (self.search.size, self.search.weighing);
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
        let mut rows = scores.chunks_exact(vocabulary);
        for (parent, place) in self.places.iter().enumerate() {
            // The end token counts in the length only from the step after it.
            let (ends, goes_on) =
                (weighing.of_step(place.tokens.len()), weighing.of_step(place.tokens.len() + 1));
            if place.ended {
                offer(Candidate { parent, token: None, log_p: place.log_p, score: place.log_p / goes_on });
                continue;
            }
            for (token, &step) in (0..).zip(rows.next().expect("a row for each place that is written")) {
                let log_p = place.log_p + f64::from(step);
                let score = log_p / if token == self.end { ends } else { goes_on };
                offer(Candidate { parent, token: Some(token), log_p, score });
            }
        }
        best
    }

    fn take(&mut self, chosen: &[Candidate]) {
        let in_place = matches!(self.search.weighing, Weighing::Gnmt { as_coded: true, .. });
        let place = |(at, candidate): (usize, &Candidate)| {
            let parent = &self.places[candidate.parent];
            let mut tokens = parent.tokens.clone();
            tokens.extend(candidate.token.filter(|&token| token != self.end));
            // Before the first token all places are equal, so only one is computed.
            let from = if in_place { self.places.get(at).unwrap_or(&self.places[0]) } else { parent };
            Place {
                tokens,
                log_p: candidate.log_p,
                score: candidate.score,
                ended: candidate.token.is_none_or(|token| token == self.end),
                attention: from.attention.clone(),
            }
        };
        self.places = chosen.iter().enumerate().map(place).collect();
    }

    fn results(mut self) -> Vec<Hypothesis> {
        if let Weighing::Gnmt { alpha, constant, coverage, as_coded } = self.search.weighing {
            // NVIDIA's code rescores a sentence in the step after its last one.
            let in_time = self.places.iter().all(|place| place.ended) && self.n < self.longest;
            if !as_coded || in_time {
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

    /// Divisor of the log-probability of `n` tokens during the search.
    fn of_step(self, n: usize) -> f64 {
        match self {
            Self::Tensorflow { alpha } => ((5.0 + n as f64) / 6.0).powf(alpha),
            Self::Gnmt { .. } => 1.0,
        }
    }
}
