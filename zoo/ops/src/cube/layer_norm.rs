//! Layer normalisation on GPUs: several units for each row, and separate units for the columns of
//! the parameters' gradients.

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use cubecl::prelude::*;

use super::super::layer_norm::{LayerNormOp, Norm};
use super::rows::{Sharing, sum};
use super::{UNITS, cubes, output, room, values};

/// Number of rows over which one unit sums the parameters' gradients.
const ROWS: usize = 128;

/// Mean and inverse standard deviation of the row that begins at `first`.
#[cube]
fn moments(
    x: &[f32],
    first: usize,
    width: usize,
    epsilon: f32,
    scratch: &mut Shared<[f32]>,
    #[comptime] sharing: Sharing,
) -> (f32, f32) {
    let n = f32::cast_from(width as u32);
    let mut total = f32::new(0.0);
    let mut i = UNIT_POS_X as usize;
    while i < width {
        total += x[first + i];
        i += comptime!(sharing.units);
    }
    let mean = sum(total, scratch, sharing) / n;
    let mut total = f32::new(0.0);
    let mut i = UNIT_POS_X as usize;
    while i < width {
        let centred = x[first + i] - mean;
        total += centred * centred;
        i += comptime!(sharing.units);
    }
    let variance = sum(total, scratch, sharing) / n;
    (mean, 1.0 / (variance + epsilon).sqrt())
}

#[cube(launch_unchecked)]
fn normalized_kernel(
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
    out: &mut [f32],
    rows: usize,
    width: usize,
    epsilon: f32,
    #[comptime] sharing: Sharing,
) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    let row = CUBE_POS * comptime!(sharing.rows) + UNIT_POS_Y as usize;
    // Units without a row read the last one, because all units take part in the sums.
    let first = min(row, rows - 1) * width;
    let (mean, inverse) = moments(x, first, width, epsilon, &mut scratch, sharing);
    if row < rows {
        let mut i = UNIT_POS_X as usize;
        while i < width {
            out[first + i] = (x[first + i] - mean) * inverse * gamma[i] + beta[i];
            i += comptime!(sharing.units);
        }
    }
}

/// Gradient of x, and means and inverse standard deviations `[rows, 2]`.
#[cube(launch_unchecked)]
fn normalized_backward_kernel(
    x: &[f32],
    gamma: &[f32],
    gradient: &[f32],
    out: &mut [f32],
    statistics: &mut [f32],
    rows: usize,
    width: usize,
    epsilon: f32,
    #[comptime] sharing: Sharing,
) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(sharing.room()));
    let row = CUBE_POS * comptime!(sharing.rows) + UNIT_POS_Y as usize;
    let first = min(row, rows - 1) * width;
    let (mean, inverse) = moments(x, first, width, epsilon, &mut scratch, sharing);
    let mut scaled = f32::new(0.0);
    let mut projected = f32::new(0.0);
    let mut i = UNIT_POS_X as usize;
    while i < width {
        let g = gradient[first + i] * gamma[i];
        scaled += g;
        projected += g * (x[first + i] - mean) * inverse;
        i += comptime!(sharing.units);
    }
    let n = f32::cast_from(width as u32);
    let mean_gradient = sum(scaled, &mut scratch, sharing) / n;
    let projection = sum(projected, &mut scratch, sharing) / n;
    if row < rows {
        let mut i = UNIT_POS_X as usize;
        while i < width {
            let normal = (x[first + i] - mean) * inverse;
            out[first + i] = (gradient[first + i] * gamma[i] - mean_gradient - normal * projection) * inverse;
            i += comptime!(sharing.units);
        }
        if UNIT_POS_X == 0 {
            statistics[2 * row] = mean;
            statistics[2 * row + 1] = inverse;
        }
    }
}

/// Contribution of each block of rows to the gradients of gamma and beta, `[blocks, 2, width]`.
/// Each unit handles one column.
#[cube(launch_unchecked)]
fn parameters_kernel(
    x: &[f32],
    gradient: &[f32],
    statistics: &[f32],
    parts: &mut [f32],
    rows: usize,
    width: usize,
) {
    let column = ABSOLUTE_POS_X as usize;
    let block = CUBE_POS_Y as usize;
    if column < width {
        let mut for_gamma = f32::new(0.0);
        let mut for_beta = f32::new(0.0);
        for row in block * ROWS..min((block + 1) * ROWS, rows) {
            let g = gradient[row * width + column];
            for_gamma += g * (x[row * width + column] - statistics[2 * row]) * statistics[2 * row + 1];
            for_beta += g;
        }
        parts[2 * block * width + column] = for_gamma;
        parts[(2 * block + 1) * width + column] = for_beta;
    }
}

/// Adds the blocks' parts, in order.
#[cube(launch_unchecked)]
fn totals_kernel(parts: &[f32], gamma: &mut [f32], beta: &mut [f32], blocks: usize, width: usize) {
    let column = ABSOLUTE_POS_X as usize;
    if column < width {
        let mut for_gamma = f32::new(0.0);
        let mut for_beta = f32::new(0.0);
        for block in 0..blocks {
            for_gamma += parts[2 * block * width + column];
            for_beta += parts[(2 * block + 1) * width + column];
        }
        gamma[column] = for_gamma;
        beta[column] = for_beta;
    }
}

impl LayerNormOp for CubeBackend {
    fn normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self> {
        let [rows, width] = x.shape().dims();
        let sharing = Sharing::short(&x.client);
        let out = room(&x, x.shape(), DType::F32);
        // SAFETY: units without a row read the last one and write nothing; gamma and beta are as
        // wide as rows.
        unsafe {
            normalized_kernel::launch_unchecked(
                &x.client,
                cubes(rows.div_ceil(sharing.rows), &x),
                sharing.dim(),
                values(&x),
                values(&gamma),
                values(&beta),
                output(&out),
                rows,
                width,
                norm.epsilon,
                sharing,
            );
        }
        out
    }

    fn normalized_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [rows, width] = x.shape().dims();
        let (sharing, blocks) = (Sharing::short(&x.client), rows.div_ceil(ROWS));
        let out = room(&x, x.shape(), DType::F32);
        let statistics = room(&x, [rows, 2], DType::F32);
        let parts = room(&x, [blocks, 2, width], DType::F32);
        let [for_gamma, for_beta] = [(); 2].map(|()| room(&x, [width], DType::F32));
        let columns = CubeDim::new_1d(UNITS as u32);
        // SAFETY: units without a row read the last one and write nothing, and those without a
        // column do nothing.
        unsafe {
            normalized_backward_kernel::launch_unchecked(
                &x.client,
                cubes(rows.div_ceil(sharing.rows), &x),
                sharing.dim(),
                values(&x),
                values(&gamma),
                values(&gradient),
                output(&out),
                output(&statistics),
                rows,
                width,
                norm.epsilon,
                sharing,
            );
            parameters_kernel::launch_unchecked(
                &x.client,
                CubeCount::Static(width.div_ceil(UNITS) as u32, blocks as u32, 1),
                columns,
                values(&x),
                values(&gradient),
                values(&statistics),
                output(&parts),
                rows,
                width,
            );
            totals_kernel::launch_unchecked(
                &x.client,
                CubeCount::Static(width.div_ceil(UNITS) as u32, 1, 1),
                columns,
                values(&parts),
                output(&for_gamma),
                output(&for_beta),
                blocks,
                width,
            );
        }
        (out, for_gamma, for_beta)
    }
}
