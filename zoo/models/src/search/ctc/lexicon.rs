//! Search over the words of a small lexicon: the most likely path through their pronunciations,
//! with a unigram model and optional silences between words.
//!
//! The result equals the composition of a CTC topology, a lexicon with optional silence and a
//! unigram (H, L and G of weighted transducers), searched without a beam. The cost of a frame grows
//! with the number of labels of the lexicon, plus words^2 for the transitions between words.

use super::{Frames, Transcript};

/// One pronunciation of a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Pronunciation {
    /// Id of the word.
    pub word: u32,
    /// Labels of the pronunciation; at least one.
    pub labels: Vec<u32>,
    /// Natural logarithm of its probability, including the probability of the word.
    pub log_prob: f64,
}

/// A label that may occur once before, between and after words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Silence {
    /// Id of the label.
    pub label: u32,
    /// Natural logarithms of the probabilities of silence and of no silence.
    pub log_probs: [f64; 2],
}

/// Graph of CTC states for the words of a lexicon. See the module.
#[derive(Debug, Clone)]
pub struct Lexicon {
    states: Vec<State>,
}

/// A class that a path may keep for several frames.
#[derive(Debug, Clone)]
struct State {
    class: u32,
    /// Log-probability of starting in this state.
    first: f64,
    /// Predecessors, including the state itself, with the log-probability of each transition.
    from: Vec<(usize, f64)>,
    /// Log-probability of ending in this state.
    last: f64,
    /// The word that begins when a path enters this state.
    begins: Option<u32>,
    /// Whether the state is part of a word.
    spoken: bool,
}

const NEVER: f64 = f64::NEG_INFINITY;

impl Lexicon {
    /// Builds the graph for a model with the given blank. `end` is the natural logarithm of the
    /// probability that no word follows.
    ///
    /// # Panics
    /// If a pronunciation has no label.
    pub fn new(words: &[Pronunciation], silence: Option<Silence>, end: f64, blank: u32) -> Self {
        let [with, without] = silence.map_or([NEVER, 0.0], |silence| silence.log_probs);
        let mut states = Vec::new();
        // A blank before all words and after each word; then an optional silence and the blank
        // after it.
        let between = State::new(blank, 0.0, without + end).add_to(&mut states);
        let silent = silence.map(|silence| {
            let heard = State::new(silence.label, with, end).add_to(&mut states);
            (heard, State::new(blank, NEVER, end).add_to(&mut states))
        });
        let spoken: Vec<(usize, usize)> =
            words.iter().map(|word| word.add_to(&mut states, blank, without, end)).collect();
        for &(_, end) in &spoken {
            states[between].from.push((end, 0.0));
        }
        if let Some((heard, behind)) = silent {
            states[behind].from.push((heard, 0.0));
            states[heard].from.push((between, with));
            let met = spoken.iter().map(|&(_, end)| (end, with));
            arrive(&mut states, heard, met);
        }
        for (&(begin, _), word) in spoken.iter().zip(words) {
            states[begin].from.push((between, without + word.log_prob));
            if let Some((heard, behind)) = silent {
                states[begin].from.push((behind, word.log_prob));
                arrive(&mut states, begin, [(heard, word.log_prob)].into_iter());
            }
            let met = spoken.iter().map(|&(_, end)| (end, without + word.log_prob));
            arrive(&mut states, begin, met);
        }
        Self { states }
    }

    /// Returns the most likely words. If every path is longer than the utterance, the result is
    /// empty with a score of minus infinity.
    pub fn decode(&self, frames: Frames<'_>) -> Transcript {
        let n = self.states.len();
        let mut came_from: Vec<u32> = Vec::new();
        let mut scores: Vec<f64> = Vec::new();
        for row in frames.rows() {
            let begins = scores.is_empty();
            let now: Vec<(u32, f64)> = self
                .states
                .iter()
                .map(|state| {
                    let (from, score) = if begins { (0, state.first) } else { state.best(&scores) };
                    (from as u32, score + f64::from(row[state.class as usize]))
                })
                .collect();
            came_from.extend(now.iter().map(|(from, _)| from));
            scores = now.into_iter().map(|(_, score)| score).collect();
        }
        let ended = self.states.iter().zip(&scores).map(|(state, score)| score + state.last);
        let Some((mut state, score)) = ended.enumerate().reduce(better).filter(|(_, score)| *score > NEVER)
        else {
            return Transcript { units: Vec::new(), times: Vec::new(), score: NEVER, language_model: None };
        };
        let mut found = Transcript { units: Vec::new(), times: Vec::new(), score, language_model: None };
        let mut end = None;
        for t in (0..came_from.len() / n).rev() {
            let here = &self.states[state];
            let before = came_from[t * n + state] as usize;
            if here.spoken && end.is_none() {
                end = Some(t + 1);
            }
            if let Some(word) = here.begins.filter(|_| t == 0 || before != state) {
                found.units.push(word);
                found.times.push(t..end.take().expect("a word has a frame"));
            }
            state = before;
        }
        found.units.reverse();
        found.times.reverse();
        found
    }
}

impl State {
    fn new(class: u32, first: f64, last: f64) -> Self {
        Self { class, first, from: Vec::new(), last, begins: None, spoken: false }
    }

    fn add_to(mut self, states: &mut Vec<Self>) -> usize {
        self.from.push((states.len(), 0.0));
        states.push(self);
        states.len() - 1
    }

    fn best(&self, scores: &[f64]) -> (usize, f64) {
        let all = self.from.iter().map(|&(from, cost)| (from, scores[from] + cost));
        all.reduce(better).expect("a state can stay")
    }
}

/// The better candidate; the first of two equal ones.
fn better(a: (usize, f64), b: (usize, f64)) -> (usize, f64) {
    if b.1 > a.1 { b } else { a }
}

/// Adds transitions from other labels, where no blank is needed in between.
fn arrive(states: &mut [State], to: usize, from: impl Iterator<Item = (usize, f64)>) {
    let class = states[to].class;
    let apart: Vec<_> = from.filter(|&(from, _)| states[from].class != class).collect();
    states[to].from.extend(apart);
}

impl Pronunciation {
    /// Adds the labels of the pronunciation and the blanks between them. Returns its first and last
    /// state.
    fn add_to(&self, states: &mut Vec<State>, blank: u32, without: f64, end: f64) -> (usize, usize) {
        let mut ends: Option<(usize, usize)> = None;
        for &label in &self.labels {
            let inside = ends.map(|(_, before)| {
                let blank = State { spoken: true, ..State::new(blank, NEVER, NEVER) }.add_to(states);
                states[blank].from.push((before, 0.0));
                (before, blank)
            });
            let first = if ends.is_none() { without + self.log_prob } else { NEVER };
            let state = State { spoken: true, ..State::new(label, first, NEVER) }.add_to(states);
            if let Some((before, blank)) = inside {
                states[state].from.push((blank, 0.0));
                arrive(states, state, [(before, 0.0)].into_iter());
            }
            ends = Some((ends.map_or(state, |(begin, _)| begin), state));
        }
        let (begin, last) = ends.expect("a pronunciation has a label");
        states[begin].begins = Some(self.word);
        states[last].last = without + end;
        (begin, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    const BLANK: u32 = 0;
    const SILENCE: Silence = Silence { label: 1, log_probs: [-0.7, -0.69] };
    const END: f64 = -2.3;

    fn words() -> Vec<Pronunciation> {
        let word = |word, labels: &[u32], log_prob| Pronunciation { word, labels: labels.to_vec(), log_prob };
        vec![word(0, &[2], -2.0), word(1, &[3, 3], -1.5), word(2, &[2, 4], -2.5)]
    }

    /// All sentences of at most `most` labels, with and without silences: labels, words, and score
    /// of the graph.
    fn sentences(most: usize, silence: Option<Silence>) -> Vec<(Vec<u32>, Vec<u32>, f64)> {
        let choices: Vec<(Option<u32>, f64)> = match silence {
            Some(silence) => vec![(Some(silence.label), silence.log_probs[0]), (None, silence.log_probs[1])],
            None => vec![(None, 0.0)],
        };
        let silences = |(labels, words, cost): (Vec<u32>, Vec<u32>, f64)| {
            choices.clone().into_iter().map(move |(label, more)| {
                ([labels.clone(), label.into_iter().collect()].concat(), words.clone(), cost + more)
            })
        };
        let mut open: Vec<_> = silences((vec![], vec![], 0.0)).collect();
        let mut all = Vec::new();
        while let Some((labels, said, cost)) = open.pop() {
            if labels.len() > most {
                continue;
            }
            for word in words() {
                let next = (
                    [labels.clone(), word.labels.clone()].concat(),
                    [said.clone(), vec![word.word]].concat(),
                    cost + word.log_prob,
                );
                open.extend(silences(next));
            }
            all.push((labels, said, cost + END));
        }
        all
    }

    /// The best of all paths, by brute force.
    fn tried(rows: &[Vec<f32>], silence: Option<Silence>) -> (Vec<u32>, f64) {
        let (frames, classes) = (rows.len(), rows[0].len());
        let sentences = sentences(frames, silence);
        let mut best = (Vec::new(), NEVER);
        for number in 0..classes.pow(frames as u32) {
            let path: Vec<usize> = (0..frames).map(|t| number / classes.pow(t as u32) % classes).collect();
            let score: f64 = path.iter().zip(rows).map(|(&class, row)| f64::from(row[class])).sum();
            let mut labels: Vec<u32> = path.iter().map(|&class| class as u32).collect();
            labels.dedup();
            labels.retain(|&label| label != BLANK);
            for (said, words, cost) in &sentences {
                if *said == labels && score + cost > best.1 {
                    best = (words.clone(), score + cost);
                }
            }
        }
        best
    }

    #[test]
    fn the_likeliest_of_all_paths_is_found() {
        for silence in [Some(SILENCE), None] {
            let lexicon = Lexicon::new(&words(), silence, END, BLANK);
            for case in 0..40u64 {
                let key = Key::new(case, 1, 0);
                let frames = 1 + case as usize % 5;
                let rows: Vec<Vec<f32>> = (0..frames as u32)
                    .map(|t| (0..5).map(|c| 3.0 * key.normal(5 * t + c)).collect())
                    .collect();
                let (expected, score) = tried(&rows, silence);
                let log_probs = rows.concat();
                let found = lexicon.decode(Frames { log_probs: &log_probs, classes: 5, blank: BLANK });
                assert!((found.score - score).abs() < 1e-5, "{case}: {} {score}", found.score);
                assert_eq!(found.units, expected, "{case}");
            }
        }
    }

    #[test]
    fn words_have_their_frames() {
        let lexicon = Lexicon::new(&words(), Some(SILENCE), END, BLANK);
        let path = [0u32, 1, 1, 3, 3, 0, 3, 0, 0, 2, 1, 2, 4, 4, 0];
        let row = |&class: &u32| (0..5).map(move |i| if i == class { 0.0f32 } else { -30.0 });
        let log_probs: Vec<f32> = path.iter().flat_map(row).collect();
        let found = lexicon.decode(Frames { log_probs: &log_probs, classes: 5, blank: BLANK });
        assert_eq!(found.units, [1, 0, 2]);
        assert_eq!(found.times, [3..7, 9..10, 11..14]);
    }

    #[test]
    fn no_frames_are_no_words() {
        let lexicon = Lexicon::new(&words(), Some(SILENCE), END, BLANK);
        let found = lexicon.decode(Frames { log_probs: &[], classes: 5, blank: BLANK });
        assert_eq!((found.units.len(), found.score), (0, NEVER));
    }
}
