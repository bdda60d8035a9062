//! Adds a sub-layer's output after dropout to the residual stream, in one pass over the values.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::dropout::{Mask, apply, masked_in_order};
use super::rounding::Half;
use super::{has_device_kernels, host, simd};
use crate::Pass;
use crate::precision::to_f32;

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait ResidualOp: Backend {
    /// x + y times the mask, FP32. The product is rounded to y's type.
    #[fusion(dtype = x, shape = x)]
    fn joined(x: FloatTensor<Self>, y: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self>;

    /// Gradient of y, in its type: the gradient of the sum times the mask.
    #[fusion(dtype = *dtype, shape = gradient)]
    fn joined_backward(gradient: FloatTensor<Self>, mask: Option<Mask>, dtype: DType) -> FloatTensor<Self>;
}

impl ResidualOp for Flex {
    fn joined(x: FloatTensor<Self>, y: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self> {
        let half = Half::of(y.dtype());
        let (x, y, shape) = (host::Source::new(&x), host::Source::new(&y), x.shape());
        host::build(shape, DType::F32, |first, out| {
            let mut product = [0f32; 256];
            x.read(first, out);
            for (i, out) in out.chunks_mut(product.len()).enumerate() {
                let (first, product) = (first + i * product.len(), &mut product[..out.len()]);
                y.read(first, product);
                if let Some(mask) = mask {
                    apply(product, first as u32, mask);
                    if let Some(half) = half {
                        half.round(product);
                    }
                }
                simd::add(out, product);
            }
        })
    }

    fn joined_backward(gradient: FloatTensor<Self>, mask: Option<Mask>, dtype: DType) -> FloatTensor<Self> {
        let values = host::Source::new(&gradient);
        host::build(gradient.shape(), dtype, |first, out| {
            values.read(first, out);
            if let Some(mask) = mask {
                apply(out, first as u32, mask);
            }
        })
    }
}

impl<B: ResidualOp, C: CheckpointStrategy> ResidualOp for Autodiff<B, C> {
    fn joined(x: FloatTensor<Self>, y: FloatTensor<Self>, mask: Option<Mask>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Joined;
        impl<B: ResidualOp> Backward<B, 2> for Joined {
            type State = (Option<Mask>, DType);
            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [x, y] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                let (mask, dtype) = ops.state;
                if let Some(y) = y {
                    let gradient = match (mask, dtype) {
                        (None, DType::F32) => gradient.clone(),
                        _ => B::joined_backward(gradient.clone(), mask, dtype),
                    };
                    grads.register::<B>(y.id, gradient);
                }
                if let Some(x) = x {
                    grads.register::<B>(x.id, gradient);
                }
            }
        }
        let dtype = y.dtype();
        let ((x, x_node), (y, y_node)) = (x.into_parts(), y.into_parts());
        match Joined.prepare::<C>([x_node, y_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((mask, dtype), B::joined(x, y, mask)),
            OpsKind::UnTracked(prep) => prep.finish(B::joined(x, y, mask)),
        }
    }

    fn joined_backward(_: FloatTensor<Self>, _: Option<Mask>, _: DType) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// x (FP32) plus the dropout of y (any float type): FP32.
pub fn add_dropped(x: Tensor<2>, y: Tensor<2>, rate: f64, pass: &mut Pass) -> Tensor<2> {
    let mask = Mask::draw(rate, pass);
    if has_device_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::joined(x.into_dispatch(), y.into_dispatch(), mask));
    }
    composed(x, y, mask)
}

pub(super) fn composed(x: Tensor<2>, y: Tensor<2>, mask: Option<Mask>) -> Tensor<2> {
    let y = match mask {
        Some(mask) => masked_in_order(y, mask),
        None => y,
    };
    x + to_f32(y)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::random::Key;

    #[test]
    fn kernel_and_composition_agree_in_value_and_gradient() {
        let device = Device::flex().autodiff();
        let draw = |stream| {
            let key = Key::new(14, stream, 0);
            let values: Vec<f32> = (0..70 * 61).map(|i| key.normal(i)).collect();
            Tensor::<2>::from_data(TensorData::new(values, [70, 61]), &device).require_grad()
        };
        for (compute, rate, limit) in [
            (Compute::FP32, 0.0, 0.0),
            (Compute::FP32, 0.3, 0.0),
            (Compute(FloatDType::BF16), 0.0, 0.0),
            (Compute(FloatDType::F16), 0.0, 0.0),
            // The composition also rounds the scale of the mask, and the gradient before the mask.
            (Compute(FloatDType::BF16), 0.3, 1.0 / 64.0),
            (Compute(FloatDType::F16), 0.3, 1.0 / 512.0),
        ] {
            let [own, composed] = [true, false].map(|own| {
                let (x, y) = (draw(0), draw(1));
                let mut pass = Pass::training(compute, 4, 2);
                let input = compute.cast(y.clone());
                let out = match own {
                    true => add_dropped(x.clone(), input, rate, &mut pass),
                    false => composed(x.clone(), input, Mask::draw(rate, &mut pass)),
                };
                let grads = (out.clone() * Tensor::from_inner(draw(2).inner())).sum().backward();
                let gradients = [x.grad(&grads), y.grad(&grads)].map(|g| host_values(g.unwrap()));
                (host_values(out.inner()), gradients)
            });
            assert_eq!(own.1[0], composed.1[0]);
            let [_, own_y] = own.1;
            let [_, composed_y] = composed.1;
            for (own, composed) in [(own.0, composed.0), (own_y, composed_y)] {
                // Values are of the order of 4.
                let far = own.iter().zip(&composed).find(|(a, b)| (*a - *b).abs() > 4.0 * limit);
                assert_eq!(far, None, "{compute:?} {rate}");
            }
        }
    }
}
