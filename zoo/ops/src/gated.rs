//! Gated linear units (Dauphin et al. 2017): the first half of each row, times the sigmoid of the
//! second half.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor, activation};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use rayon::prelude::*;

use super::simd::{sigmoid, vectorized};
use super::{has_own_kernels, host};
use crate::precision::to_f32;

/// Number of rows of one task.
const ROWS: usize = 32;

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Autodiff)]
pub trait GatedOp: Backend {
    /// x `[rows, 2 width]` FP32 or bf16 -> `[rows, width]` FP32.
    fn gated(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Gradient of x, in its type.
    fn gated_backward(x: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl GatedOp for Flex {
    fn gated(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let [rows, width] = [x.shape()[0], x.shape()[1] / 2];
        let x = x.to_contiguous();
        let values = host::Source::new(&x);
        let mut out = host::room(rows * width);
        out.par_chunks_mut((ROWS * width).max(1)).enumerate().for_each(|(i, out)| {
            let mut room = Vec::new();
            for (j, out) in out.chunks_exact_mut(width).enumerate() {
                let (value, gate) =
                    values.part((i * ROWS + j) * 2 * width, 2 * width, &mut room).split_at(width);
                pass(out, value, gate);
            }
        });
        host::tensor(out, [rows, width], DType::F32)
    }

    fn gated_backward(x: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self> {
        let (shape, dtype) = (x.shape(), x.dtype());
        let width = shape[1] / 2;
        let (x, gradient) = (x.to_contiguous(), host::values(&gradient));
        let values = host::Source::new(&x);
        let mut out = host::room(gradient.len() * 2);
        out.par_chunks_mut((ROWS * 2 * width).max(1)).enumerate().for_each(|(i, out)| {
            let mut room = Vec::new();
            for (j, out) in out.chunks_exact_mut(2 * width).enumerate() {
                let row = i * ROWS + j;
                let (value, gate) = values.part(row * 2 * width, 2 * width, &mut room).split_at(width);
                let (of_value, of_gate) = out.split_at_mut(width);
                pass_back(of_value, of_gate, value, gate, &gradient[row * width..][..width]);
            }
        });
        host::tensor(out, shape, dtype)
    }
}

vectorized! {
    fn pass(out: &mut [f32], value: &[f32], gate: &[f32]) {
        for ((out, value), gate) in out.iter_mut().zip(value).zip(gate) {
            *out = value * sigmoid::<FMA>(*gate);
        }
    }

    fn pass_back(of_value: &mut [f32], of_gate: &mut [f32], value: &[f32], gate: &[f32], gradient: &[f32]) {
        let n = of_value.len();
        let (of_gate, value, gate, gradient) = (&mut of_gate[..n], &value[..n], &gate[..n], &gradient[..n]);
        for i in 0..n {
            let open = sigmoid::<FMA>(gate[i]);
            of_value[i] = gradient[i] * open;
            of_gate[i] = gradient[i] * value[i] * (open * (1.0 - open));
        }
    }
}

impl<B: GatedOp, C: CheckpointStrategy> GatedOp for Autodiff<B, C> {
    fn gated(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Gated;
        impl<B: GatedOp> Backward<B, 1> for Gated {
            type State = FloatTensor<B>;
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [parent] = ops.parents;
                let gradient = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, B::gated_backward(ops.state, gradient));
                }
            }
        }
        let (x, node) = x.into_parts();
        match Gated.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(x.clone(), B::gated(x)),
            OpsKind::UnTracked(prep) => prep.finish(B::gated(x)),
        }
    }

    fn gated_backward(_: FloatTensor<Self>, _: FloatTensor<Self>) -> FloatTensor<Self> {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// x `[rows, 2 width]` in any float type -> `[rows, width]`, FP32.
pub fn gated(x: Tensor<2>) -> Tensor<2> {
    if has_own_kernels(&x.device()) {
        return Tensor::from_dispatch(Dispatch::gated(x.into_dispatch()));
    }
    composed(to_f32(x))
}

fn composed(x: Tensor<2>) -> Tensor<2> {
    let width = x.dims()[1] / 2;
    x.clone().narrow(1, 0, width) * activation::sigmoid(x.narrow(1, width, width))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::random::Key;

    fn run(own: bool) -> [Vec<f32>; 2] {
        let key = Key::new(3, 1, 0);
        let values: Vec<f32> = (0..70 * 38).map(|i| 4.0 * key.normal(i)).collect();
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_data(TensorData::new(values, [70, 38]), &device).require_grad();
        let out = if own { gated(x.clone()) } else { composed(x.clone()) };
        let grads = (out.clone() * out.clone()).sum().backward();
        [host_values(out.inner()), host_values(x.grad(&grads).unwrap())]
    }

    /// Where a gate is almost open, 1 minus the sigmoid has the error of the sigmoid, times values
    /// up to 16 and a gradient of twice their size.
    #[test]
    fn the_kernel_agrees_with_its_composition() {
        for (own, composed) in run(true).iter().zip(run(false)) {
            assert_eq!(own.len(), composed.len());
            for (a, b) in own.iter().zip(composed) {
                assert!((a - b).abs() < 5e-5 * (1.0 + b.abs()), "{a} {b}");
            }
        }
    }
}
