//! Products of half operands on CPUs without an instruction for them: rounded operands, multiplied
//! and added in FP32 vectors. A product of two values of a half type is exact in FP32, so only the
//! order of sums differs.

use rayon::prelude::*;

use super::{Operand, Stored, Values};
use crate::fp32::{self, Matrix, Start};
use crate::host::room;
use crate::rounding::HalfType;

/// Number of values that a task stores.
const TASK: usize = 1 << 14;

/// Rounds values to the half type, in FP32.
///
/// # Panics
/// If the values have the other half type.
pub fn rounded<H: HalfType>(values: Values) -> Vec<f32> {
    fn each<F: Sync>(from: &[F], convert: impl Fn(&mut [f32], &[F]) + Sync) -> Vec<f32> {
        let mut to = room(from.len());
        to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| convert(to, from));
        to
    }
    match values {
        Values::F32(from) => each(from, H::through),
        Values::Bf16(from) => each(bytemuck::cast_slice::<_, H>(of::<H, _>(from)), H::widen),
        Values::Fp16(from) => each(bytemuck::cast_slice::<_, H>(of::<H, _>(from)), H::widen),
    }
}

/// The values, which must have the half type `H`.
fn of<H: HalfType, F: HalfType>(values: &[F]) -> &[F] {
    assert_eq!(H::HALF, F::HALF, "operands of a product are of one half type");
    values
}

/// Stores sums in their result type.
fn stored<H: HalfType, T: Stored<H>>(to: &mut [T], sums: &[f32]) {
    to.par_chunks_mut(TASK).zip(sums.par_chunks(TASK)).for_each(|(to, sums)| T::store(to, sums));
}

/// Like [`super::product`], in FP32 vectors.
pub fn product<H: HalfType, T: Stored<H>>(a: Operand, b: Operand, bias: Option<&[f32]>) -> Vec<T> {
    let (m, n, k) = (a.rows, b.columns, a.columns);
    let (left, right) = (rounded::<H>(a.values), rounded::<H>(b.values));
    let rows = match a.transposed {
        false => Matrix::rows(&left, m, k, a.stride),
        true => Matrix::columns(&left, k, m, a.stride),
    };
    let columns = match b.transposed {
        false => Matrix::columns(&right, k, n, b.stride),
        true => Matrix::rows(&right, n, k, b.stride),
    };
    let bias = bias.map(|bias| rounded::<H>(Values::F32(bias)));
    let mut sums = room(m * n);
    fp32::product(&mut sums, &rows, &columns, bias.as_deref().map_or(Start::Zero, Start::Bias));
    let mut out = room(m * n);
    stored::<H, T>(&mut out, &sums);
    out
}
