//! Compute types of products, and the matrix product of all layers.

use burn::tensor::{DType, FloatDType, Tensor};
use zoo_recipes::{ComputeType, PrecisionSpec};

/// The compute type of a forward pass. Parameters are always FP32 leaves. Layers cast them for each
/// use, so gradients of the leaves are FP32 (the gradient of a cast is a cast back).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compute(pub FloatDType);

impl Compute {
    /// IEEE single precision.
    pub const FP32: Self = Self(FloatDType::F32);

    /// The compute type of a recipe's arm, on every device.
    pub fn of(spec: &PrecisionSpec) -> Self {
        Self(match spec.compute {
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

    /// Casts to the compute type; a tensor of this type is returned as it is.
    pub fn cast<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        if x.dtype() == DType::from(self.0) { x } else { x.cast(self.0) }
    }
}

/// Casts to FP32; an FP32 tensor is returned as it is.
pub fn to_f32<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Compute::FP32.cast(x)
}

/// The matrix product that all layers use.
///
/// # Panics
/// If the types differ. CUDA would silently read one operand with the type of the other.
pub fn matmul<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    assert_eq!(a.dtype(), b.dtype(), "matmul of unlike types: cast both to the compute type first");
    a.matmul(b)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    #[should_panic(expected = "unlike types")]
    fn unlike_types_are_refused() {
        let device = Device::flex();
        let a = Tensor::<2>::ones([2, 2], &device);
        matmul(a.clone(), a.cast(FloatDType::BF16));
    }
}
