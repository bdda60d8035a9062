//! The same products on a CPU that has no instruction for them: rounded operands, multiplied and added in FP32 vectors. A product
//! of two bf16 values is exact in FP32, so that only the order of sums differs.

use rayon::prelude::*;

use super::{Operand, Stored, Values};
use crate::ops::fp32::{self, Matrix, Start};
use crate::ops::host::room;
use crate::ops::simd;

/// Values that a task stores.
const TASK: usize = 1 << 14;

/// Rounded to bf16, in FP32.
pub fn rounded(values: Values) -> Vec<f32> {
    match values {
        Values::F32(from) => {
            let mut to = room(from.len());
            to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| {
                simd::through_bf16(to, from);
            });
            to
        }
        Values::Bf16(from) => {
            let mut to = room(from.len());
            to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| {
                simd::widen_bf16(to, from);
            });
            to
        }
    }
}

/// Sums as they are kept.
pub fn stored<T: Stored>(to: &mut [T], sums: &[f32]) {
    to.par_chunks_mut(TASK).zip(sums.par_chunks(TASK)).for_each(|(to, sums)| T::store(to, sums));
}

/// See [`super::product`].
pub fn product<T: Stored>(a: Operand, b: Operand, bias: Option<&[f32]>) -> Vec<T> {
    let (m, n, k) = (a.rows, b.columns, a.columns);
    let (left, right) = (rounded(a.values), rounded(b.values));
    let rows = match a.transposed {
        false => Matrix::rows(&left, m, k, a.stride),
        true => Matrix::columns(&left, k, m, a.stride),
    };
    let columns = match b.transposed {
        false => Matrix::columns(&right, k, n, b.stride),
        true => Matrix::rows(&right, n, k, b.stride),
    };
    let bias = bias.map(|bias| rounded(Values::F32(bias)));
    let mut sums = room(m * n);
    fp32::product(&mut sums, &rows, &columns, bias.as_deref().map_or(Start::Zero, Start::Bias));
    let mut out = room(m * n);
    stored(&mut out, &sums);
    out
}
