//! Compute types of products, and the matrix product of all layers.

use burn::tensor::{DType, FloatDType, Tensor};
use zoo_recipes::{ComputeType, PrecisionSpec};

use crate::rounding::Half;

/// The compute type of a forward pass. Parameters are always FP32 leaves, also where training has
/// rounded their values to a half type. Layers cast them for each use, so gradients of the leaves
/// are FP32 (the gradient of a cast is a cast back).
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

    /// The type to whose values an arm's training rounds the weights: FP32 if it has FP32 masters.
    pub fn of_weights(spec: &PrecisionSpec) -> Self {
        if spec.masters { Self::FP32 } else { Self::of(spec) }
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

    /// An FP32 tensor with its values rounded to this type: to nearest, ties to even; too large
    /// values become infinity.
    pub fn rounded<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        to_f32(self.cast(x))
    }

    /// The half type; `None` for FP32.
    pub(crate) fn half(self) -> Option<Half> {
        Half::of(DType::from(self.0))
    }

    /// [`Compute::rounded`] of values on the host, in place.
    pub fn round(self, values: &mut [f32]) {
        if let Some(half) = self.half() {
            half.round(values);
        }
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
    #[cfg(feature = "cubecl")]
    if let Some(product) = crate::product::product(&a, &b) {
        return product;
    }
    a.matmul(b)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    /// 1 + 1/2048 and 1 + 1/256 lie in the middle of two values of fp16 and of bf16: such ties go to
    /// the even one.
    #[test]
    fn values_are_rounded_alike_on_the_host_and_in_tensors() {
        let values = [1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 1.0 + 1.0 / 256.0, 1e-5, 2f32.powi(-26), 7e4];
        let due = [
            (FloatDType::F32, values),
            (
                FloatDType::F16,
                [1.0, 1.0 + 2.0 / 1024.0, 1.0 + 1.0 / 256.0, 168.0 / 2f32.powi(24), 0.0, f32::INFINITY],
            ),
            (FloatDType::BF16, [1.0, 1.0, 1.0, 168.0 / 2f32.powi(24), 2f32.powi(-26), 70_144.0]),
        ];
        for (dtype, due) in due {
            let tensor = Tensor::<1>::from_data(values, &Device::flex());
            let found = crate::parameters::host_values(Compute(dtype).rounded(tensor));
            let mut on_host = values;
            Compute(dtype).round(&mut on_host);
            assert_eq!(found, on_host, "{dtype:?}");
            assert_eq!(on_host, due, "{dtype:?}");
        }
    }

    #[test]
    #[should_panic(expected = "unlike types")]
    fn unlike_types_are_refused() {
        let device = Device::flex();
        let a = Tensor::<2>::ones([2, 2], &device);
        matmul(a.clone(), a.cast(FloatDType::BF16));
    }
}
