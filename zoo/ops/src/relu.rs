//! ReLU followed by dropout, in one pass over the values.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{Tensor, activation};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::dropout::{Mask, apply, masked_in_order};
use super::simd::vectorized;
use super::{has_device_kernels, host};
use crate::Pass;

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait ReluOp: Backend {
    /// max(x, 0), times the mask.
    #[fusion(dtype = x, shape = x)]
    fn rectified(x: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self>;

    /// Gradient of x.
    #[fusion(dtype = x, shape = x)]
    fn rectified_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        mask: Option<Mask>,
    ) -> FloatTensor<Self>;
}

impl ReluOp for Flex {
    fn rectified(x: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self> {
        let values = host::Source::new(&x);
        host::build(x.shape(), x.dtype(), |first, out| {
            values.read(first, out);
            rectify(out);
            if let Some(mask) = mask {
                apply(out, first as u32, mask);
            }
        })
    }

    fn rectified_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        mask: Option<Mask>,
    ) -> FloatTensor<Self> {
        let (values, gradients) = (host::Source::new(&x), host::Source::new(&gradient));
        host::build(x.shape(), x.dtype(), |first, out| {
            let mut x = [0f32; 256];
            for (i, out) in out.chunks_mut(x.len()).enumerate() {
                let (first, x) = (first + i * x.len(), &mut x[..out.len()]);
                values.read(first, x);
                gradients.read(first, out);
                pass_positive(out, x);
            }
            if let Some(mask) = mask {
                apply(out, first as u32, mask);
            }
        })
    }
}

vectorized! {
    /// Keeps NaN, which overflow detection relies on.
    fn rectify(values: &mut [f32]) {
        let _ = FMA;
        for x in values.iter_mut() {
            *x = if *x <= 0.0 { 0.0 } else { *x };
        }
    }

    fn pass_positive(gradient: &mut [f32], x: &[f32]) {
        let _ = FMA;
        for (gradient, x) in gradient.iter_mut().zip(x) {
            *gradient = if *x <= 0.0 { 0.0 } else { *gradient };
        }
    }
}

impl<B: ReluOp, C: CheckpointStrategy> ReluOp for Autodiff<B, C> {
    fn rectified(x: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Rectified;
        impl<B: ReluOp> Backward<B, 1> for Rectified {
            type State = (FloatTensor<B>, Option<Mask>);
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    let (x, mask) = ops.state;
                    grads.register::<B>(parent.id, B::rectified_backward(x, gradient, mask));
                }
            }
        }
        let (x, node) = x.into_parts();
        match Rectified.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x.clone(), mask), B::rectified(x, mask)),
            OpsKind::UnTracked(prep) => prep.finish(B::rectified(x, mask)),
        }
    }

    fn rectified_backward(_: FloatTensor<Self>, _: FloatTensor<Self>, _: Option<Mask>) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// ReLU, then dropout; in the type of x.
pub fn relu_dropout(x: Tensor<2>, rate: f64, pass: &mut Pass) -> Tensor<2> {
    let mask = Mask::draw(rate, pass);
    if has_device_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::rectified(x.into_dispatch(), mask));
    }
    composed(x, mask)
}

pub(super) fn composed(x: Tensor<2>, mask: Option<Mask>) -> Tensor<2> {
    let x = activation::relu(x);
    match mask {
        Some(mask) => masked_in_order(x, mask),
        None => x,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::{Compute, to_f32};
    use crate::random::Key;

    #[test]
    fn kernel_and_composition_agree_in_value_and_gradient() {
        let device = Device::flex().autodiff();
        for (compute, rate, limit) in [
            (Compute::FP32, 0.0, 0.0),
            (Compute::FP32, 0.3, 0.0),
            (Compute(FloatDType::BF16), 0.0, 0.0),
            (Compute(FloatDType::F16), 0.0, 0.0),
            // The composition also rounds the scale of the mask to bf16.
            (Compute(FloatDType::BF16), 0.3, 1.0 / 64.0),
            (Compute(FloatDType::F16), 0.3, 1.0 / 512.0),
        ] {
            let key = Key::new(13, 0, 0);
            let values: Vec<f32> = (0..70 * 61).map(|i| key.normal(i)).collect();
            let [own, composed] = [true, false].map(|own| {
                let x =
                    Tensor::<2>::from_data(TensorData::new(values.clone(), [70, 61]), &device).require_grad();
                let mut pass = Pass::training(compute, 4, 2);
                let input = compute.cast(x.clone());
                let out = match own {
                    true => relu_dropout(input, rate, &mut pass),
                    false => composed(input, Mask::draw(rate, &mut pass)),
                };
                let upstream = Tensor::from_inner(x.clone().inner().sin());
                let grads = (to_f32(out.clone()) * upstream).sum().backward();
                (host_values(out.inner()), host_values(x.grad(&grads).unwrap()))
            });
            for (own, composed) in [(own.0, composed.0), (own.1, composed.1)] {
                let far = own.iter().zip(&composed).find(|(a, b)| (*a - *b).abs() > limit * b.abs());
                assert_eq!(far, None, "{compute:?} {rate}");
            }
        }
    }

    #[test]
    fn a_nan_comes_through() {
        let x = Tensor::<2>::from_data([[f32::NAN, -1.0, 2.0]], &Device::flex());
        let out = host_values(relu_dropout(x, 0.0, &mut Pass::evaluation(Compute::FP32)));
        assert!(out[0].is_nan() && out[1..] == [0.0, 2.0]);
    }
}
