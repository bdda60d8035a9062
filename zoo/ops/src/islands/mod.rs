//! Softmax, norms and cross-entropy in a half type, for ablation arms.
//!
//! Each operation on a number (a difference, a product, an exponential) is rounded to the half
//! type. A sum has accumulators of that type. Its order is that of a block of 256 threads of a GPU:
//! thread i adds the values i, i + 256, …; then the upper half of the threads is added to the lower
//! half until one is left. Only the CPU has these kernels.

mod batch_norm;
mod loss;
mod norm;

use burn::tensor::Device;
use zoo_recipes::PrecisionSpec;

use super::rounding::Half;
use super::simd::{exp, max, vectorized};
use super::{fp32, has_own_kernels};

pub(super) use batch_norm::HalfBatch;
pub(super) use loss::{gradient as loss_gradient, loss, row_loss};
pub(super) use norm::{backward_rows, forward_rows};

/// Whether operations are computed in FP32 where products have a half type: FP32 islands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Islands {
    /// Softmax of attention.
    pub softmax: bool,
    /// Layer norms and batch norms.
    pub norms: bool,
    /// Cross-entropy, with its softmax and the sum over the batch.
    pub loss: bool,
}

impl Islands {
    /// Every island on: the default.
    pub const ALL: Self = Self { softmax: true, norms: true, loss: true };

    /// The islands of a recipe's arm.
    pub fn of(spec: &PrecisionSpec) -> Self {
        let islands = &spec.islands;
        Self { softmax: islands.softmax, norms: islands.norms, loss: islands.loss }
    }

    /// Whether a device can train with these islands.
    pub fn suit(self, device: &Device) -> bool {
        self == Self::ALL || has_own_kernels(device) && fp32::available()
    }
}

/// Number of partial sums.
const THREADS: usize = 256;

/// A number, rounded.
fn one(half: Half, x: f32) -> f32 {
    let mut rounded = [x];
    half.round(&mut rounded);
    rounded[0]
}

/// Sum of rounded numbers, with rounded accumulators.
fn sum(half: Half, values: &[f32]) -> f32 {
    let mut sums = [0f32; THREADS];
    for part in values.chunks(THREADS) {
        sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        half.round(&mut sums[..part.len()]);
    }
    let mut threads = THREADS;
    while threads > 1 {
        threads /= 2;
        let (lower, upper) = sums.split_at_mut(threads);
        lower.iter_mut().zip(upper).for_each(|(sum, x)| *sum += *x);
        half.round(lower);
    }
    sums[0]
}

/// Changes each number, and rounds it.
fn each(half: Half, values: &mut [f32], change: impl Fn(f32) -> f32) {
    values.iter_mut().for_each(|x| *x = change(*x));
    half.round(values);
}

/// Changes each number by that of another list, and rounds it.
fn with(half: Half, values: &mut [f32], others: &[f32], change: impl Fn(f32, f32) -> f32) {
    values.iter_mut().zip(others).for_each(|(x, other)| *x = change(*x, *other));
    half.round(values);
}

vectorized! {
    fn exponentials(values: &mut [f32]) {
        for x in values.iter_mut() {
            *x = exp::<FMA>(*x);
        }
    }
}

/// Turns rounded scores into probabilities, in place.
pub(super) fn softmax(half: Half, scores: &mut [f32]) {
    let largest = max(scores);
    each(half, scores, |x| x - largest);
    exponentials(scores);
    half.round(scores);
    let mass = sum(half, scores);
    each(half, scores, |x| x / mass);
}

/// Turns gradients of probabilities into gradients of scores, in place: p (g - sum of p g).
pub(super) fn slopes_of_scores(half: Half, slopes: &mut [f32], probabilities: &[f32]) {
    let mut products = slopes.to_vec();
    with(half, &mut products, probabilities, |g, p| g * p);
    let shift = sum(half, &products);
    each(half, slopes, |g| g - shift);
    with(half, slopes, probabilities, |g, p| g * p);
}

#[cfg(test)]
mod tests {
    use burn::tensor::f16;

    use super::*;
    use crate::random::Key;

    pub(super) fn draw(stream: u64, n: u32, scale: f32) -> Vec<f32> {
        let key = Key::new(77, stream, 0);
        let mut values: Vec<f32> = (0..n).map(|i| scale * key.normal(i)).collect();
        Half::Fp16.round(&mut values);
        values
    }

    /// [`sum`] with the arithmetic of the type `f16`.
    pub(super) fn plain_sum(values: &[f16]) -> f16 {
        let mut sums = vec![f16::ZERO; THREADS];
        for (i, x) in values.iter().enumerate() {
            sums[i % THREADS] += *x;
        }
        while sums.len() > 1 {
            let upper = sums.split_off(sums.len() / 2);
            sums.iter_mut().zip(upper).for_each(|(sum, x)| *sum += x);
        }
        sums[0]
    }

    pub(super) fn halves(values: &[f32]) -> Vec<f16> {
        values.iter().map(|x| f16::from_f32(*x)).collect()
    }

    #[test]
    fn a_sum_has_rounded_accumulators_in_the_order_of_threads() {
        for n in [0, 1, 100, 256, 257, 3_000, 9_712] {
            let values = draw(1, n, 1.0);
            assert_eq!(sum(Half::Fp16, &values), plain_sum(&halves(&values)).to_f32(), "{n}");
        }
        // Up to 2,048 per thread, ones are added; then 1 is half of the unit, and a tie.
        assert_eq!(sum(Half::Fp16, &[1.0; 4096]), 4096.0);
        let some: Vec<f32> = (0..3_000 * THREADS).map(|i| f32::from(u8::from(i % THREADS == 0))).collect();
        assert_eq!(sum(Half::Fp16, &some), 2048.0);
        assert_eq!(sum(Half::Bf16, &some), 256.0);
        assert_eq!(sum(Half::Fp16, &[256.0; 256]), f32::INFINITY);
    }

    #[test]
    fn softmax_is_that_of_halves() {
        let scores = draw(2, 300, 3.0);
        let largest = scores.iter().fold(f32::MIN, |a, b| a.max(*b));
        let shifted = halves(&scores).into_iter().map(|x| x - f16::from_f32(largest));
        let mut powers: Vec<f32> = shifted.map(f16::to_f32).collect();
        exponentials(&mut powers);
        let powers = halves(&powers);
        let mass = plain_sum(&powers);
        let mut found = scores;
        softmax(Half::Fp16, &mut found);
        for (found, power) in found.iter().zip(&powers) {
            assert_eq!(*found, (*power / mass).to_f32());
        }
    }

    #[test]
    fn slopes_are_those_of_halves() {
        let (probabilities, slopes) = (draw(3, 300, 0.01), draw(4, 300, 1.0));
        let (p, g) = (halves(&probabilities), halves(&slopes));
        let products: Vec<f16> = p.iter().zip(&g).map(|(p, g)| *p * *g).collect();
        let shift = plain_sum(&products);
        let mut found = slopes;
        slopes_of_scores(Half::Fp16, &mut found, &probabilities);
        for (found, (p, g)) in found.iter().zip(p.iter().zip(&g)) {
            assert_eq!(*found, (*p * (*g - shift)).to_f32());
        }
    }
}
