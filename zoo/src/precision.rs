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

    /// The type that a recipe's arm names, on every device.
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

/// How a device multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// 23 bits of fraction.
    Fp32,
    /// f32 operands rounded to 10 bits of fraction.
    Tf32,
    /// Half operands.
    Fp16,
    /// Brain-float operands.
    Bf16,
}

impl Products {
    /// `fp32`, `tf32`, `fp16` or `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
        }
    }
}

/// Finds out how `width` x `width` matrices are multiplied on this device in this compute type: 1 + 2^-12 times 1 survives with
/// 23 bits of fraction, and is 1 with 10 or fewer.
pub fn probe(device: &burn::tensor::Device, compute: Compute, width: usize) -> Products {
    let device = device.clone().inner();
    let ones = Tensor::<2>::ones([width, width], &device);
    let first_column = Tensor::<2>::zeros([width, width], &device)
        .slice_assign([0..width, 0..1], Tensor::ones([width, 1], &device) * (1.0 + 1.0 / 4096.0));
    let product = matmul(compute.cast(first_column), compute.cast(ones));
    let largest = crate::parameters::host_values(to_f32(product).max())[0];
    match compute.0 {
        FloatDType::F16 => Products::Fp16,
        FloatDType::BF16 => Products::Bf16,
        _ if largest > 1.0 => Products::Fp32,
        _ => Products::Tf32,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn the_probe_tells_full_products_from_rounded_operands() {
        let device = Device::flex();
        assert_eq!(probe(&device, Compute::FP32, 48), Products::Fp32);
        assert_eq!(probe(&device, Compute(FloatDType::BF16), 48), Products::Bf16);
        // What TF32 does to an operand: the 13 low bits of the fraction are lost.
        let rounded = f32::from_bits((1.0f32 + 1.0 / 4096.0).to_bits() & 0xffff_e000);
        assert_eq!(rounded, 1.0);
    }

    #[test]
    #[should_panic(expected = "unlike types")]
    fn unlike_types_are_refused() {
        let device = Device::flex();
        let a = Tensor::<2>::ones([2, 2], &device);
        matmul(a.clone(), a.cast(FloatDType::BF16));
    }
}
