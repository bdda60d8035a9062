//! All alignments of one utterance: forward and backward variables over the labels, with a blank
//! before, between and after them.

use crate::simd::{exp, fma, max, sum_by, vectorized};

/// Logarithm of zero: far below all other values, but finite, so that the difference of two of them
/// is 0.
const NOTHING: f64 = -1e30;

/// The labels of one utterance.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    pub list: &'a [u32],
    pub blank: u32,
    /// A label that may be omitted wherever it occurs; two of them are never neighbours.
    pub optional: Option<u32>,
}

impl Labels<'_> {
    /// Number of states: every label, and a blank before, between and after them.
    fn states(&self) -> usize {
        2 * self.list.len() + 1
    }

    fn class(&self, state: usize) -> usize {
        (if state.is_multiple_of(2) { self.blank } else { self.list[state / 2] }) as usize
    }

    fn is_optional(&self, state: usize) -> bool {
        state % 2 == 1 && self.optional == Some(self.list[state / 2])
    }

    /// Whether a path may go to a state from the one `back` states before it, for `back` from 2 to
    /// 4: to a label, past states that may be omitted.
    fn skips(&self, state: usize, back: usize) -> bool {
        let Some(from) = state.checked_sub(back).filter(|_| state % 2 == 1) else { return false };
        let apart = back == 3 || self.class(from) != self.class(state);
        apart && (back == 2 || self.is_optional(state - 2))
    }

    /// States in which a path may begin.
    fn begins(&self) -> impl Iterator<Item = usize> {
        let n = self.states();
        [0].into_iter().chain((n > 1).then_some(1)).chain((n > 3 && self.is_optional(1)).then_some(3))
    }

    /// States in which a path may end: the blank after the last label, that label, and the states
    /// before it if that label is optional.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let n = self.states();
        let past = n > 1 && self.is_optional(n - 2);
        let label = (n > 1).then(|| n - 2);
        [n - 1].into_iter().chain(label).chain(past.then(|| n - 3)).chain((past && n > 3).then(|| n - 4))
    }
}

/// Number of unreachable states that are stored before the first one.
const BEFORE: usize = 4;

/// Buffers of one task, reused for every utterance.
#[derive(Default)]
pub struct Room {
    /// Log-probabilities of the classes, `[frames, classes]`.
    classes: Vec<f32>,
    /// Log-probabilities of the states in one frame, `[states]`.
    states: Vec<f64>,
    /// 0 where a path may come from 2, 3 and 4 states before, else [`NOTHING`]; `[states + BEFORE]`
    /// each.
    skips: [Vec<f64>; 3],
    /// Forward variables, `[1 + frames, BEFORE + states]`.
    alphas: Vec<f64>,
    /// Backward variables with the probabilities of their frame, `[states + BEFORE]`.
    betas: Vec<f64>,
    next: Vec<f64>,
    occupied: Vec<f32>,
}

impl Room {
    /// -ln p(labels | logits). Keeps the values that [`Self::gradient`] needs.
    pub fn loss(&mut self, logits: &[f32], classes: usize, labels: Labels<'_>) -> f64 {
        let (n, frames) = (labels.states(), logits.len() / classes.max(1));
        self.classes.clear();
        self.classes.extend_from_slice(logits);
        self.classes.chunks_exact_mut(classes).for_each(log_softmax);
        for (back, skips) in (2..).zip(&mut self.skips) {
            skips.clear();
            skips.extend((0..n).map(|state| if labels.skips(state, back) { 0.0 } else { NOTHING }));
            skips.resize(n + BEFORE, NOTHING);
        }
        self.states.resize(n, 0.0);
        let width = BEFORE + n;
        self.alphas.resize((frames + 1) * width, 0.0);
        let (mut before, mut rest) = self.alphas.split_at_mut(width);
        before.fill(NOTHING);
        for (frame, row) in self.classes.chunks_exact(classes).enumerate() {
            let (now, next) = rest.split_at_mut(width);
            emit(&mut self.states, row, labels);
            now.fill(NOTHING);
            if frame == 0 {
                labels.begins().for_each(|state| now[BEFORE + state] = self.states[state]);
            } else if labels.optional.is_some() {
                advance_past(&mut now[BEFORE..], before, &self.skips, &self.states);
            } else {
                advance(&mut now[BEFORE..], before, &self.skips[0], &self.states);
            }
            (before, rest) = (now, next);
        }
        if frames == 0 {
            return 0.0;
        }
        let ends: Vec<f64> = labels.ends().map(|state| before[BEFORE + state]).collect();
        let top = ends.iter().copied().fold(NOTHING, f64::max);
        -(top + ends.iter().map(|x| (x - top).exp()).sum::<f64>().ln())
    }

    /// softmax - occupancy, `[frames, classes]`, after [`Self::loss`] of the same utterance.
    pub fn gradient(&mut self, to: &mut [f32], classes: usize, labels: Labels<'_>, loss: f64) {
        let n = labels.states();
        let frames = to.len() / classes.max(1);
        for room in [&mut self.betas, &mut self.next] {
            room.clear();
            room.resize(n + BEFORE, NOTHING);
        }
        self.occupied.resize(n, 0.0);
        for frame in (0..frames).rev() {
            // Backward variables of the following frame; after the last frame only end states are
            // possible.
            if frame + 1 == frames {
                labels.ends().for_each(|state| self.next[state] = 0.0);
            } else if labels.optional.is_some() {
                retreat_past(&mut self.next[..n], &self.betas, &self.skips);
            } else {
                retreat(&mut self.next[..n], &self.betas, &self.skips[0]);
            }
            let width = BEFORE + n;
            let alphas = &self.alphas[(frame + 1) * width + BEFORE..][..n];
            occupy(&mut self.occupied, alphas, &self.next[..n], loss);
            let row = &self.classes[frame * classes..][..classes];
            let to = &mut to[frame * classes..][..classes];
            exponentials(to, row);
            let blanks: f32 = self.occupied.iter().step_by(2).sum();
            to[labels.blank as usize] -= blanks;
            for (label, occupied) in labels.list.iter().zip(self.occupied.iter().skip(1).step_by(2)) {
                to[*label as usize] -= occupied;
            }
            emit(&mut self.states, row, labels);
            let betas = self.betas.iter_mut().zip(&self.next).zip(&self.states);
            betas.for_each(|((beta, next), state)| *beta = next + state);
        }
    }
}

/// Log-probabilities of the states in a frame.
fn emit(states: &mut [f64], row: &[f32], labels: Labels<'_>) {
    for (state, to) in states.iter_mut().enumerate() {
        *to = f64::from(row[labels.class(state)]);
    }
}

/// ln of a sum of N exponentials, at most five. The part besides the largest term is at most ln 5,
/// in FP32.
#[inline(always)]
fn log_sum<const FMA: bool, const N: usize>(terms: [f64; N]) -> f64 {
    let mut top = terms[0];
    for term in terms {
        top = if term > top { term } else { top };
    }
    let mut mass = 0.0f32;
    for term in terms {
        mass += exp::<FMA>((term - top) as f32);
    }
    top + f64::from(ln_of_a_few::<FMA>(mass))
}

/// ln x for x in [1, 5], to 1e-7: ln sqrt 5 + 2 artanh((x - sqrt 5) / (x + sqrt 5)).
#[inline(always)]
fn ln_of_a_few<const FMA: bool>(x: f32) -> f32 {
    const ROOT: f32 = 2.236_068;
    let t = (x - ROOT) / (x + ROOT);
    let square = t * t;
    let mut p = 1.0 / 15.0f32;
    for term in [1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = fma::<FMA>(p, square, term);
    }
    fma::<FMA>(2.0 * t, p, 0.804_719)
}

vectorized! {
    /// Turns a row of logits into log-probabilities.
    fn log_softmax(row: &mut [f32]) {
        let top = max(row);
        let mass = sum_by(row, |x| exp::<FMA>(x - top));
        let shift = top + mass.ln();
        row.iter_mut().for_each(|x| *x -= shift);
    }

    fn exponentials(to: &mut [f32], row: &[f32]) {
        for (to, x) in to.iter_mut().zip(row) {
            *to = exp::<FMA>(*x);
        }
    }

    /// Forward variables of a frame from those of the frame before.
    fn advance(to: &mut [f64], before: &[f64], skips: &[f64], states: &[f64]) {
        let n = to.len();
        let (skipped, stepped, stayed) = (&before[2..n + 2], &before[3..n + 3], &before[4..n + 4]);
        let (skips, states) = (&skips[..n], &states[..n]);
        for s in 0..n {
            to[s] = log_sum::<FMA, 3>([stayed[s], stepped[s], skipped[s] + skips[s]]) + states[s];
        }
    }

    /// Like `advance`, with optional labels.
    fn advance_past(to: &mut [f64], before: &[f64], skips: &[Vec<f64>; 3], states: &[f64]) {
        let n = to.len();
        let [two, three, four] = [0, 1, 2].map(|i| &skips[i][..n]);
        let states = &states[..n];
        for s in 0..n {
            let skipped = [before[s + 2] + two[s], before[s + 1] + three[s], before[s] + four[s]];
            let terms = [before[s + 4], before[s + 3], skipped[0], skipped[1], skipped[2]];
            to[s] = log_sum::<FMA, 5>(terms) + states[s];
        }
    }

    /// Backward variables of a frame from those of the next frame, which include its probabilities.
    fn retreat(to: &mut [f64], behind: &[f64], skips: &[f64]) {
        let n = to.len();
        let (stayed, stepped, skipped) = (&behind[..n], &behind[1..n + 1], &behind[2..n + 2]);
        let skips = &skips[2..n + 2];
        for s in 0..n {
            to[s] = log_sum::<FMA, 3>([stayed[s], stepped[s], skipped[s] + skips[s]]);
        }
    }

    /// Like `retreat`, with optional labels.
    fn retreat_past(to: &mut [f64], behind: &[f64], skips: &[Vec<f64>; 3]) {
        let n = to.len();
        let [two, three, four] = [0, 1, 2].map(|i| &skips[i][i + 2..n + i + 2]);
        let behind = &behind[..n + 4];
        for s in 0..n {
            let skipped = [behind[s + 2] + two[s], behind[s + 3] + three[s], behind[s + 4] + four[s]];
            let terms = [behind[s], behind[s + 1], skipped[0], skipped[1], skipped[2]];
            to[s] = log_sum::<FMA, 5>(terms);
        }
    }

    /// Share of all alignments that pass through each state in a frame.
    fn occupy(to: &mut [f32], alphas: &[f64], betas: &[f64], loss: f64) {
        for ((to, alpha), beta) in to.iter_mut().zip(alphas).zip(betas) {
            *to = exp::<FMA>((alpha + beta + loss) as f32);
        }
    }
}
