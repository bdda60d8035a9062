//! Loops over rows of channels: moments, normalisation, gradients.

use crate::simd::{fma, vectorized};

/// Combines the mean and variance of blocks, in order, in FP64 (Chan et al. 1979).
pub(super) fn joined(parts: &[(usize, Vec<f32>)], channels: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut count, mut mean, mut squares) = (0.0, vec![0f64; channels], vec![0f64; channels]);
    for (rows, sums) in parts.iter().filter(|(rows, _)| *rows > 0) {
        let rows = *rows as f64;
        let all = count + rows;
        for c in 0..channels {
            let [about, rest, square] = [0, 1, 2].map(|i| f64::from(sums[i * channels + c]));
            // The squares are about a rounded mean; `rest` corrects its rounding error.
            let of_block = about + rest / rows;
            let delta = of_block - mean[c];
            squares[c] += square - rest * rest / rows + delta * delta * count * rows / all;
            mean[c] += delta * rows / all;
        }
        count = all;
    }
    let variance = squares.iter().map(|&sum| (sum.max(0.0) / f64::max(count, 1.0)) as f32);
    // NaN must be kept: overflow detection relies on it.
    let variance = variance.zip(&squares).map(|(v, s)| if s.is_nan() { f32::NAN } else { v }).collect();
    (mean.iter().map(|&mean| mean as f32).collect(), variance)
}

/// Whether row i counts.
#[inline(always)]
pub(super) fn counts(valid: &[bool], i: usize) -> bool {
    valid.is_empty() || valid[i]
}

vectorized! {
    /// For each channel: the mean, the sum of deviations from the rounded mean, and the sum of
    /// their squares.
    pub(super) fn block_moments(sums: &mut [f32], x: &[f32], valid: &[bool], count: f32, channels: usize) {
        let (mean, rest) = sums.split_at_mut(channels);
        let (rest, squares) = rest.split_at_mut(channels);
        for (i, row) in x.chunks_exact(channels).enumerate() {
            if counts(valid, i) {
                mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
        if count > 0.0 {
            mean.iter_mut().for_each(|sum| *sum /= count);
        }
        for (i, row) in x.chunks_exact(channels).enumerate() {
            if counts(valid, i) {
                for c in 0..channels {
                    let deviation = row[c] - mean[c];
                    rest[c] += deviation;
                    squares[c] = fma::<FMA>(deviation, deviation, squares[c]);
                }
            }
        }
    }

    pub(super) fn normalize(out: &mut [f32], x: &[f32], mean: &[f32], scale: &[f32], beta: &[f32], valid: &[bool], relu: bool) {
        let channels = mean.len();
        let (scale, beta) = (&scale[..channels], &beta[..channels]);
        for (i, (out, row)) in out.chunks_exact_mut(channels).zip(x.chunks_exact(channels)).enumerate() {
            if !counts(valid, i) {
                out.fill(0.0);
                continue;
            }
            for c in 0..channels {
                out[c] = fma::<FMA>(row[c] - mean[c], scale[c], beta[c]);
            }
            if relu {
                out.iter_mut().for_each(|y| *y = if *y <= 0.0 { 0.0 } else { *y });
            }
        }
    }

    /// Sums of dy (x - mean), and of dy.
    pub(super) fn sum_gradients(sums: &mut [f32], x: &[f32], dy: &[f32], mean: &[f32], scale: &[f32], beta: &[f32], valid: &[bool], relu: bool) {
        let channels = mean.len();
        let (projected, total) = sums.split_at_mut(channels);
        let (scale, beta, total) = (&scale[..channels], &beta[..channels], &mut total[..channels]);
        for (i, (row, dy)) in x.chunks_exact(channels).zip(dy.chunks_exact(channels)).enumerate() {
            if !counts(valid, i) {
                continue;
            }
            for c in 0..channels {
                let deviation = row[c] - mean[c];
                let off = relu && fma::<FMA>(deviation, scale[c], beta[c]) <= 0.0;
                let dy = if off { 0.0 } else { dy[c] };
                projected[c] = fma::<FMA>(dy, deviation, projected[c]);
                total[c] += dy;
            }
        }
    }

    /// Writes the gradients of x.
    pub(super) fn spread(
        out: &mut [f32], x: &[f32], dy: &[f32], mean: &[f32], scale: &[f32], beta: &[f32], along: &[f32], constant: &[f32],
        valid: &[bool], relu: bool,
    ) {
        let channels = mean.len();
        let (scale, beta) = (&scale[..channels], &beta[..channels]);
        let (along, constant) = (&along[..channels], &constant[..channels]);
        for (i, out) in out.chunks_exact_mut(channels).enumerate() {
            if !counts(valid, i) {
                out.fill(0.0);
                continue;
            }
            let (row, dy) = (&x[i * channels..][..channels], &dy[i * channels..][..channels]);
            for c in 0..channels {
                let deviation = row[c] - mean[c];
                let off = relu && fma::<FMA>(deviation, scale[c], beta[c]) <= 0.0;
                let dy = if off { 0.0 } else { dy[c] };
                out[c] = fma::<FMA>(-deviation, along[c], dy - constant[c]) * scale[c];
            }
        }
    }
}
