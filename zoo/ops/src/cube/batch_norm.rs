//! Batch normalisation on GPUs: statistics of the columns, the normalisation with its ReLU, and the
//! gradients of both.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::batch_norm::{BatchNormOp, Kind, Rows};
use super::super::rounding::Half;
use super::columns::{Blocks, LANES, STRIP, blocks_sum, column, lane_rows, lanes_sum};
use super::{UNITS, cubes, element, numbers, output, room, values};

/// Number of rows whose bits form one number.
const BITS: usize = 32;

/// Whether a row is valid. With padding, each row has one bit.
#[cube]
fn counts(valid: &[u32], row: usize, #[comptime] padded: bool) -> bool {
    let mut counts = true.runtime();
    if padded {
        counts = (valid[row / BITS] >> (row % BITS) as u32) & 1 == 1;
    }
    counts
}

/// Moments of some rows of a column: their number, their mean, and the sum of squares about it.
#[derive(CubeType, Clone, Copy)]
struct Moments {
    count: f32,
    mean: f32,
    squares: f32,
}

/// Combines the moments of two parts (Chan et al. 1979).
#[cube]
fn joined(a: Moments, b: Moments) -> Moments {
    let count = a.count + b.count;
    let delta = b.mean - a.mean;
    // Parts without rows add nothing.
    let share = b.count / max(count, f32::new(1.0));
    Moments {
        count,
        mean: a.mean + delta * share,
        squares: a.squares + b.squares + delta * delta * a.count * share,
    }
}

/// Moments of each block of rows, `[blocks, 3, columns]`.
#[cube(launch_unchecked)]
fn block_moments_kernel<F: Float>(
    x: &[F],
    valid: &[u32],
    parts: &mut [f32],
    rows: usize,
    columns: usize,
    #[comptime] padded: bool,
    #[define(F)] _type: ElemType,
) {
    let mut scratch = Shared::<[f32]>::new_slice(UNITS);
    let column = column();
    let (first, end) = lane_rows(rows);
    let mut total = f32::new(0.0);
    let mut count = f32::new(0.0);
    if column < columns {
        let mut row = first;
        while row < end {
            if counts(valid, row, padded) {
                total += f32::cast_from(x[row * columns + column]);
                count += 1.0;
            }
            row += LANES;
        }
    }
    let count = lanes_sum(count, &mut scratch);
    let about = lanes_sum(total, &mut scratch) / max(count, f32::new(1.0));
    // The squares are about a rounded mean; `rest` corrects its rounding error.
    let mut rest = f32::new(0.0);
    let mut squares = f32::new(0.0);
    if column < columns {
        let mut row = first;
        while row < end {
            if counts(valid, row, padded) {
                let deviation = f32::cast_from(x[row * columns + column]) - about;
                rest += deviation;
                squares += deviation * deviation;
            }
            row += LANES;
        }
    }
    let rest = lanes_sum(rest, &mut scratch) / max(count, f32::new(1.0));
    let squares = lanes_sum(squares, &mut scratch);
    if UNIT_POS_Y == 0 && column < columns {
        let first = 3 * CUBE_POS_Y as usize * columns + column;
        parts[first] = count;
        parts[first + columns] = about + rest;
        parts[first + 2 * columns] = squares - rest * rest * count;
    }
}

/// Combines the blocks' moments to means and variances.
#[cube(launch_unchecked)]
fn moments_kernel(parts: &[f32], mean: &mut [f32], variance: &mut [f32], blocks: usize, columns: usize) {
    let mut counts = Shared::<[f32]>::new_slice(UNITS);
    let mut means = Shared::<[f32]>::new_slice(UNITS);
    let mut squares = Shared::<[f32]>::new_slice(UNITS);
    let column = column();
    let mut count = f32::new(0.0);
    let mut about = f32::new(0.0);
    let mut spread = f32::new(0.0);
    if column < columns {
        let mut block = UNIT_POS_Y as usize;
        while block < blocks {
            let first = 3 * block * columns + column;
            let all = joined(
                Moments { count, mean: about, squares: spread },
                Moments {
                    count: parts[first],
                    mean: parts[first + columns],
                    squares: parts[first + 2 * columns],
                },
            );
            count = all.count;
            about = all.mean;
            spread = all.squares;
            block += LANES;
        }
    }
    let here = UNIT_POS as usize;
    counts[here] = count;
    means[here] = about;
    squares[here] = spread;
    sync_cube();
    if UNIT_POS_Y == 0 && column < columns {
        #[unroll]
        for lane in 1..LANES {
            let there = lane * STRIP + UNIT_POS_X as usize;
            let all = joined(
                Moments { count, mean: about, squares: spread },
                Moments { count: counts[there], mean: means[there], squares: squares[there] },
            );
            count = all.count;
            about = all.mean;
            spread = all.squares;
        }
        mean[column] = about;
        // NaN must be kept: overflow detection relies on it.
        variance[column] = select(spread < 0.0, f32::new(0.0), spread) / max(count, f32::new(1.0));
    }
}

/// Factors of a column's values.
#[derive(CubeType, Clone, Copy)]
struct Scales {
    mean: f32,
    /// 1 / sqrt(variance + epsilon).
    inverse: f32,
    /// gamma / sqrt(variance + epsilon).
    scale: f32,
    beta: f32,
}

/// Computes the factors of a column.
#[cube]
fn scales(
    mean: &[f32],
    variance: &[f32],
    gamma: &[f32],
    beta: &[f32],
    column: usize,
    epsilon: f32,
) -> Scales {
    let inverse = 1.0 / (variance[column] + epsilon).sqrt();
    Scales { mean: mean[column], inverse, scale: inverse * gamma[column], beta: beta[column] }
}

/// The gradient before the ReLU.
#[cube]
fn passed(deviation: f32, gradient: f32, with: &Scales, #[comptime] relu: bool) -> f32 {
    let mut gradient = gradient;
    if relu {
        gradient = select(deviation * with.scale + with.beta <= 0.0, f32::new(0.0), gradient);
    }
    gradient
}

#[cube(launch_unchecked)]
fn normalized_kernel<F: Float>(
    x: &[F],
    mean: &[f32],
    variance: &[f32],
    gamma: &[f32],
    beta: &[f32],
    valid: &[u32],
    out: &mut [f32],
    rows: usize,
    columns: usize,
    epsilon: f32,
    #[comptime] relu: bool,
    #[comptime] padded: bool,
    #[define(F)] _type: ElemType,
) {
    let (row, column) = (ABSOLUTE_POS / columns, ABSOLUTE_POS % columns);
    if row >= rows {
        terminate!();
    }
    let mut y = f32::new(0.0);
    if counts(valid, row, padded) {
        let with = scales(mean, variance, gamma, beta, column, epsilon);
        y = (f32::cast_from(x[ABSOLUTE_POS]) - with.mean) * with.scale + with.beta;
        if relu {
            y = select(y <= 0.0, f32::new(0.0), y);
        }
    }
    out[ABSOLUTE_POS] = y;
}

/// Sums of dy (x - mean), and of dy, over each block of rows: `[blocks, 2, columns]`.
#[cube(launch_unchecked)]
fn block_gradients_kernel<F: Float>(
    x: &[F],
    mean: &[f32],
    variance: &[f32],
    gamma: &[f32],
    beta: &[f32],
    gradient: &[f32],
    valid: &[u32],
    parts: &mut [f32],
    rows: usize,
    columns: usize,
    epsilon: f32,
    #[comptime] relu: bool,
    #[comptime] padded: bool,
    #[define(F)] _type: ElemType,
) {
    let mut scratch = Shared::<[f32]>::new_slice(UNITS);
    let column = column();
    let (first, end) = lane_rows(rows);
    let mut projected = f32::new(0.0);
    let mut total = f32::new(0.0);
    if column < columns {
        let with = scales(mean, variance, gamma, beta, column, epsilon);
        let mut row = first;
        while row < end {
            if counts(valid, row, padded) {
                let deviation = f32::cast_from(x[row * columns + column]) - with.mean;
                let dy = passed(deviation, gradient[row * columns + column], &with, relu);
                projected += dy * deviation;
                total += dy;
            }
            row += LANES;
        }
    }
    let projected = lanes_sum(projected, &mut scratch);
    let total = lanes_sum(total, &mut scratch);
    if UNIT_POS_Y == 0 && column < columns {
        let first = 2 * CUBE_POS_Y as usize * columns + column;
        parts[first] = projected;
        parts[first + columns] = total;
    }
}

/// Adds the blocks' sums: the gradients of gamma and beta.
#[cube(launch_unchecked)]
fn gradients_kernel(
    parts: &[f32],
    variance: &[f32],
    for_gamma: &mut [f32],
    for_beta: &mut [f32],
    blocks: usize,
    columns: usize,
    epsilon: f32,
) {
    let mut scratch = Shared::<[f32]>::new_slice(UNITS);
    let column = column();
    let live = column < columns;
    let projected = blocks_sum(parts, column, 2 * columns, blocks, live, &mut scratch);
    let total = blocks_sum(parts, columns + column, 2 * columns, blocks, live, &mut scratch);
    if UNIT_POS_Y == 0 && live {
        for_gamma[column] = projected / (variance[column] + epsilon).sqrt();
        for_beta[column] = total;
    }
}

/// dx = scale (dy - share (for_beta + (x - mean) inverse for_gamma)). `share` is 1 / rows, or 0 for
/// given statistics.
#[cube(launch_unchecked)]
fn spread_kernel<F: Float>(
    x: &[F],
    mean: &[f32],
    variance: &[f32],
    gamma: &[f32],
    beta: &[f32],
    gradient: &[f32],
    for_gamma: &[f32],
    for_beta: &[f32],
    valid: &[u32],
    out: &mut [F],
    rows: usize,
    columns: usize,
    epsilon: f32,
    share: f32,
    #[comptime] relu: bool,
    #[comptime] padded: bool,
    #[define(F)] _type: ElemType,
) {
    let (row, column) = (ABSOLUTE_POS / columns, ABSOLUTE_POS % columns);
    if row >= rows {
        terminate!();
    }
    let mut dx = f32::new(0.0);
    if counts(valid, row, padded) {
        let with = scales(mean, variance, gamma, beta, column, epsilon);
        let deviation = f32::cast_from(x[ABSOLUTE_POS]) - with.mean;
        let dy = passed(deviation, gradient[ABSOLUTE_POS], &with, relu);
        let along = for_gamma[column] * with.inverse * share;
        dx = (dy - for_beta[column] * share - deviation * along) * with.scale;
    }
    out[ABSOLUTE_POS] = F::cast_from(dx);
}

/// The bits of the valid rows; arbitrary if all rows are valid.
fn bits(rows: &Rows, like: &CubeTensor) -> BufferArg {
    match rows.valid() {
        Some(valid) => {
            let bits = valid.chunks(BITS).map(|rows| {
                rows.iter().enumerate().fold(0, |bits, (i, &valid)| bits | u32::from(valid) << i)
            });
            numbers(like, &bits.collect::<Vec<_>>())
        }
        None => values(like),
    }
}

impl BatchNormOp for CubeBackend {
    fn batch_moments(
        x: FloatTensor<Self>,
        rows: Rows,
        _: Option<Half>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [n, columns] = x.shape().dims();
        let blocks = Blocks::new(n, columns);
        let parts = room(&x, [blocks.count, 3, columns], DType::F32);
        let [mean, variance] = [(); 2].map(|()| room(&x, [columns], DType::F32));
        // SAFETY: units without a row or a column read nothing, and one unit of a column writes;
        // rows have a bit each.
        unsafe {
            block_moments_kernel::launch_unchecked(
                &x.client,
                blocks.each(),
                Blocks::dim(),
                values(&x),
                bits(&rows, &mean),
                output(&parts),
                n,
                columns,
                rows.valid().is_some(),
                element(&x),
            );
            moments_kernel::launch_unchecked(
                &x.client,
                blocks.all(),
                Blocks::dim(),
                values(&parts),
                output(&mean),
                output(&variance),
                blocks.count,
                columns,
            );
        }
        (mean, variance)
    }

    fn batch_normalized(
        x: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self> {
        let [n, columns] = x.shape().dims();
        let out = room(&x, [n, columns], DType::F32);
        // SAFETY: a unit beyond the values ends before it reads; rows have a bit each.
        unsafe {
            normalized_kernel::launch_unchecked(
                &x.client,
                cubes((n * columns).div_ceil(UNITS), &x),
                CubeDim::new_1d(UNITS as u32),
                values(&x),
                values(&mean),
                values(&variance),
                values(&gamma),
                values(&beta),
                bits(&kind.rows, &mean),
                output(&out),
                n,
                columns,
                kind.epsilon,
                kind.relu,
                kind.rows.valid().is_some(),
                element(&x),
            );
        }
        out
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
        let [n, columns] = x.shape().dims();
        let blocks = Blocks::new(n, columns);
        let parts = room(&x, [blocks.count, 2, columns], DType::F32);
        let [for_gamma, for_beta] = [(); 2].map(|()| room(&x, [columns], DType::F32));
        let out = room(&x, x.shape(), x.dtype);
        let share = if kind.of_batch { 1.0 / kind.rows.count(n).max(1) as f32 } else { 0.0 };
        let padded = kind.rows.valid().is_some();
        // SAFETY: units without a row or a column read nothing, and one unit of each place writes;
        // rows have a bit each.
        unsafe {
            block_gradients_kernel::launch_unchecked(
                &x.client,
                blocks.each(),
                Blocks::dim(),
                values(&x),
                values(&mean),
                values(&variance),
                values(&gamma),
                values(&beta),
                values(&gradient),
                bits(&kind.rows, &mean),
                output(&parts),
                n,
                columns,
                kind.epsilon,
                kind.relu,
                padded,
                element(&x),
            );
            gradients_kernel::launch_unchecked(
                &x.client,
                blocks.all(),
                Blocks::dim(),
                values(&parts),
                values(&variance),
                output(&for_gamma),
                output(&for_beta),
                blocks.count,
                columns,
                kind.epsilon,
            );
            spread_kernel::launch_unchecked(
                &x.client,
                cubes((n * columns).div_ceil(UNITS), &x),
                CubeDim::new_1d(UNITS as u32),
                values(&x),
                values(&mean),
                values(&variance),
                values(&gamma),
                values(&beta),
                values(&gradient),
                values(&for_gamma),
                values(&for_beta),
                bits(&kind.rows, &mean),
                output(&out),
                n,
                columns,
                kind.epsilon,
                share,
                kind.relu,
                padded,
                element(&x),
            );
        }
        (out, for_gamma, for_beta)
    }
}
