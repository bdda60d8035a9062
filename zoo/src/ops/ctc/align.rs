//! All alignments of one utterance: forward and backward variables over the labels with a blank before, between and behind them.

use crate::ops::simd::{exp, fma, max, sum_by, vectorized};

/// The logarithm of nothing: far below everything, and finite, so that differences of two of them are 0.
const NOTHING: f64 = -1e30;

/// Memory of one task, used again for every utterance.
#[derive(Default)]
pub struct Room {
    /// Logarithms of the classes' probabilities, [frames, classes].
    classes: Vec<f32>,
    /// Those of the states, [states], of one frame.
    states: Vec<f64>,
    /// 0 where a state may be reached from the label before the blank before it, else [`NOTHING`]. [states + 2]
    skips: Vec<f64>,
    /// Forward variables, [frames, 2 + states]: a row begins with two states that are never reached.
    alphas: Vec<f64>,
    /// Backward variables with the probabilities of their frame, [states + 2]: a row ends with two states that are never reached.
    betas: Vec<f64>,
    next: Vec<f64>,
    occupied: Vec<f32>,
}

/// Labels with their blanks.
fn states(labels: &[u32]) -> usize {
    2 * labels.len() + 1
}

/// The class of a state.
fn class(state: usize, labels: &[u32], blank: u32) -> usize {
    (if state.is_multiple_of(2) { blank } else { labels[state / 2] }) as usize
}

impl Room {
    /// -ln p(labels | logits). Keeps what [`Self::gradient`] needs.
    pub fn loss(&mut self, logits: &[f32], classes: usize, labels: &[u32], blank: u32) -> f64 {
        let (n, frames) = (states(labels), logits.len() / classes.max(1));
        self.classes.clear();
        self.classes.extend_from_slice(logits);
        self.classes.chunks_exact_mut(classes).for_each(log_softmax);
        self.skips.clear();
        self.skips.resize(n + 2, NOTHING);
        for state in (3..n).step_by(2) {
            if labels[state / 2] != labels[state / 2 - 1] {
                self.skips[state] = 0.0;
            }
        }
        self.states.resize(n, 0.0);
        self.alphas.resize((frames + 1) * (n + 2), 0.0);
        let (before, mut rest) = self.alphas.split_at_mut(n + 2);
        before.fill(NOTHING);
        let mut before: &mut [f64] = before;
        for (frame, row) in self.classes.chunks_exact(classes).enumerate() {
            let (now, next) = rest.split_at_mut(n + 2);
            emit(&mut self.states, row, labels, blank);
            now.fill(NOTHING);
            if frame == 0 {
                now[2] = self.states[0];
                if n > 1 {
                    now[3] = self.states[1];
                }
            } else {
                advance(&mut now[2..], before, &self.skips, &self.states);
            }
            (before, rest) = (now, next);
        }
        if frames == 0 {
            return 0.0;
        }
        // It ends in the last label or the blank behind it.
        let (last, label) = (before[n + 1], if n > 1 { before[n] } else { NOTHING });
        let top = last.max(label);
        -(top + ((last - top).exp() + (label - top).exp()).ln())
    }

    /// softmax - occupancy, [frames, classes], after [`Self::loss`] of the same.
    pub fn gradient(&mut self, to: &mut [f32], classes: usize, labels: &[u32], blank: u32, loss: f64) {
        let n = states(labels);
        let frames = to.len() / classes.max(1);
        // What may come next, with its frame's probability: behind the last frame only the end.
        self.betas.clear();
        self.betas.resize(n + 2, NOTHING);
        self.next.clear();
        self.next.resize(n + 2, NOTHING);
        self.occupied.resize(n, 0.0);
        for frame in (0..frames).rev() {
            if frame + 1 == frames {
                self.next[n - 1] = 0.0;
                if n > 1 {
                    self.next[n - 2] = 0.0;
                }
            } else {
                retreat(&mut self.next[..n], &self.betas, &self.skips);
            }
            let alphas = &self.alphas[(frame + 1) * (n + 2) + 2..][..n];
            occupy(&mut self.occupied, alphas, &self.next[..n], loss);
            let row = &self.classes[frame * classes..][..classes];
            let to = &mut to[frame * classes..][..classes];
            exponentials(to, row);
            let blanks: f32 = self.occupied.iter().step_by(2).sum();
            to[blank as usize] -= blanks;
            for (label, occupied) in labels.iter().zip(self.occupied.iter().skip(1).step_by(2)) {
                to[*label as usize] -= occupied;
            }
            emit(&mut self.states, row, labels, blank);
            let betas = self.betas.iter_mut().zip(&self.next).zip(&self.states);
            betas.for_each(|((beta, next), state)| *beta = next + state);
        }
    }
}

/// The states' logarithms of a frame.
fn emit(states: &mut [f64], row: &[f32], labels: &[u32], blank: u32) {
    for (state, to) in states.iter_mut().enumerate() {
        *to = f64::from(row[class(state, labels, blank)]);
    }
}

/// ln(e^a + e^b + e^c). What the largest does not have is at most ln 3, in FP32.
#[inline(always)]
fn log_sum<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    let top = if a > b { a } else { b };
    let top = if c > top { c } else { top };
    let mass = exp::<FMA>((a - top) as f32) + exp::<FMA>((b - top) as f32) + exp::<FMA>((c - top) as f32);
    top + f64::from(ln_of_a_few::<FMA>(mass))
}

/// ln x for x in [1, 3], to 1e-7: ln sqrt 3 + 2 artanh((x - sqrt 3) / (x + sqrt 3)).
#[inline(always)]
fn ln_of_a_few<const FMA: bool>(x: f32) -> f32 {
    const ROOT: f32 = 1.732_050_8;
    let t = (x - ROOT) / (x + ROOT);
    let square = t * t;
    let mut p = 1.0 / 11.0f32;
    for term in [1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = fma::<FMA>(p, square, term);
    }
    fma::<FMA>(2.0 * t, p, 0.549_306_15)
}

vectorized! {
    /// A row of logits to logarithms of probabilities.
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

    /// Forward variables of a frame from those of the one before, which begin two states earlier.
    fn advance(to: &mut [f64], before: &[f64], skips: &[f64], states: &[f64]) {
        let n = to.len();
        let (skipped, stepped, stayed) = (&before[..n], &before[1..n + 1], &before[2..n + 2]);
        let (skips, states) = (&skips[..n], &states[..n]);
        for s in 0..n {
            to[s] = log_sum::<FMA>(stayed[s], stepped[s], skipped[s] + skips[s]) + states[s];
        }
    }

    /// Backward variables of a frame from those of the next, with its probabilities.
    fn retreat(to: &mut [f64], behind: &[f64], skips: &[f64]) {
        let n = to.len();
        let (stayed, stepped, skipped) = (&behind[..n], &behind[1..n + 1], &behind[2..n + 2]);
        let skips = &skips[2..n + 2];
        for s in 0..n {
            to[s] = log_sum::<FMA>(stayed[s], stepped[s], skipped[s] + skips[s]);
        }
    }

    /// The share of all alignments that a state has a frame of.
    fn occupy(to: &mut [f32], alphas: &[f64], betas: &[f64], loss: f64) {
        for ((to, alpha), beta) in to.iter_mut().zip(alphas).zip(betas) {
            *to = exp::<FMA>((alpha + beta + loss) as f32);
        }
    }
}
