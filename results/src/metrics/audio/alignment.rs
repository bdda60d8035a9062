//! Attention alignment scores: how sharp the attention is, whether it covers the text, and whether
//! it moves in order.

use serde::{Deserialize, Serialize};

use crate::metrics::contract::ScoreError;

/// Half the width of the diagonal band, as a share of the decoder's steps and in steps; the smaller
/// one is used.
const BAND_SHARE: f64 = 0.2;
const BAND_STEPS: f64 = 50.0;
/// Maximum weight: weights are at most 1, plus rounding.
const MOST: f32 = 1.01;

/// Attention weights without padding: at least one step and one symbol, every weight from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention<'a> {
    weights: &'a [f32],
    width: usize,
    steps: usize,
    symbols: usize,
}

impl<'a> Attention<'a> {
    /// From weights `[steps or more, width]`, row-major. There is a row for each step of the
    /// decoder. The first `steps` rows are used, and of each row the first `symbols` positions of
    /// the encoder.
    ///
    /// # Errors
    /// There are no steps or symbols, there are too few weights, or a weight is not valid.
    pub fn new(weights: &'a [f32], width: usize, steps: usize, symbols: usize) -> Result<Self, ScoreError> {
        let fail = |problem, hint| Err(ScoreError::Array { what: "attention", problem, hint });
        let rows = weights.len().checked_div(width).unwrap_or(0);
        if steps == 0 || symbols == 0 || rows < steps || width < symbols || rows * width != weights.len() {
            let problem =
                format!("{steps} steps over {symbols} symbols in {} weights, {width} a row", weights.len());
            return fail(problem, "give [steps, symbols] or a padded one with the true lengths, both from 1");
        }
        let found = Self { weights, width, steps, symbols };
        let rows = found.rows().enumerate();
        let mut cells = rows.flat_map(|(t, row)| row.iter().enumerate().map(move |(n, w)| (t, n, *w)));
        if let Some((t, n, weight)) = cells.find(|(_, _, weight)| !(0.0..=MOST).contains(weight)) {
            let problem = format!("weight {weight} at step {t}, symbol {n}, counted from 0");
            return fail(problem, "weights are the outputs of a softmax: from 0 to 1");
        }
        Ok(found)
    }

    /// Number of decoder steps.
    pub fn steps(self) -> usize {
        self.steps
    }

    /// Number of encoder positions.
    pub fn symbols(self) -> usize {
        self.symbols
    }

    /// The weights without padding, `[steps, symbols]`, row-major.
    pub fn unpadded(self) -> Vec<f32> {
        self.rows().flatten().copied().collect()
    }

    /// One row per step, without padding.
    fn rows(self) -> impl Iterator<Item = &'a [f32]> {
        self.weights.chunks_exact(self.width).take(self.steps).map(move |row| &row[..self.symbols])
    }
}

/// Alignment scores of an utterance, each from 0 to 1; 1 is best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AlignmentScore {
    /// Mean over the steps of each step's largest weight: FastSpeech's focus rate (Ren et al.,
    /// 2019).
    pub focus: f64,
    /// Mean over the symbols of the largest weight that each received. Low if symbols were skipped
    /// or if the attention has no focus.
    pub coverage: f64,
    /// Share of the total weight within min(T / 5, 50) steps of the line from the first step and
    /// symbol to the last, where T is the number of steps. It follows the diagonal constraint of
    /// MultiSpeech (Chen et al., 2020), with the band of public FastSpeech code.
    pub diagonality: f64,
    /// Share of the text up to the furthest symbol that had the largest weight of a step.
    pub reached: f64,
}

impl AlignmentScore {
    /// The scores of an utterance.
    pub fn new(attention: Attention<'_>) -> Self {
        let (steps, symbols) = (attention.steps as f64, attention.symbols as f64);
        let band = (BAND_SHARE * steps).min(BAND_STEPS);
        let mut covered = vec![0.0f64; attention.symbols];
        let (mut focus, mut total, mut near, mut furthest) = (0.0, 0.0, 0.0, 0);
        for (t, row) in attention.rows().enumerate() {
            let (mut largest, mut at) = (0.0, 0);
            for (n, (weight, covered)) in row.iter().zip(&mut covered).enumerate() {
                let weight = f64::from(*weight).min(1.0);
                if weight > largest {
                    (largest, at) = (weight, n);
                }
                *covered = covered.max(weight);
                total += weight;
                if (t as f64 - n as f64 * steps / symbols).abs() <= band {
                    near += weight;
                }
            }
            focus += largest;
            furthest = furthest.max(at);
        }
        Self {
            focus: focus / steps,
            coverage: covered.iter().sum::<f64>() / symbols,
            diagonality: if total > 0.0 { near / total } else { 0.0 },
            reached: (furthest + 1) as f64 / symbols,
        }
    }

    /// The mean of each score over a set, with equal weight for each utterance; `None` for an empty
    /// set.
    pub fn mean(utterances: &[Self]) -> Option<Self> {
        if utterances.is_empty() {
            return None;
        }
        let mean = |of: fn(&Self) -> f64| utterances.iter().map(of).sum::<f64>() / utterances.len() as f64;
        Some(Self {
            focus: mean(|one| one.focus),
            coverage: mean(|one| one.coverage),
            diagonality: mean(|one| one.diagonality),
            reached: mean(|one| one.reached),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score(weights: &[f32], steps: usize, symbols: usize) -> AlignmentScore {
        AlignmentScore::new(Attention::new(weights, symbols, steps, symbols).unwrap())
    }

    /// Six steps per symbol.
    fn diagonal(symbols: usize) -> Vec<f32> {
        let row = |t: usize| (0..symbols).map(move |n| f32::from(u8::from(t / 6 == n)));
        (0..6 * symbols).flat_map(row).collect()
    }

    #[test]
    fn a_diagonal_is_perfect() {
        let one = AlignmentScore { focus: 1.0, coverage: 1.0, diagonality: 1.0, reached: 1.0 };
        assert_eq!(score(&diagonal(20), 120, 20), one);
        assert_eq!(score(&[1.0], 1, 1), one);
        assert_eq!(AlignmentScore::mean(&[one, one]), Some(one));
        assert_eq!(AlignmentScore::mean(&[]), None);
    }

    #[test]
    fn every_fault_lowers_what_it_is_about() {
        // All steps attend uniformly.
        let even = score(&[0.05; 120 * 20], 120, 20);
        assert!((even.focus - 0.05).abs() < 1e-6 && (even.coverage - 0.05).abs() < 1e-6, "{even:?}");
        // Two triangles of 0.8 T by 0.8 N are cut off: about 1 - 0.8^2 remains.
        assert!((even.diagonality - 0.36).abs() < 0.04, "{even:?}");
        // The attention never leaves the first symbol.
        let stuck: Vec<f32> = (0..120 * 20).map(|i| f32::from(u8::from(i % 20 == 0))).collect();
        let stuck = score(&stuck, 120, 20);
        assert_eq!((stuck.focus, stuck.coverage, stuck.reached), (1.0, 0.05, 0.05));
        assert!((stuck.diagonality - 25.0 / 120.0).abs() < 1e-9, "{stuck:?}");
        // The attention moves backwards.
        let back: Vec<f32> = diagonal(20).chunks_exact(20).rev().flatten().copied().collect();
        let back = score(&back, 120, 20);
        assert_eq!((back.focus, back.coverage, back.reached), (1.0, 1.0, 1.0));
        assert!(back.diagonality < 0.25, "{back:?}");
        // The attention stops halfway.
        let half = score(&diagonal(20)[..60 * 20], 60, 20);
        assert_eq!((half.coverage, half.reached), (0.5, 0.5));
        assert_eq!(score(&[0.0; 4], 2, 2).diagonality, 0.0);
    }

    #[test]
    fn padding_does_not_count() {
        let (rows, padded) = (diagonal(4), 7);
        let mut weights: Vec<f32> = Vec::new();
        for row in rows.chunks_exact(4) {
            weights.extend(row);
            weights.resize(weights.len() + padded - 4, f32::NAN);
        }
        weights.resize(weights.len() + 5 * padded, 9.0);
        let attention = Attention::new(&weights, padded, 24, 4).unwrap();
        assert_eq!((attention.steps(), attention.symbols()), (24, 4));
        assert_eq!(AlignmentScore::new(attention), score(&rows, 24, 4));
    }

    #[test]
    fn what_is_no_attention_is_an_error() {
        for (weights, width, steps, symbols, says) in [
            (&[0.5; 4][..], 2, 0, 2, "0 steps"),
            (&[0.5; 4], 2, 2, 0, "0 symbols"),
            (&[0.5; 4], 2, 3, 2, "3 steps"),
            (&[0.5; 4], 2, 2, 3, "3 symbols"),
            (&[0.5; 5], 2, 2, 2, "5 weights"),
            (&[0.5; 4], 0, 1, 1, "0 a row"),
            (&[], 2, 1, 1, "0 weights"),
            (&[0.5; 4], usize::MAX, usize::MAX, 1, "steps"),
            (&[0.5, 0.5, f32::NAN, 0.5], 2, 2, 2, "NaN at step 1, symbol 0"),
            (&[0.5, -0.5], 2, 1, 2, "-0.5 at step 0, symbol 1"),
            (&[0.5, f32::INFINITY], 2, 1, 2, "inf"),
        ] {
            let error = Attention::new(weights, width, steps, symbols).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("\nhint: "), "{error}");
        }
    }

    proptest! {
        #[test]
        fn all_are_shares(
            (steps, symbols, weights) in (1usize..30, 1usize..12).prop_flat_map(|(t, n)| {
                (Just(t), Just(n), prop::collection::vec(0.0f32..=1.0, t * n))
            }),
        ) {
            let AlignmentScore { focus, coverage, diagonality, reached } = score(&weights, steps, symbols);
            for share in [focus, coverage, diagonality, reached] {
                prop_assert!((0.0..=1.0).contains(&share), "{share}");
            }
        }
    }
}
