//! In which type products are computed, and the one matrix product of the zoo.

use burn::tensor::{DType, FloatDType, Tensor};
use zoo_recipes::{ComputeType, PrecisionSpec};

/// The compute type of a forward pass. Parameters are FP32 leaves whatever this is; layers cast per use, so gradients of the
/// leaves are FP32 (the gradient of a cast is a cast back).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compute(pub FloatDType);

impl Compute {
    /// IEEE single.
    pub const FP32: Self = Self(FloatDType::F32);

    /// The type that a recipe's arm names on this kind of device.
    pub fn of(spec: &PrecisionSpec, on_cpu: bool) -> Self {
        let wanted = match (spec.compute, on_cpu) {
            (ComputeType::Fp32, _) => ComputeType::Fp32,
            // On a CPU half products are emulated through f32; bf16 is the type that CPUs do have instructions for.
            (_, true) => spec.compute_on_cpu.unwrap_or(ComputeType::Bf16),
            (other, false) => other,
        };
        Self(match wanted {
            ComputeType::Fp32 => FloatDType::F32,
            ComputeType::Fp16 => FloatDType::F16,
            ComputeType::Bf16 => FloatDType::BF16,
        })
    }

    /// `fp32`, `fp16` or `bf16`.
    pub fn name(self) -> &'static str {
        match self.0 {
            FloatDType::F16 => "fp16",
            FloatDType::BF16 => "bf16",
            _ => "fp32",
        }
    }

    /// To the compute type; nothing happens if it is that already.
    pub fn cast<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        if x.dtype() == DType::from(self.0) { x } else { x.cast(self.0) }
    }
}

/// To FP32; nothing happens if it is that already.
pub fn to_f32<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Compute::FP32.cast(x)
}

/// The matrix product that all layers use.
///
/// # Panics
/// On unlike types: CUDA would silently read one operand with the other's type.
pub fn matmul<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    assert_eq!(a.dtype(), b.dtype(), "matmul of unlike types: cast both to the compute type first");
    a.matmul(b)
}
