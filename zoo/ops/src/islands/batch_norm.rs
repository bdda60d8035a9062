//! Channels of a batch norm without FP32. A sum over the rows has the order of [`super::sum`].

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::super::batch_norm::Rows;
use super::super::host::{self, Source};
use super::super::rounding::Half;
use super::{THREADS, each, one, with};

/// A batch `[rows, channels]` whose values are read in a half type.
pub struct HalfBatch<'a> {
    half: Half,
    x: &'a FlexTensor,
    values: Source<'a>,
    channels: usize,
    rows: &'a Rows,
    /// Indices of the valid rows.
    valid: Vec<usize>,
    /// Number of the valid rows, rounded.
    count: f32,
}

/// Factors of the channels, rounded.
struct Factors {
    mean: Vec<f32>,
    inverse: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
}

/// Sums of the valid rows' terms, with rounded accumulators. `term` writes those of a row.
fn sum_rows(
    half: Half,
    valid: &[usize],
    width: usize,
    term: impl Fn(usize, &mut [f32]) + Sync + Send,
) -> Vec<f32> {
    let mut sums = vec![0f32; THREADS * width];
    let threads = sums.par_chunks_mut(width.max(1)).enumerate();
    threads.for_each_init(
        || vec![0f32; width],
        |terms, (thread, sum)| {
            for row in valid.iter().skip(thread).step_by(THREADS) {
                term(*row, terms);
                with(half, sum, terms, |sum, x| sum + x);
            }
        },
    );
    let mut threads = THREADS;
    while threads > 1 {
        threads /= 2;
        let (lower, upper) = sums.split_at_mut(threads * width);
        with(half, lower, upper, |sum, x| sum + x);
    }
    sums.truncate(width);
    sums
}

impl<'a> HalfBatch<'a> {
    pub fn new(half: Half, x: &'a FlexTensor, rows: &'a Rows) -> Self {
        let (n, channels) = (x.shape()[0], x.shape()[1]);
        let counts = rows.part(0, n);
        let valid: Vec<usize> = (0..n).filter(|&row| counts.is_empty() || counts[row]).collect();
        let count = one(half, valid.len().max(1) as f32);
        Self { half, x, values: Source::new(x), channels, rows, valid, count }
    }

    fn is_padding(&self, row: usize) -> bool {
        self.rows.part(row, 1).contains(&false)
    }

    fn read(&self, row: usize, to: &mut [f32]) {
        self.values.read(row * self.channels, to);
        self.half.round(to);
    }

    /// Mean of the valid rows' terms.
    fn mean_of(&self, term: impl Fn(usize, &mut [f32]) + Sync + Send) -> Vec<f32> {
        let mut sums = sum_rows(self.half, &self.valid, self.channels, term);
        self.share(&mut sums);
        sums
    }

    /// Divides sums by the number of rows.
    fn share(&self, sums: &mut [f32]) {
        each(self.half, sums, |sum| sum / self.count);
    }

    /// Mean and biased variance of the channels.
    pub fn moments(&self) -> [Vec<f32>; 2] {
        let mean = self.mean_of(|row, to| self.read(row, to));
        let variance = self.mean_of(|row, to| {
            self.read(row, to);
            with(self.half, to, &mean, |x, mean| x - mean);
            each(self.half, to, |x| x * x);
        });
        [mean, variance]
    }

    /// Rounds mean, variance, gamma and beta.
    fn factors(&self, factors: [Cow<'_, [f32]>; 4], epsilon: f32) -> Factors {
        let half = self.half;
        let [mean, mut inverse, gamma, beta] = factors.map(|values| {
            let mut values = values.into_owned();
            half.round(&mut values);
            values
        });
        let epsilon = one(half, epsilon);
        each(half, &mut inverse, |variance| variance + epsilon);
        each(half, &mut inverse, f32::sqrt);
        each(half, &mut inverse, |deviation| 1.0 / deviation);
        Factors { mean, inverse, gamma, beta }
    }

    /// Writes a row with mean 0 and variance 1.
    fn normalize(&self, row: usize, to: &mut [f32], factors: &Factors) {
        self.read(row, to);
        with(self.half, to, &factors.mean, |x, mean| x - mean);
        with(self.half, to, &factors.inverse, |x, inverse| x * inverse);
    }

    /// Turns a normalised row into an output, in place.
    fn scale(&self, row: &mut [f32], factors: &Factors) {
        with(self.half, row, &factors.gamma, |x, gamma| x * gamma);
        with(self.half, row, &factors.beta, |x, beta| x + beta);
    }

    /// Outputs, given mean, variance, gamma and beta of the channels.
    pub fn normalized(&self, factors: [Cow<'_, [f32]>; 4], epsilon: f32, relu: bool) -> Vec<f32> {
        let factors = self.factors(factors, epsilon);
        let mut out = host::room::<f32>(self.x.shape().num_elements());
        out.par_chunks_mut(self.channels.max(1)).enumerate().for_each(|(row, out)| {
            if self.is_padding(row) {
                return out.fill(0.0);
            }
            self.normalize(row, out, &factors);
            self.scale(out, &factors);
            if relu {
                out.iter_mut().for_each(|y| *y = if *y <= 0.0 { 0.0 } else { *y });
            }
        });
        out
    }

    /// Gradients of x, gamma and beta, given mean, variance, gamma and beta of the channels.
    pub fn gradients(
        &self,
        upstream: &FlexTensor,
        factors: [Cow<'_, [f32]>; 4],
        epsilon: f32,
        relu: bool,
    ) -> (FlexTensor, Vec<f32>, Vec<f32>) {
        let (half, channels) = (self.half, self.channels);
        let factors = self.factors(factors, epsilon);
        let upstream = Source::new(upstream);
        // The normalised row, and its output's gradient behind the ReLU.
        let read = |row: usize, normal: &mut [f32], dy: &mut [f32]| {
            self.normalize(row, normal, &factors);
            upstream.read(row * channels, dy);
            half.round(dy);
            if relu {
                let mut out = normal.to_vec();
                self.scale(&mut out, &factors);
                dy.iter_mut().zip(&out).for_each(|(dy, out)| *dy = if *out <= 0.0 { 0.0 } else { *dy });
            }
        };
        let mut for_gamma = sum_rows(half, &self.valid, 2 * channels, |row, terms| {
            let (projected, dy) = terms.split_at_mut(channels);
            read(row, projected, dy);
            with(half, projected, dy, |normal, dy| normal * dy);
        });
        let for_beta = for_gamma.split_off(channels);
        let [along, constant] = [&for_gamma, &for_beta].map(|sums| {
            let mut mean = sums.clone();
            self.share(&mut mean);
            mean
        });
        let mut scale = factors.gamma.clone();
        with(half, &mut scale, &factors.inverse, |gamma, inverse| gamma * inverse);
        let kind = (self.x.shape(), self.x.dtype());
        let (dx, _) = host::build_blocks(kind, channels, Vec::new, |normal: &mut Vec<f32>, row, out| {
            if self.is_padding(row) {
                return out.fill(0.0);
            }
            normal.resize(channels, 0.0);
            read(row, normal, out);
            with(half, out, &constant, |dy, mean| dy - mean);
            with(half, normal, &along, |x, along| x * along);
            with(half, out, normal, |dy, x| dy - x);
            with(half, out, &scale, |dx, scale| dx * scale);
        });
        (dx, for_gamma, for_beta)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, Tensor, TensorData, f16};

    use super::super::Islands;
    use super::super::tests::{draw, halves, plain_sum};
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::{Normalization, Pass, Rows, batch_norm};

    const CHANNELS: usize = 37;
    const EPSILON: f64 = 1e-3;
    const F16: Compute = Compute(FloatDType::F16);

    /// Every third row and the last ones are padding.
    fn valid(rows: usize) -> Vec<bool> {
        (0..rows).map(|row| row % 3 != 1 && row + 5 < rows).collect()
    }

    /// Values of a batch, gamma, beta, and gradients of the outputs.
    fn drawn(rows: usize, scale: f32) -> [Vec<f32>; 4] {
        let (n, channels) = ((rows * CHANNELS) as u32, CHANNELS as u32);
        [draw(1, n, scale), draw(2, channels, 1.0), draw(3, channels, 1.0), draw(4, n, 1.0)]
    }

    /// Output; gradients of x, gamma and beta; mean and variance.
    fn run(
        compute: Compute,
        norms: bool,
        rows: usize,
        scale: f32,
        relu: bool,
        padded: bool,
    ) -> [Vec<f32>; 6] {
        let device = Device::flex().autodiff();
        let [x, gamma, beta, upstream] = drawn(rows, scale);
        let batch = |values| Tensor::<2>::from_data(TensorData::new(values, [rows, CHANNELS]), &device);
        let x = batch(x).require_grad();
        let [gamma, beta] = [gamma, beta].map(|values| {
            Tensor::<1>::from_data(TensorData::new(values, [CHANNELS]), &device).require_grad()
        });
        let rows = if padded { Rows::of(valid(rows)) } else { Rows::all() };
        let how = Normalization { epsilon: EPSILON, relu, rows };
        let pass = Pass::training(compute, 1, 1).with_islands(Islands { norms, ..Islands::ALL });
        let (y, statistics) = batch_norm(x.clone(), gamma.clone(), beta.clone(), &how, &pass);
        let grads = (y.clone() * batch(upstream)).sum().backward();
        let flat = |x: Tensor<2>| host_values(x.flatten::<1>(0, 1));
        let [dgamma, dbeta] = [gamma, beta].map(|of| host_values(of.grad(&grads).unwrap()));
        let [mean, variance] = [statistics.mean, statistics.variance].map(host_values);
        [flat(y.inner()), flat(x.grad(&grads).unwrap()), dgamma, dbeta, mean, variance]
    }

    /// [`run`] for one channel's valid rows, with the arithmetic of the type `f16`.
    fn plain(x: &[f16], gamma: f16, beta: f16, dy: &[f16], relu: bool) -> [Vec<f16>; 6] {
        let n = f16::from_f32(x.len() as f32);
        let mean = plain_sum(x) / n;
        let centred: Vec<f16> = x.iter().map(|x| *x - mean).collect();
        let squares: Vec<f16> = centred.iter().map(|x| *x * *x).collect();
        let variance = plain_sum(&squares) / n;
        let inverse = f16::ONE / f16::from_f32((variance + f16::from_f64(EPSILON)).to_f32().sqrt());
        let normal: Vec<f16> = centred.iter().map(|x| *x * inverse).collect();
        let mut y: Vec<f16> = normal.iter().map(|x| *x * gamma + beta).collect();
        let mut dy = dy.to_vec();
        for (y, dy) in y.iter_mut().zip(&mut dy).filter(|(y, _)| relu && **y <= f16::ZERO) {
            (*y, *dy) = (f16::ZERO, f16::ZERO);
        }
        let projected: Vec<f16> = dy.iter().zip(&normal).map(|(dy, x)| *dy * *x).collect();
        let (dgamma, dbeta) = (plain_sum(&projected), plain_sum(&dy));
        let dx = dy.iter().zip(&normal).map(|(dy, x)| {
            let (along, constant) = (*x * (dgamma / n), dbeta / n);
            ((*dy - constant) - along) * (gamma * inverse)
        });
        let dx = dx.collect();
        [y, dx, vec![dgamma], vec![dbeta], vec![mean], vec![variance]]
    }

    /// More rows than a sum has threads.
    #[test]
    fn outputs_statistics_and_gradients_are_those_of_halves() {
        const ROWS: usize = 1_100;
        for (relu, padded) in [(false, false), (true, false), (false, true), (true, true)] {
            let found = run(F16, false, ROWS, 2.0, relu, padded);
            let [x, gamma, beta, upstream] = drawn(ROWS, 2.0).map(|values| halves(&values));
            let counts = if padded { valid(ROWS) } else { vec![true; ROWS] };
            let of_channel = |values: &[f16], channel: usize| -> Vec<f16> {
                let rows = values.chunks(CHANNELS).zip(&counts).filter(|(_, counts)| **counts);
                rows.map(|(row, _)| row[channel]).collect()
            };
            let [y, dx] = [&found[0], &found[1]].map(|values| halves(values));
            for channel in 0..CHANNELS {
                let due = plain(
                    &of_channel(&x, channel),
                    gamma[channel],
                    beta[channel],
                    &of_channel(&upstream, channel),
                    relu,
                );
                assert_eq!([&of_channel(&y, channel), &of_channel(&dx, channel)], [&due[0], &due[1]]);
                for (found, due) in found[2..].iter().zip(&due[2..]) {
                    assert_eq!(found[channel], due[0].to_f32(), "{relu} {padded}");
                }
            }
            for values in [y, dx] {
                let rows = values.chunks(CHANNELS).zip(&counts).filter(|(_, counts)| !**counts);
                assert!(rows.flat_map(|(row, _)| row).all(|x| *x == f16::ZERO));
            }
        }
    }

    /// FP16 has eleven significant bits, bf16 eight. Where a ReLU's input is near zero, only one of
    /// the types may pass the gradient.
    #[test]
    fn values_and_gradients_are_near_those_of_fp32_and_rounded() {
        for (compute, part) in [(F16, 0.01), (Compute(FloatDType::BF16), 0.08)] {
            for (relu, padded) in [(false, false), (true, true)] {
                let [found, due] = [false, true].map(|norms| run(compute, norms, 600, 1.0, relu, padded));
                for (i, (found, due)) in found.iter().zip(&due).enumerate() {
                    let largest = due.iter().fold(0f32, |m, x| m.max(x.abs()));
                    let far = |(found, due): (&f32, &f32)| (found - due).abs() > part * largest;
                    let apart = found.iter().zip(due).filter(|pair| far(*pair)).count();
                    assert!(
                        apart * 30 <= if relu { found.len() } else { 0 },
                        "{compute:?} {relu} {i} {apart}"
                    );
                    let mut rounded = found.clone();
                    compute.round(&mut rounded);
                    assert_eq!(&rounded, found);
                    assert_ne!(found, due);
                }
            }
        }
    }

    /// The squares are about 900 each, and their sum over 700 rows is above 65,504. In FP32 the
    /// scale of a channel does not matter.
    #[test]
    fn a_sum_of_squares_over_the_rows_overflows() {
        let [large, exact] = [false, true].map(|norms| run(F16, norms, 700, 30.0, false, false));
        assert!(large[5].iter().all(|variance| *variance == f32::INFINITY));
        let beta = draw(3, CHANNELS as u32, 1.0);
        for row in large[0].chunks(CHANNELS) {
            assert_eq!(row, beta, "divided by infinity");
        }
        assert!(exact[0].iter().zip(&large[0]).any(|(exact, large)| (exact - large).abs() > 1.0));
        assert!(exact[5].iter().all(|variance| (700.0..1_100.0).contains(variance)));
    }

    /// The number of rows is rounded, too: FP16 ends at 65,504. Infinity divided by infinity is NaN.
    #[test]
    fn more_rows_than_fp16_can_count_leave_no_statistics() {
        let rows = 65_520;
        let of = |dtype| run(Compute(dtype), false, rows, 2.0, false, false)[5].clone();
        assert!(of(FloatDType::F16).iter().all(|variance| variance.is_nan()));
        assert!(of(FloatDType::BF16).iter().all(|variance| (3.5..4.5).contains(variance)));
    }

    #[test]
    fn a_batch_of_padding_alone_comes_out_as_zeros() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::ones([4, 3], &device).require_grad();
        let [gamma, beta] = [1.0, 2.0].map(|value| Tensor::<1>::full([3], value, &device));
        let how = Normalization { epsilon: EPSILON, relu: false, rows: Rows::of(vec![false; 4]) };
        let pass = Pass::training(F16, 1, 1).with_islands(Islands { norms: false, ..Islands::ALL });
        let (y, statistics) = batch_norm(x.clone(), gamma, beta, &how, &pass);
        let dx = x.grad(&y.clone().sum().backward()).unwrap();
        for values in [host_values(y.inner()), host_values(dx)] {
            assert_eq!(values, [0.0; 12]);
        }
        assert_eq!((host_values(statistics.mean), statistics.count), (vec![0.0; 3], 0));
    }
}
