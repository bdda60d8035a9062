//! Layer normalisation over the last dimension (Ba et al. 2016; biased variance, epsilon inside the
//! root). In FP32, or in the half type of a pass if `Islands::norms` is false.

use std::borrow::Cow;
use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use rayon::prelude::*;

use super::host::{self, Source};
use super::islands;
use super::rounding::Half;
use super::simd::{self, fma, sum_by, vectorized};
use super::{has_device_kernels, has_own_kernels};
use crate::Pass;
use crate::precision::to_f32;

/// Number of rows whose parameter gradients one task sums. It is fixed, so that the order of a sum
/// does not depend on the threads.
const ROWS: usize = 64;

/// How rows are normalised.
#[derive(Debug, Clone, Copy)]
pub struct Norm {
    /// Addend of the variance.
    pub(super) epsilon: f32,
    /// Type of the computation, if it is not FP32. Only the CPU has it.
    pub(super) half: Option<Half>,
}

impl Norm {
    /// A parameter in the type of the computation.
    fn operand(self, values: Cow<'_, [f32]>) -> Cow<'_, [f32]> {
        match self.half {
            None => values,
            Some(half) => {
                let mut values = values.into_owned();
                half.round(&mut values);
                values.into()
            }
        }
    }
}

/// The operation on backends with custom kernels.
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"), Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait LayerNormOp: Backend {
    /// x `[rows, width]` FP32 (on the CPU also half types), gamma and beta `[width]` ->
    /// `[rows, width]` FP32.
    #[fusion(dtype = x, shape = x)]
    fn normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self>;

    /// Gradients of x (in its type), gamma and beta.
    #[fusion(meta = |x, gamma, _, _| (x.clone(), gamma.clone(), gamma.clone()))]
    fn normalized_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl LayerNormOp for Flex {
    fn normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self> {
        let (x, shape) = (x.to_contiguous(), x.shape());
        let [gamma, beta] = [&gamma, &beta].map(|of| norm.operand(host::values(of)));
        let values = Source::new(&x);
        let block = ROWS * gamma.len();
        let mut out = host::room(shape.num_elements());
        out.par_chunks_mut(block).enumerate().for_each_init(Vec::new, |room, (i, out)| {
            let x = values.part(i * block, out.len(), room);
            match norm.half {
                None => forward_rows(out, x, &gamma, &beta, norm.epsilon),
                Some(half) => islands::forward_rows(half, out, x, &gamma, &beta, norm.epsilon),
            }
        });
        host::stored(out, shape)
    }

    fn normalized_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        norm: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (x, gradient) = (x.to_contiguous(), gradient.to_contiguous());
        let (values, gradients) = (Source::new(&x), Source::new(&gradient));
        let gamma = norm.operand(host::values(&gamma));
        let width = gamma.len();
        let block = ROWS * width;
        let rows = |i: usize, out: &mut [f32], room: &mut Vec<f32>, other: &mut Vec<f32>| {
            let x = values.part(i * block, out.len(), room);
            let gradient = gradients.part(i * block, out.len(), other);
            let mut sums = vec![0f32; 2 * width];
            match norm.half {
                None => backward_rows(out, x, gradient, &gamma, &mut sums, norm.epsilon),
                Some(half) => {
                    islands::backward_rows(half, out, x, gradient, &gamma, &mut sums, norm.epsilon);
                }
            }
            sums
        };
        let rooms = || (Vec::new(), Vec::new());
        let (dx, partial) =
            host::build_blocks((x.shape(), x.dtype()), block, rooms, |(room, other), i, out| {
                rows(i, out, room, other)
            });
        let mut sums = vec![0f32; 2 * width];
        for part in &partial {
            sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            norm.half.iter().for_each(|half| half.round(&mut sums));
        }
        let beta = sums.split_off(width);
        (dx, host::tensor(sums, [width], DType::F32), host::tensor(beta, [width], DType::F32))
    }
}

/// Mean and inverse standard deviation of a row.
#[inline(always)]
fn moments(row: &[f32], epsilon: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum_by(row, |x| x) / n;
    let variance = sum_by(row, |x| (x - mean) * (x - mean)) / n;
    (mean, 1.0 / (variance + epsilon).sqrt())
}

vectorized! {
    fn forward_rows(out: &mut [f32], x: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32) {
        let width = gamma.len();
        for (out, row) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            let (mean, inverse) = moments(row, epsilon);
            for i in 0..width {
                out[i] = fma::<FMA>((row[i] - mean) * inverse, gamma[i], beta[i]);
            }
        }
    }

    fn backward_rows(out: &mut [f32], x: &[f32], gradient: &[f32], gamma: &[f32], sums: &mut [f32], epsilon: f32) {
        let width = gamma.len();
        let (for_gamma, for_beta) = sums.split_at_mut(width);
        let mut normal = vec![0f32; width];
        let mut scaled = vec![0f32; width];
        for ((out, row), gradient) in
            out.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(gradient.chunks_exact(width))
        {
            let (mean, inverse) = moments(row, epsilon);
            for i in 0..width {
                normal[i] = (row[i] - mean) * inverse;
                scaled[i] = gradient[i] * gamma[i];
                for_gamma[i] = fma::<FMA>(gradient[i], normal[i], for_gamma[i]);
                for_beta[i] += gradient[i];
            }
            let mean_gradient = sum_by(&scaled, |g| g) / width as f32;
            let mut lanes = [0f32; simd::LANES];
            for i in 0..width {
                let lane = i % simd::LANES;
                lanes[lane] = fma::<FMA>(scaled[i], normal[i], lanes[lane]);
            }
            let projection = lanes.iter().sum::<f32>() / width as f32;
            for i in 0..width {
                out[i] = (scaled[i] - mean_gradient - normal[i] * projection) * inverse;
            }
        }
    }
}

impl<B: LayerNormOp, C: CheckpointStrategy> LayerNormOp for Autodiff<B, C> {
    fn normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Normalized;
        impl<B: LayerNormOp> Backward<B, 3> for Normalized {
            type State = Arc<(FloatTensor<B>, FloatTensor<B>, Norm)>;
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (x, gamma, norm) = &*ops.state;
                let (dx, dgamma, dbeta) = B::normalized_backward(x.clone(), gamma.clone(), gradient, *norm);
                for (parent, gradient) in ops.parents.into_iter().zip([dx, dgamma, dbeta]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((x, x_node), (gamma, gamma_node), (beta, beta_node)) =
            (x.into_parts(), gamma.into_parts(), beta.into_parts());
        match Normalized.prepare::<C>([x_node, gamma_node, beta_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                prep.finish(Arc::new((x.clone(), gamma.clone(), norm)), B::normalized(x, gamma, beta, norm))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::normalized(x, gamma, beta, norm)),
        }
    }

    fn normalized_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Norm,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// Normalises rows of `x` `[rows, width]` of any float type in FP32; the result is FP32.
pub fn layer_norm(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f64) -> Tensor<2> {
    let x = if has_own_kernels(&x.device()) { x } else { to_f32(x) };
    if has_device_kernels(&x.device()) {
        return normalized_by(x, gamma, beta, Norm { epsilon: epsilon as f32, half: None });
    }
    composed(x, gamma, beta, epsilon)
}

/// [`layer_norm`], in the half type of the pass if `norms` is not one of its FP32 islands.
///
/// # Panics
/// If it is not, on devices other than the CPU.
pub fn layer_norm_by(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
    pass: &Pass,
) -> Tensor<2> {
    match pass.compute.half().filter(|_| !pass.islands().norms) {
        None => layer_norm(x, gamma, beta, epsilon),
        half => {
            assert!(pass.islands().suit(&x.device()), "only the CPU computes norms without FP32");
            normalized_by(x, gamma, beta, Norm { epsilon: epsilon as f32, half })
        }
    }
}

fn normalized_by(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>, norm: Norm) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::normalized(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        norm,
    ))
}

pub(super) fn composed(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f64) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1);
    let variance = (centred.clone() * centred.clone()).mean_dim(1);
    centred / (variance + epsilon).sqrt() * gamma.unsqueeze() + beta.unsqueeze()
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::random::Key;

    fn draw(stream: u64, shape: [usize; 2], device: &Device) -> Tensor<2> {
        let key = Key::new(5, stream, 0);
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, shape), device).require_grad()
    }

    /// Both paths are FP32 sums over 37 numbers in different orders: 1e-5 is about forty roundings.
    #[test]
    fn kernel_and_composition_agree_in_value_and_in_every_gradient() {
        let device = Device::flex().autodiff();
        let run = |own: bool| {
            let x = draw(1, [131, 37], &device);
            let gamma = draw(2, [1, 37], &device);
            let beta = draw(3, [1, 37], &device);
            let weights = draw(4, [131, 37], &device).inner();
            let (g, b) = (gamma.clone().reshape([37]), beta.clone().reshape([37]));
            let y = if own { layer_norm(x.clone(), g, b, 1e-5) } else { composed(x.clone(), g, b, 1e-5) };
            let grads = (y.clone() * Tensor::from_inner(weights)).sum().backward();
            [y.inner(), x.grad(&grads).unwrap(), gamma.grad(&grads).unwrap(), beta.grad(&grads).unwrap()]
                .map(host_values)
        };
        for (own, composed) in run(true).iter().zip(&run(false)) {
            for (a, b) in own.iter().zip(composed) {
                assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()) * 4.0, "{a} {b}");
            }
        }
    }

    /// Equals a cast before the norm and a cast of the gradient after it, bitwise.
    #[test]
    fn of_halves_is_that_of_the_same_values_in_fp32() {
        let device = Device::flex().autodiff();
        let run = |half: Compute, wide: bool| {
            let x = half.cast(draw(1, [131, 37], &device)).detach().require_grad();
            let (gamma, beta) = (draw(2, [1, 37], &device), draw(3, [1, 37], &device));
            let weights = draw(4, [131, 37], &device).inner();
            let input = if wide { to_f32(x.clone()) } else { x.clone() };
            let y = layer_norm(input, gamma.clone().reshape([37]), beta.clone().reshape([37]), 1e-5);
            assert_eq!(y.dtype(), DType::F32);
            let grads = (y.clone() * Tensor::from_inner(weights)).sum().backward();
            let dx = x.grad(&grads).unwrap();
            assert_eq!(dx.dtype(), DType::from(half.0));
            [y.inner(), to_f32(dx), gamma.grad(&grads).unwrap(), beta.grad(&grads).unwrap()].map(host_values)
        };
        for half in [FloatDType::BF16, FloatDType::F16].map(Compute) {
            assert_eq!(run(half, false), run(half, true));
        }
    }
}
