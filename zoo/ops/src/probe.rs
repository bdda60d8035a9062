//! Measurement of the arithmetic of a device's products.

use burn::tensor::{Tensor, TensorData};

use crate::linear::linear;
use crate::parameters::host_values;
use crate::pass::Pass;
use crate::precision::{Compute, to_f32};

/// Arithmetic of a device's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// f32 operands with 23 bits of fraction.
    Fp32,
    /// f32 operands rounded to 10 bits of fraction.
    Tf32,
    /// FP16 operands, FP32 sums.
    Fp16,
    /// bf16 operands.
    Bf16,
    /// None of these, for example FP16 operands with FP16 sums.
    Other,
}

impl Products {
    /// `fp32`, `tf32`, `fp16`, `bf16` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Other => "other",
        }
    }

    /// Derives the arithmetic from the results of the rows of [`QUESTIONS`].
    fn of_answers(answers: [f32; QUESTIONS.len()]) -> Self {
        let [twelve, ten, small, sum] = answers;
        let due = |x: f32, due: f32| x == 0.0 || x == due;
        if !due(twelve, TWELVE) || !due(ten, TEN) || !due(small, SMALL) {
            return Self::Other;
        }
        // bf16 cannot represent 2,050.
        match (twelve > 0.0, ten > 0.0, small > 0.0, sum) {
            (true, true, true, 2050.0) => Self::Fp32,
            (false, true, true, 2050.0) => Self::Tf32,
            (false, true, false, 2050.0) => Self::Fp16,
            (false, false, true, _) => Self::Bf16,
            _ => Self::Other,
        }
    }
}

const TEN: f32 = 1.0 / 1024.0;
const TWELVE: f32 = 1.0 / 4096.0;
/// 2^-16.
const SMALL: f32 = 1.0 / 65536.0;

/// Rows whose products with the weights below distinguish the types. Each result except the last is
/// representable in FP16 and in bf16.
///
/// | row | nonzero in | 0 or another value in |
/// |---|---|---|
/// | 1 + 2^-12 - 1 | FP32 | types with fewer bits of fraction |
/// | 1 + 2^-10 - 1 | FP32, TF32, FP16 | bf16 |
/// | 2^-26 times 2^10 | FP32, TF32, bf16 | FP16, whose smallest value is 2^-24 |
/// | 2048 + 1 + 1 | FP32 sums | FP16 sums: 2048 |
const QUESTIONS: [[f32; 3]; 4] = [
    [1.0 + TWELVE, -1.0, 0.0],
    [1.0 + TEN, -1.0, 0.0],
    [0.0, 0.0, SMALL / 1024.0],
    [2048.0, 1.0, 1.0 / 1024.0],
];
const WEIGHTS: [f32; 3] = [1.0, 1.0, 1024.0];

/// Measures the arithmetic with which [`crate::linear`] multiplies matrices of `width` x
/// `width` (at least 4) on a device, for a compute type. The result follows from computed values,
/// not from the requested type.
pub fn probe(device: &burn::tensor::Device, compute: Compute, width: usize) -> Products {
    let device = device.clone().inner();
    let width = width.max(QUESTIONS.len());
    let (mut x, mut weight) = (vec![0f32; width * width], vec![0f32; width * width]);
    for (row, question) in QUESTIONS.iter().enumerate() {
        // The last terms are at the far end of the sum.
        x[row * width..][..2].copy_from_slice(&question[..2]);
        x[row * width + width - 1] = question[2];
    }
    for unit in weight.chunks_exact_mut(width) {
        unit[..2].copy_from_slice(&WEIGHTS[..2]);
        unit[width - 1] = WEIGHTS[2];
    }
    let matrix = |values| Tensor::<2>::from_data(TensorData::new(values, [width, width]), &device);
    let product = linear(matrix(x), matrix(weight), None, &Pass::evaluation(compute));
    let product = host_values(to_f32(product));
    // All columns must give the same result: a part of the product in another type makes it
    // `Other`.
    let column = |column: usize| std::array::from_fn(|row| product[row * width + column]);
    let found = Products::of_answers(column(0));
    match (1..width).all(|other| Products::of_answers(column(other)) == found) {
        true => found,
        false => Products::Other,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, bf16, f16};

    use super::*;

    #[test]
    fn the_probe_finds_the_type_of_the_products() {
        let device = Device::flex();
        for width in [2, 48, 130] {
            assert_eq!(probe(&device, Compute::FP32, width), Products::Fp32);
            assert_eq!(probe(&device, Compute(FloatDType::F16), width), Products::Fp16);
            assert_eq!(probe(&device, Compute(FloatDType::BF16), width), Products::Bf16);
        }
    }

    /// Products of operands that `operand` rounds, added with `sum`.
    fn answers(operand: impl Fn(f32) -> f32, sum: impl Fn(f32) -> f32) -> [f32; 4] {
        QUESTIONS
            .map(|row| row.iter().zip(WEIGHTS).fold(0.0, |all, (x, w)| sum(all + operand(*x) * operand(w))))
    }

    #[test]
    fn types_are_told_by_what_they_lose() {
        let exact = |x: f32| x;
        let fp16 = |x: f32| f16::from_f32(x).to_f32();
        let bf16 = |x: f32| bf16::from_f32(x).to_f32();
        // Rounds to nearest with 10 bits of fraction.
        let tf32 = |x: f32| f32::from_bits((x.to_bits() + 0xfff) & 0xffff_e000);
        assert_eq!(Products::of_answers(answers(exact, exact)), Products::Fp32);
        assert_eq!(Products::of_answers(answers(tf32, exact)), Products::Tf32);
        assert_eq!(Products::of_answers(answers(fp16, exact)), Products::Fp16);
        assert_eq!(Products::of_answers(answers(bf16, exact)), Products::Bf16);
        assert_eq!(
            Products::of_answers(answers(bf16, exact).map(bf16)),
            Products::Bf16,
            "the result as well"
        );
        assert_eq!(Products::of_answers(answers(fp16, fp16)), Products::Other, "sums in FP16");
        assert_eq!(Products::of_answers([f32::NAN; 4]), Products::Other);
    }
}
