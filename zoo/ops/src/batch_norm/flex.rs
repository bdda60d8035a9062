//! The operation on the CPU.

use burn::backend::{Flex, TensorMetadata, tensor::FloatTensor};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::super::host::{self, Source};
use super::super::islands::HalfBatch;
use super::super::rounding::Half;
use super::kernels::{block_moments, joined, normalize, spread, sum_gradients};
use super::{BatchNormOp, Kind, Rows};

/// Number of rows of a block. The sums of a block are one term, so that the order does not depend
/// on the threads.
fn block_rows(channels: usize) -> usize {
    (16_384 / channels.max(1)).clamp(16, 1024)
}

/// Factors of a channel's values.
struct Scales {
    mean: Vec<f32>,
    /// 1 / sqrt(variance + epsilon).
    inverse: Vec<f32>,
    /// gamma / sqrt(variance + epsilon).
    scale: Vec<f32>,
    beta: Vec<f32>,
}

impl Scales {
    fn new(
        mean: &FlexTensor,
        variance: &FlexTensor,
        gamma: &FlexTensor,
        beta: &FlexTensor,
        kind: &Kind,
    ) -> Self {
        let inverse: Vec<f32> = host::values(variance)
            .iter()
            .map(|variance| (1.0 / (f64::from(*variance) + f64::from(kind.epsilon)).sqrt()) as f32)
            .collect();
        let scale = inverse.iter().zip(host::values(gamma).iter()).map(|(a, b)| a * b).collect();
        Self { mean: host::values(mean).into_owned(), inverse, scale, beta: host::values(beta).into_owned() }
    }
}

impl BatchNormOp for Flex {
    fn batch_moments(
        x: FloatTensor<Self>,
        rows: Rows,
        half: Option<Half>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (n, channels) = (x.shape()[0], x.shape()[1]);
        if let Some(half) = half {
            let [mean, variance] = HalfBatch::new(half, &x, &rows).moments();
            return (host::stored(mean, [channels]), host::stored(variance, [channels]));
        }
        let values = Source::new(&x);
        let step = block_rows(channels);
        let parts: Vec<(usize, Vec<f32>)> = (0..n.div_ceil(step))
            .into_par_iter()
            .map_init(Vec::new, |room, i| {
                let (first, there) = (i * step, step.min(n - i * step));
                let valid = rows.part(first, there);
                let count = if valid.is_empty() { there } else { valid.iter().filter(|&&v| v).count() };
                let mut sums = vec![0f32; 3 * channels];
                let x = values.part(first * channels, there * channels, room);
                block_moments(&mut sums, x, valid, count as f32, channels);
                (count, sums)
            })
            .collect();
        let (mean, variance) = joined(&parts, channels);
        (host::stored(mean, [channels]), host::stored(variance, [channels]))
    }

    fn batch_normalized(
        x: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self> {
        let (shape, channels) = (x.shape(), x.shape()[1]);
        if let Some(half) = kind.half {
            let factors = [&mean, &variance, &gamma, &beta].map(host::values);
            let out = HalfBatch::new(half, &x, &kind.rows).normalized(factors, kind.epsilon, kind.relu);
            return host::stored(out, shape);
        }
        let scales = Scales::new(&mean, &variance, &gamma, &beta, &kind);
        let values = Source::new(&x);
        let mut out = host::room(shape.num_elements());
        let step = block_rows(channels);
        out.par_chunks_mut((step * channels).max(1)).enumerate().for_each_init(Vec::new, |room, (i, out)| {
            let x = values.part(i * step * channels, out.len(), room);
            let valid = kind.rows.part(i * step, out.len() / channels);
            normalize(out, x, &scales.mean, &scales.scale, &scales.beta, valid, kind.relu);
        });
        host::stored(out, shape)
    }

    fn batch_normalized_backward(
        x: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        kind: Kind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (shape, n, channels) = (x.shape(), x.shape()[0], x.shape()[1]);
        if let Some(half) = kind.half {
            let factors = [&mean, &variance, &gamma, &beta].map(host::values);
            let batch = HalfBatch::new(half, &x, &kind.rows);
            let (dx, dgamma, dbeta) = batch.gradients(&gradient, factors, kind.epsilon, kind.relu);
            return (dx, host::stored(dgamma, [channels]), host::stored(dbeta, [channels]));
        }
        let scales = Scales::new(&mean, &variance, &gamma, &beta, &kind);
        let (values, gradients) = (Source::new(&x), Source::new(&gradient));
        let step = block_rows(channels);
        let part = |i: usize| (i * step, step.min(n - i * step));
        let parts: Vec<Vec<f32>> = (0..n.div_ceil(step))
            .into_par_iter()
            .map_init(
                || (Vec::new(), Vec::new()),
                |(room, other), i| {
                    let (first, there) = part(i);
                    let x = values.part(first * channels, there * channels, room);
                    let dy = gradients.part(first * channels, there * channels, other);
                    let mut sums = vec![0f32; 2 * channels];
                    let valid = kind.rows.part(first, there);
                    sum_gradients(
                        &mut sums,
                        x,
                        dy,
                        &scales.mean,
                        &scales.scale,
                        &scales.beta,
                        valid,
                        kind.relu,
                    );
                    sums
                },
            )
            .collect();
        let mut sums = vec![0f64; 2 * channels];
        for part in &parts {
            sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        // Sums of dy (x - mean), and of dy.
        let (projected, total) = sums.split_at(channels);
        let count = if kind.of_batch { kind.rows.count(n).max(1) as f64 } else { f64::INFINITY };
        let inverse = scales.inverse.iter().map(|&inverse| f64::from(inverse));
        let dgamma: Vec<f32> = projected.iter().zip(inverse.clone()).map(|(a, b)| (a * b) as f32).collect();
        let dbeta: Vec<f32> = total.iter().map(|&sum| sum as f32).collect();
        // dx = scale (dy - total / n - (x - mean) inverse^2 projected / n)
        let along: Vec<f32> = projected
            .iter()
            .zip(inverse)
            .map(|(sum, inverse)| (sum * inverse * inverse / count) as f32)
            .collect();
        let constant: Vec<f32> = total.iter().map(|sum| (sum / count) as f32).collect();
        let write = |i: usize, out: &mut [f32], room: &mut Vec<f32>, other: &mut Vec<f32>| {
            let (first, there) = part(i);
            let x = values.part(first * channels, there * channels, room);
            let dy = gradients.part(first * channels, there * channels, other);
            let valid = kind.rows.part(first, there);
            let Scales { mean, scale, beta, .. } = &scales;
            spread(out, x, dy, mean, scale, beta, &along, &constant, valid, kind.relu);
        };
        let size = (step * channels).max(1);
        let rooms = || (Vec::new(), Vec::new());
        let (dx, _) = host::build_blocks((shape, x.dtype()), size, rooms, |(room, other), i, out| {
            write(i, out, room, other);
        });
        (dx, host::stored(dgamma, [channels]), host::stored(dbeta, [channels]))
    }
}
