//! The recurrent weight, packed once for the products of all steps.

use std::borrow::Cow;
use std::ops::Range;

use burn::tensor::{bf16 as Bf16, f16};

use crate::fp32::{self, Matrix, Start};
use crate::halves::{self, Instruction, Operand, Values};
use crate::linear::Products;
use crate::rounding::Half;

/// The units of a strip are a multiple of this number: whole tiles of either product.
pub const TILE: usize = 32;

/// One side of the products.
pub enum Packed {
    Fp32(fp32::Packed),
    /// FP16 values in FP32 vectors; sums are rounded to FP16.
    Fp16(fp32::Packed),
    Bf16(halves::Packed, Instruction),
}

impl Packed {
    /// The rows of a matrix `[rows, depth]`, packed on this thread.
    pub fn rows(with: Products, values: &[f32], rows: usize, depth: usize) -> Self {
        match side(with, values) {
            Side::Vectors(values) => {
                Self::vectors(with, fp32::Packed::rows(&Matrix::rows(&values, rows, depth, depth)))
            }
            Side::Half(values, with) => {
                Self::Bf16(halves::Packed::rows(&Operand::new(values, rows, depth)), with)
            }
        }
    }

    /// The rows of a weight `[units, depth]` as columns of B.
    pub fn transposed(with: Products, weight: &[f32], units: usize, depth: usize) -> Self {
        match side(with, weight) {
            Side::Vectors(weight) => {
                Self::vectors(with, fp32::Packed::columns(&Matrix::rows(&weight, units, depth, depth)))
            }
            Side::Half(weight, with) => {
                let weight = Operand::new(weight, units, depth).transpose();
                Self::Bf16(halves::Packed::columns(&weight), with)
            }
        }
    }

    /// The columns of a weight `[depth, units]`.
    pub fn columns(with: Products, weight: &[f32], depth: usize, units: usize) -> Self {
        match side(with, weight) {
            Side::Vectors(weight) => {
                Self::vectors(with, fp32::Packed::columns(&Matrix::columns(&weight, depth, units, units)))
            }
            Side::Half(weight, with) => {
                Self::Bf16(halves::Packed::columns(&Operand::new(weight, depth, units)), with)
            }
        }
    }

    /// FP32 vectors, marked with the type that they represent.
    fn vectors(with: Products, packed: fp32::Packed) -> Self {
        match with {
            Products::Fp16 => Self::Fp16(packed),
            _ => Self::Fp32(packed),
        }
    }
}

/// Values before packing.
enum Side<'a> {
    /// For FP32 vectors; rounded if they represent a half type.
    Vectors(Cow<'a, [f32]>),
    /// Rounded during packing.
    Half(Values<'a>, Instruction),
}

fn side(with: Products, values: &[f32]) -> Side<'_> {
    match with {
        Products::Fp32 => Side::Vectors(Cow::Borrowed(values)),
        Products::Bf16(Instruction::Emulated) => {
            Side::Vectors(Cow::Owned(halves::rounded::<Bf16>(Values::F32(values))))
        }
        Products::Fp16 => Side::Vectors(Cow::Owned(halves::rounded::<f16>(Values::F32(values)))),
        Products::Bf16(with) => Side::Half(Values::F32(values), with),
    }
}

/// Sums of a range of units for several rows.
pub struct Sums {
    values: Vec<f32>,
    stride: usize,
    units: usize,
}

impl Sums {
    /// The product of packed rows with the columns of these units, on this thread, plus a bias for
    /// each unit (empty for none). In fp16 the sum is rounded once, including the bias.
    pub fn new(rows: &Packed, weight: &Packed, units: Range<usize>, bias: &[f32]) -> Self {
        match (rows, weight) {
            (Packed::Fp32(rows), Packed::Fp32(weight)) => Self::in_vectors(rows, weight, units, bias),
            (Packed::Fp16(rows), Packed::Fp16(weight)) => {
                let mut sums = Self::in_vectors(rows, weight, units, bias);
                Half::Fp16.round(&mut sums.values);
                sums
            }
            (Packed::Bf16(rows, with), Packed::Bf16(weight, _)) => {
                let units_in_all = units.len();
                let stride = units_in_all.next_multiple_of(TILE);
                let mut values = halves::product_strip(*with, rows, weight, units);
                if !bias.is_empty() {
                    for row in values.chunks_exact_mut(stride) {
                        row.iter_mut().zip(bias).for_each(|(sum, bias)| *sum += bias);
                    }
                }
                Self { values, stride, units: units_in_all }
            }
            _ => unreachable!("both sides are packed for one type"),
        }
    }

    fn in_vectors(rows: &fp32::Packed, weight: &fp32::Packed, units: Range<usize>, bias: &[f32]) -> Self {
        let stride = units.len();
        let mut values = crate::host::room(rows.lanes() * stride);
        let start = if bias.is_empty() { Start::Zero } else { Start::Bias(bias) };
        fp32::product_strip(&mut values, rows, weight, units, start);
        Self { values, stride, units: stride }
    }

    /// Sums of one row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.stride..][..self.units]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    /// On every CPU with FP32 vectors, with or without bf16 instructions.
    #[test]
    fn products_without_an_instruction_are_those_of_rounded_operands() {
        if !fp32::available() {
            eprintln!("skipped: this CPU has no vectors for products");
            return;
        }
        let (rows, units, depth) = (13, 2 * TILE, 50);
        let draw = |stream, n: usize| -> Vec<f32> {
            let key = Key::new(23, stream, 0);
            (0..n as u32).map(|i| key.normal(i)).collect()
        };
        let (x, weight, bias) = (draw(1, rows * depth), draw(2, units * depth), draw(3, TILE));
        let round = |values: &[f32]| halves::rounded::<Bf16>(Values::F32(values));
        let emulated = Products::Bf16(Instruction::Emulated);
        let pairs = [
            (
                Packed::transposed(emulated, &weight, units, depth),
                Packed::transposed(Products::Fp32, &round(&weight), units, depth),
            ),
            (
                Packed::columns(emulated, &weight, depth, units),
                Packed::columns(Products::Fp32, &round(&weight), depth, units),
            ),
        ];
        let found_rows = Packed::rows(emulated, &x, rows, depth);
        let due_rows = Packed::rows(Products::Fp32, &round(&x), rows, depth);
        let unrounded = Packed::rows(Products::Fp32, &x, rows, depth);
        for (found, due) in &pairs {
            let sums = |rows: &Packed, weight: &Packed| Sums::new(rows, weight, TILE..2 * TILE, &bias);
            let (found, exact, due) = (sums(&found_rows, found), sums(&unrounded, due), sums(&due_rows, due));
            for row in 0..rows {
                assert_eq!(found.row(row), due.row(row));
                assert_ne!(found.row(row), exact.row(row), "rounding is seen");
            }
        }
    }
}
