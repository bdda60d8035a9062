//! Rounding of activations between layers to the compute type.
//!
//! In FP16, a published system stores activations between layers, and their gradients, in FP16: too
//! small values become 0, and too large values become infinity. In this crate sums, norms and gates
//! compute in FP32 and return FP32 tensors. This operation rounds their values to FP16, and the
//! gradient in the backward pass. Tensors stay FP32, so the next sum needs no conversion. In FP32
//! and bf16 the operation does nothing.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, FloatDType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::rounding::Half;
use super::{has_own_kernels, host};
use crate::precision::{Compute, to_f32};

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait StoredOp: Backend {
    /// x, FP32 of any shape, rounded to FP16 values.
    fn in_fp16(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl StoredOp for Flex {
    fn in_fp16(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let values = host::Source::new(&x);
        host::build(x.shape(), DType::F32, |first, out| {
            values.read(first, out);
            Half::Fp16.round(out);
        })
    }
}

impl<B: StoredOp, C: CheckpointStrategy> StoredOp for Autodiff<B, C> {
    fn in_fp16(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Stored;
        impl<B: StoredOp> Backward<B, 1> for Stored {
            type State = ();
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, B::in_fp16(gradient));
                }
            }
        }
        let (x, node) = x.into_parts();
        match Stored.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((), B::in_fp16(x)),
            OpsKind::UnTracked(prep) => prep.finish(B::in_fp16(x)),
        }
    }
}

/// x, rounded as a layer's output is stored in this compute type, and its gradient likewise. FP32
/// tensors stay FP32. A tensor of a half type is already rounded.
pub fn stored<const D: usize>(x: Tensor<D>, compute: Compute) -> Tensor<D> {
    if compute.0 != FloatDType::F16 || x.dtype() != DType::F32 {
        return x;
    }
    if has_own_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::in_fp16(x.into_dispatch()));
    }
    composed(x)
}

/// The gradient of a conversion is a conversion back.
fn composed<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    to_f32(x.cast(FloatDType::F16))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::host_values;

    const FP16: Compute = Compute(FloatDType::F16);

    /// Values that are too large, rounded, subnormal, lost, or NaN; more values than one block has.
    fn values() -> Vec<f32> {
        let few = [70_000.0, -70_000.0, 1.0 + 1.0 / 4096.0, 2f32.powi(-24), 2f32.powi(-26), 0.1, f32::NAN];
        (0..40_000).map(|i| few[i % few.len()] * if i < few.len() { 1.0 } else { 0.99 }).collect()
    }

    fn run(of: impl Fn(Tensor<2>) -> Tensor<2>) -> [Vec<u32>; 2] {
        let device = Device::flex().autodiff();
        let n = values().len();
        let tensor = |values| Tensor::<2>::from_data(TensorData::new(values, [n / 8, 8]), &device);
        let x = tensor(values()).require_grad();
        let y = of(x.clone());
        let upstream = tensor(values().into_iter().rev().collect());
        let grads = (y.clone() * upstream).sum().backward();
        [y.inner(), x.grad(&grads).unwrap()].map(|x| host_values(x).into_iter().map(f32::to_bits).collect())
    }

    #[test]
    fn values_and_gradients_are_those_of_a_conversion_and_back() {
        let own = run(|x| stored(x, FP16));
        assert_eq!(own, run(composed));
        let few: Vec<f32> = own[0][..6].iter().map(|bits| f32::from_bits(*bits)).collect();
        assert_eq!(few, [f32::INFINITY, f32::NEG_INFINITY, 1.0, 2f32.powi(-24), 0.0, 0.099_975_586]);
    }

    #[test]
    fn nothing_is_rounded_in_fp32_and_bf16() {
        let due = run(|x| x);
        for compute in [Compute::FP32, Compute(FloatDType::BF16)] {
            assert_eq!(run(|x| stored(x, compute)), due);
        }
    }
}
