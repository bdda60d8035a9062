//! Beam search in its two published forms.
//!
//! Both look at the 2 x beam likeliest one-token extensions of a sentence's hypotheses, so that enough of them go on when
//! others end. They differ in when an ended one counts and when the search of a sentence stops; see [`StopRule`].
//! Sentences of a batch do not know of each other: what is written does not depend on the batch.

use rayon::prelude::*;
use zoo_recipes::{LengthPenalty, MaxLength, StopRule};

use super::{Hypothesis, SearchIds, StepDecoder, limit};
use crate::models::Packed;

/// A beam search.
#[derive(Debug, Clone)]
pub struct Beam<'a> {
    /// Hypotheses kept alive.
    pub size: usize,
    /// How finished hypotheses are ranked.
    pub length_penalty: &'a LengthPenalty,
    /// When a sentence is done.
    pub stop: StopRule,
    /// Longest output.
    pub max_length: &'a MaxLength,
}

impl Beam<'_> {
    /// What a log-probability is divided by for `n` tokens, the end token included.
    fn penalty(&self, n: usize) -> f64 {
        match self.length_penalty {
            LengthPenalty::None => 1.0,
            LengthPenalty::Gnmt { alpha } => ((5.0 + n as f64) / 6.0).powf(*alpha),
            LengthPenalty::LengthPower { alpha } => (n as f64).powf(*alpha),
        }
    }
}

/// A hypothesis that may go on.
#[derive(Debug, Clone)]
struct Alive {
    tokens: Vec<u32>,
    log_p: f64,
}

/// One sentence's search.
struct Sentence {
    alive: Vec<Alive>,
    finished: Vec<Hypothesis>,
    longest: usize,
}

/// A one-token extension: which hypothesis of the sentence, which token, and the log-probability of the whole.
#[derive(Debug, Clone, Copy)]
struct Extension {
    parent: usize,
    token: u32,
    log_p: f64,
}

/// For each source, finished hypotheses from best to worst.
pub fn beam<D: StepDecoder>(
    decoder: &D,
    sources: &Packed,
    beam: &Beam,
    ids: SearchIds,
) -> Vec<Vec<Hypothesis>> {
    let mut sentences: Vec<Sentence> = sources
        .lengths
        .iter()
        .map(|&length| Sentence {
            alive: vec![Alive { tokens: Vec::new(), log_p: 0.0 }],
            finished: Vec::new(),
            longest: limit(beam.max_length, length),
        })
        .collect();
    let mut active: Vec<usize> = (0..sentences.len()).collect();
    let mut state = decoder.begin(sources);
    let mut last: Option<Vec<u32>> = None;
    let mut n = 0;
    while !active.is_empty() {
        n += 1;
        let mut logits = decoder.step(&mut state, last.as_deref());
        logits.log_softmax();
        let mut firsts = Vec::with_capacity(active.len());
        let mut rows = 0;
        for &sentence in &active {
            firsts.push(rows);
            rows += sentences[sentence].alive.len();
        }
        let extensions: Vec<Vec<Extension>> = active
            .par_iter()
            .zip(&firsts)
            .map(|(&sentence, &first)| {
                let sentence = &sentences[sentence];
                let scores =
                    &logits.values[first * logits.vocabulary..][..sentence.alive.len() * logits.vocabulary];
                likeliest(sentence, scores, logits.vocabulary, beam, ids, n)
            })
            .collect();
        let mut kept = Vec::new();
        let mut next = Vec::new();
        let mut still_active = Vec::new();
        for ((&index, &first), extensions) in active.iter().zip(&firsts).zip(&extensions) {
            let sentence = &mut sentences[index];
            let parents = advance(sentence, extensions, beam, ids, n);
            if parents.is_empty() {
                continue;
            }
            still_active.push(index);
            kept.extend(parents.iter().map(|parent| first + parent));
            next.extend(sentence.alive.iter().map(|alive| *alive.tokens.last().expect("just extended")));
        }
        decoder.select(&mut state, &kept);
        active = still_active;
        last = Some(next);
    }
    sentences.into_iter().map(|sentence| sentence.results(beam)).collect()
}

/// The 2 x beam likeliest extensions of a sentence, best first; equal ones in the order of hypotheses, then tokens.
fn likeliest(
    sentence: &Sentence,
    scores: &[f32],
    vocabulary: usize,
    beam: &Beam,
    ids: SearchIds,
    n: usize,
) -> Vec<Extension> {
    let count = 2 * beam.size;
    let mut best: Vec<Extension> = Vec::with_capacity(count + 1);
    for (parent, (alive, row)) in sentence.alive.iter().zip(scores.chunks_exact(vocabulary)).enumerate() {
        for (token, &step) in row.iter().enumerate() {
            let log_p = alive.log_p + f64::from(step);
            if best.len() == count && log_p <= best[count - 1].log_p {
                continue;
            }
            if !allowed(token as u32, beam, ids, n, sentence.longest) || !log_p.is_finite() {
                continue;
            }
            let place = best.partition_point(|other| other.log_p >= log_p);
            best.insert(place, Extension { parent, token: token as u32, log_p });
            best.truncate(count);
        }
    }
    best
}

/// fairseq forbids padding, an empty output, and going on at the limit; tensor2tensor forbids nothing.
fn allowed(token: u32, beam: &Beam, ids: SearchIds, n: usize, longest: usize) -> bool {
    match beam.stop {
        StopRule::CannotImprove => true,
        StopRule::BeamFinished if token == ids.pad => false,
        StopRule::BeamFinished if n == longest => token == ids.end,
        StopRule::BeamFinished => n > 1 || token != ids.end,
    }
}

/// Takes a step; gives the parents of the hypotheses that go on, none if the sentence is done.
fn advance(
    sentence: &mut Sentence,
    extensions: &[Extension],
    beam: &Beam,
    ids: SearchIds,
    n: usize,
) -> Vec<usize> {
    let ended = |e: &Extension, alive: &[Alive]| Hypothesis {
        tokens: alive[e.parent].tokens.clone(),
        score: e.log_p / beam.penalty(n),
    };
    let done = match beam.stop {
        StopRule::CannotImprove => {
            let new = extensions.iter().filter(|e| e.token == ids.end).map(|e| ended(e, &sentence.alive));
            let new: Vec<_> = new.collect();
            sentence.finished.extend(new);
            sentence.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
            sentence.finished.truncate(beam.size);
            let best_alive = extensions.iter().find(|e| e.token != ids.end).map(|e| e.log_p);
            // The best an alive hypothesis can become: its log p, which only falls, under the penalty of the limit.
            let reachable =
                best_alive.map_or(f64::NEG_INFINITY, |log_p| log_p / beam.penalty(sentence.longest));
            n == sentence.longest || sentence.finished.last().is_some_and(|worst| worst.score > reachable)
        }
        StopRule::BeamFinished => {
            let room = beam.size - sentence.finished.len();
            let new = extensions.iter().take(beam.size).filter(|e| e.token == ids.end).take(room);
            let new: Vec<_> = new.map(|e| ended(e, &sentence.alive)).collect();
            sentence.finished.extend(new);
            sentence.finished.len() == beam.size || n == sentence.longest
        }
    };
    let going_on: Vec<&Extension> =
        extensions.iter().filter(|e| e.token != ids.end).take(beam.size).collect();
    let alive = going_on.iter().map(|e| {
        let mut tokens = sentence.alive[e.parent].tokens.clone();
        tokens.push(e.token);
        Alive { tokens, log_p: e.log_p }
    });
    sentence.alive = alive.collect();
    if done { Vec::new() } else { going_on.iter().map(|e| e.parent).collect() }
}

impl Sentence {
    /// Finished hypotheses, best first; if there are none, the alive ones with their log-probabilities.
    fn results(mut self, beam: &Beam) -> Vec<Hypothesis> {
        if self.finished.is_empty() {
            let alive = self.alive.into_iter();
            self.finished = alive.map(|a| Hypothesis { tokens: a.tokens, score: a.log_p }).collect();
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(beam.size);
        self.finished
    }
}
