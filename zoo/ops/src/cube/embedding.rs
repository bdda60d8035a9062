//! Rows of a table on GPUs, and their gradient: one unit adds the gradients of a row's tokens for
//! one column, in the order of the tokens.

use std::sync::Arc;

use burn::backend::{TensorMetadata, tensor::FloatTensor};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use cubecl::prelude::*;

use super::super::embedding::{EmbeddingOp, sorted};
use super::{UNITS, cubes, numbers, output, room, values};

/// Id of a token without a row.
const NONE: u32 = u32::MAX;

#[cube(launch_unchecked)]
fn rows_kernel(table: &[f32], ids: &[u32], out: &mut [f32], tokens: usize, width: usize) {
    let token = ABSOLUTE_POS / width;
    if token >= tokens {
        terminate!();
    }
    let id = ids[token];
    let mut x = f32::new(0.0);
    if id != NONE {
        x = table[id as usize * width + ABSOLUTE_POS % width];
    }
    out[ABSOLUTE_POS] = x;
}

/// `tokens` are sorted by their ids; those of row r are `tokens[begins[r]..begins[r + 1]]`.
#[cube(launch_unchecked)]
fn rows_backward_kernel(
    gradient: &[f32],
    tokens: &[u32],
    begins: &[u32],
    out: &mut [f32],
    rows: usize,
    width: usize,
) {
    let (row, column) = (ABSOLUTE_POS / width, ABSOLUTE_POS % width);
    if row >= rows {
        terminate!();
    }
    let mut total = f32::new(0.0);
    for i in begins[row]..begins[row + 1] {
        total += gradient[tokens[i as usize] as usize * width + column];
    }
    out[ABSOLUTE_POS] = total;
}

impl EmbeddingOp for CubeBackend {
    fn rows(table: FloatTensor<Self>, ids: Arc<[Option<u32>]>) -> FloatTensor<Self> {
        let [_, width] = table.shape().dims();
        let out = room(&table, [ids.len(), width], DType::F32);
        let ids: Vec<u32> = ids.iter().map(|id| id.unwrap_or(NONE)).collect();
        // SAFETY: a unit beyond the values ends before it reads; ids are inside the table.
        unsafe {
            rows_kernel::launch_unchecked(
                &table.client,
                cubes((ids.len() * width).div_ceil(UNITS), &table),
                CubeDim::new_1d(UNITS as u32),
                values(&table),
                numbers(&table, &ids),
                output(&out),
                ids.len(),
                width,
            );
        }
        out
    }

    fn rows_backward(
        gradient: FloatTensor<Self>,
        ids: Arc<[Option<u32>]>,
        vocabulary: usize,
    ) -> FloatTensor<Self> {
        let [_, width] = gradient.shape().dims();
        let out = room(&gradient, [vocabulary, width], DType::F32);
        let (tokens, begins) = sorted(&ids, vocabulary);
        // SAFETY: a unit beyond the values ends before it reads; there is one more beginning than
        // rows.
        unsafe {
            rows_backward_kernel::launch_unchecked(
                &gradient.client,
                cubes((vocabulary * width).div_ceil(UNITS), &gradient),
                CubeDim::new_1d(UNITS as u32),
                values(&gradient),
                numbers(&gradient, &tokens),
                numbers(&gradient, &begins),
                output(&out),
                vocabulary,
                width,
            );
        }
        out
    }
}
