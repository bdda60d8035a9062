//! Logistic function, computed in FP32 and rounded once to the type of x.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{FloatDType, Tensor, activation};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::simd::{sigmoid as logistic, vectorized};
use super::{has_own_kernels, host};
use crate::precision::to_f32;

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait SigmoidOp: Backend {
    /// 1 / (1 + e^-x).
    fn squashed(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Gradient of x, from the output y.
    fn squashed_backward(y: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl SigmoidOp for Flex {
    fn squashed(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let values = host::Source::new(&x);
        host::build(x.shape(), x.dtype(), |first, out| {
            values.read(first, out);
            squash(out);
        })
    }

    fn squashed_backward(y: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self> {
        let (values, gradients) = (host::Source::new(&y), host::Source::new(&gradient));
        host::build(y.shape(), y.dtype(), |first, out| {
            let mut y = [0f32; 256];
            for (i, out) in out.chunks_mut(y.len()).enumerate() {
                let (first, y) = (first + i * y.len(), &mut y[..out.len()]);
                values.read(first, y);
                gradients.read(first, out);
                slope(out, y);
            }
        })
    }
}

vectorized! {
    fn squash(values: &mut [f32]) {
        for x in values.iter_mut() {
            *x = logistic::<FMA>(*x);
        }
    }

    fn slope(gradient: &mut [f32], y: &[f32]) {
        let _ = FMA;
        for (gradient, &y) in gradient.iter_mut().zip(y) {
            *gradient *= y * (1.0 - y);
        }
    }
}

impl<B: SigmoidOp, C: CheckpointStrategy> SigmoidOp for Autodiff<B, C> {
    fn squashed(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Squashed;
        impl<B: SigmoidOp> Backward<B, 1> for Squashed {
            type State = FloatTensor<B>;
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, B::squashed_backward(ops.state, gradient));
                }
            }
        }
        let (x, node) = x.into_parts();
        match Squashed.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::squashed(x);
                prep.finish(y.clone(), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::squashed(x)),
        }
    }

    fn squashed_backward(_: FloatTensor<Self>, _: FloatTensor<Self>) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// 1 / (1 + e^-x), in the type of x.
pub fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if has_own_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::squashed(x.into_dispatch()));
    }
    composed(x)
}

fn composed<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let dtype = x.dtype();
    let y = activation::sigmoid(to_f32(x));
    if y.dtype() == dtype { y } else { y.cast(FloatDType::from(dtype)) }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::random::Key;
    use crate::rounding::Half;

    #[test]
    fn kernel_and_composition_agree_in_value_and_gradient() {
        let device = Device::flex().autodiff();
        // The kernel's gradient follows from the rounded output, as in PyTorch; the composition's
        // from the one before rounding. The limit is of the largest values.
        for (dtype, limit) in [(FloatDType::F32, 1e-6), (FloatDType::BF16, 5e-3), (FloatDType::F16, 6e-4)] {
            let key = Key::new(17, 0, 0);
            let values: Vec<f32> = (0..70 * 61).map(|i| 4.0 * key.normal(i)).collect();
            let [own, composed] = [true, false].map(|own| {
                let data = TensorData::new(values.clone(), [70, 61]);
                let x = Tensor::<2>::from_data(data, &device).require_grad();
                let input = Compute(dtype).cast(x.clone());
                let out = if own { sigmoid(input) } else { composed(input) };
                assert_eq!(out.dtype(), dtype.into());
                let upstream = Tensor::from_inner(x.clone().inner().sin());
                let grads = (to_f32(out.clone()) * upstream).sum().backward();
                [host_values(out.inner()), host_values(x.grad(&grads).unwrap())]
            });
            for (own, composed) in own.iter().zip(&composed) {
                let far = own.iter().zip(composed).find(|(a, b)| (*a - *b).abs() > limit);
                assert_eq!(far, None, "{dtype:?}");
            }
        }
    }

    #[test]
    fn fp16_rounds_the_output_and_the_gradient_once() {
        let device = Device::flex().autodiff();
        let key = Key::new(18, 0, 0);
        let draw = |factor: f32, from: u32| {
            let mut values: Vec<f32> = (0..4000).map(|i| factor * key.normal(from + i)).collect();
            Half::Fp16.round(&mut values);
            values
        };
        // The small gradients become subnormal, or 0.
        let (x, mut upstream) = (draw(3.0, 0), draw(0.5, 4000));
        upstream[2000..].iter_mut().for_each(|g| *g *= 1.0 / 65_536.0);
        Half::Fp16.round(&mut upstream);
        let tensor =
            |values: &[f32]| Tensor::<1>::from_data(TensorData::new(values.to_vec(), [4000]), &device);
        let leaf = tensor(&x).require_grad();
        let out = sigmoid(leaf.clone().cast(FloatDType::F16));
        let gradients = (to_f32(out.clone()) * tensor(&upstream)).sum().backward();
        let found = [host_values(out.inner()), host_values(leaf.grad(&gradients).unwrap())];
        let mut y: Vec<f32> = x.iter().map(|x| (1.0 / (1.0 + f64::from(-x).exp())) as f32).collect();
        Half::Fp16.round(&mut y);
        let slope = |(y, g): (&f32, &f32)| (f64::from(*g) * f64::from(*y) * (1.0 - f64::from(*y))) as f32;
        let mut dx: Vec<f32> = y.iter().zip(&upstream).map(slope).collect();
        Half::Fp16.round(&mut dx);
        for (found, due) in found.iter().zip([y, dx]) {
            let apart = found.iter().zip(&due).filter(|(a, b)| a != b).count();
            assert!(apart * 200 <= due.len(), "{apart} numbers are apart");
            // A unit of the fraction, or the smallest subnormal number.
            let far = |(a, b): &(&f32, &f32)| (*a - *b).abs() > b.abs() / 1024.0 + 6e-8;
            assert_eq!(found.iter().zip(&due).find(far), None);
        }
    }

    #[test]
    fn extremes_are_finite_and_a_nan_comes_through() {
        let x = Tensor::<1>::from_data([-1000.0f32, 1000.0, 0.0, f32::NAN], &Device::flex());
        let out = host_values(sigmoid(x));
        assert!(out[0] < 1e-30 && out[1..3] == [1.0, 0.5] && out[3].is_nan());
    }
}
