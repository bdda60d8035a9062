//! Layer normalisation without FP32.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, Tensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use rayon::prelude::*;

use super::super::host;
use super::super::layer_norm::layer_norm;
use super::super::rounding::Half;
use super::{each, half_of, one, sum, with};
use crate::Pass;

/// Number of rows whose parameter gradients one task sums.
const ROWS: usize = 64;

/// The operation on the CPU.
#[backend_extension(Flex, Autodiff)]
pub trait HalfNormOp: Backend {
    /// x `[rows, width]`, gamma and beta `[width]` -> `[rows, width]`, all FP32; values are rounded
    /// to `half`.
    fn half_normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        half: Half,
    ) -> FloatTensor<Self>;

    /// Gradients of x, gamma and beta.
    fn half_normalized_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        epsilon: f32,
        half: Half,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Normalises a row in place. Returns the inverse of its standard deviation.
fn normalize(half: Half, row: &mut [f32], epsilon: f32) -> f32 {
    half.round(row);
    let n = one(half, row.len() as f32);
    let mean = one(half, sum(half, row) / n);
    each(half, row, |x| x - mean);
    let mut squares = row.to_vec();
    each(half, &mut squares, |x| x * x);
    let variance = one(half, sum(half, &squares) / n);
    let deviation = one(half, one(half, variance + one(half, epsilon)).sqrt());
    let inverse = one(half, 1.0 / deviation);
    each(half, row, |x| x * inverse);
    inverse
}

/// Replaces a row by its output.
fn forward(half: Half, row: &mut [f32], gamma: &[f32], beta: &[f32], epsilon: f32) {
    normalize(half, row, epsilon);
    with(half, row, gamma, |x, gamma| x * gamma);
    with(half, row, beta, |x, beta| x + beta);
}

/// Replaces a row by its gradient. Adds the gradients of gamma and beta to the sums.
fn backward(
    half: Half,
    row: &mut [f32],
    upstream: &[f32],
    gamma: &[f32],
    [for_gamma, for_beta]: [&mut [f32]; 2],
    epsilon: f32,
) {
    let n = one(half, row.len() as f32);
    let inverse = normalize(half, row, epsilon);
    let normal = row.to_vec();
    let mut products = upstream.to_vec();
    half.round(&mut products);
    with(half, for_beta, &products, |sum, g| sum + g);
    let mut scaled = products.clone();
    with(half, &mut products, &normal, |g, x| g * x);
    with(half, for_gamma, &products, |sum, g| sum + g);
    with(half, &mut scaled, gamma, |g, gamma| g * gamma);
    let mut projected = scaled.clone();
    with(half, &mut projected, &normal, |g, x| g * x);
    let mean = one(half, sum(half, &scaled) / n);
    let projection = one(half, sum(half, &projected) / n);
    each(half, row, |x| x * projection);
    each(half, &mut scaled, |g| g - mean);
    with(half, row, &scaled, |x, g| g - x);
    each(half, row, |x| x * inverse);
}

/// Values of a parameter, rounded.
fn rounded(half: Half, values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    half.round(&mut values);
    values
}

impl HalfNormOp for Flex {
    fn half_normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        half: Half,
    ) -> FloatTensor<Self> {
        let shape = x.shape();
        let (gamma, beta) = (rounded(half, &host::values(&gamma)), rounded(half, &host::values(&beta)));
        let mut out = host::values(&x).into_owned();
        let rows = out.par_chunks_exact_mut(gamma.len().max(1));
        rows.for_each(|row| forward(half, row, &gamma, &beta, epsilon));
        host::stored(out, shape)
    }

    fn half_normalized_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        epsilon: f32,
        half: Half,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let shape = x.shape();
        let (gamma, upstream) = (rounded(half, &host::values(&gamma)), host::values(&gradient));
        let width = gamma.len();
        let block = ROWS * width.max(1);
        let mut out = host::values(&x).into_owned();
        let parts: Vec<Vec<f32>> = out
            .par_chunks_mut(block)
            .zip(upstream.par_chunks(block))
            .map(|(rows, upstream)| {
                let mut sums = vec![0f32; 2 * width];
                let (for_gamma, for_beta) = sums.split_at_mut(width);
                for (row, upstream) in rows.chunks_exact_mut(width).zip(upstream.chunks_exact(width)) {
                    backward(half, row, upstream, &gamma, [&mut *for_gamma, &mut *for_beta], epsilon);
                }
                sums
            })
            .collect();
        let mut sums = vec![0f32; 2 * width];
        for part in &parts {
            with(half, &mut sums, part, |sum, x| sum + x);
        }
        let beta = sums.split_off(width);
        (
            host::stored(out, shape),
            host::tensor(sums, [width], DType::F32),
            host::tensor(beta, [width], DType::F32),
        )
    }
}

impl<B: HalfNormOp, C: CheckpointStrategy> HalfNormOp for Autodiff<B, C> {
    fn half_normalized(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        half: Half,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Normalized;
        impl<B: HalfNormOp> Backward<B, 3> for Normalized {
            type State = Arc<(FloatTensor<B>, FloatTensor<B>, f32, Half)>;
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (x, gamma, epsilon, half) = &*ops.state;
                let (dx, dgamma, dbeta) =
                    B::half_normalized_backward(x.clone(), gamma.clone(), gradient, *epsilon, *half);
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
            OpsKind::Tracked(prep) => prep.finish(
                Arc::new((x.clone(), gamma.clone(), epsilon, half)),
                B::half_normalized(x, gamma, beta, epsilon, half),
            ),
            OpsKind::UnTracked(prep) => prep.finish(B::half_normalized(x, gamma, beta, epsilon, half)),
        }
    }

    fn half_normalized_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: f32,
        _: Half,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// [`layer_norm`] as the pass computes norms.
///
/// # Panics
/// Without FP32 on devices other than the CPU.
pub fn layer_norm_by(
    x: Tensor<2>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
    pass: &Pass,
) -> Tensor<2> {
    let half = half_of(pass.compute).filter(|_| !pass.islands().norms);
    let Some(half) = half else { return layer_norm(x, gamma, beta, epsilon) };
    assert!(pass.islands().suit(&x.device()), "only the CPU computes norms without FP32");
    let x = crate::precision::to_f32(x);
    Tensor::from_dispatch(Dispatch::half_normalized(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        epsilon as f32,
        half,
    ))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, TensorData, f16};

    use super::super::Islands;
    use super::super::tests::{draw, halves, plain_sum};
    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;

    const WIDTH: usize = 96;
    const EPSILON: f64 = 1e-5;

    /// A row's output with the arithmetic of the type `f16`.
    fn plain(row: &[f32], gamma: &[f32], beta: &[f32]) -> Vec<f32> {
        let (row, gamma, beta) = (halves(row), halves(gamma), halves(beta));
        let n = f16::from_f32(row.len() as f32);
        let mean = plain_sum(&row) / n;
        let centred: Vec<f16> = row.iter().map(|x| *x - mean).collect();
        let squares: Vec<f16> = centred.iter().map(|x| *x * *x).collect();
        let variance = plain_sum(&squares) / n + f16::from_f64(EPSILON);
        let inverse = f16::ONE / f16::from_f32(variance.to_f32().sqrt());
        let scaled = centred.iter().zip(&gamma).map(|(x, gamma)| *x * inverse * *gamma);
        scaled.zip(&beta).map(|(x, beta)| (x + *beta).to_f32()).collect()
    }

    /// Output and gradients of x, gamma and beta.
    fn run(norms: bool, rows: usize, scale: f32) -> [Vec<f32>; 4] {
        let device = Device::flex().autodiff();
        let n = (rows * WIDTH) as u32;
        let tensor = |values: Vec<f32>, rows: usize| {
            Tensor::<2>::from_data(TensorData::new(values, [rows, WIDTH]), &device)
        };
        let x = tensor(draw(1, n, scale), rows).require_grad();
        let [gamma, beta] =
            [2, 3].map(|stream| tensor(draw(stream, WIDTH as u32, 1.0), 1).reshape([WIDTH]).require_grad());
        let pass =
            Pass::training(Compute(FloatDType::F16), 1, 1).with_islands(Islands { norms, ..Islands::ALL });
        let y = layer_norm_by(x.clone(), gamma.clone(), beta.clone(), EPSILON, &pass);
        let grads = (y.clone() * tensor(draw(4, n, 1.0), rows)).sum().backward();
        let gradients = [x.grad(&grads).unwrap().reshape([rows * WIDTH]), gamma.grad(&grads).unwrap()];
        let [dx, dgamma] = gradients.map(host_values);
        [host_values(y.inner()), dx, dgamma, host_values(beta.grad(&grads).unwrap())]
    }

    #[test]
    fn an_output_is_that_of_halves() {
        let [found, ..] = run(false, 5, 2.0);
        let (x, gamma, beta) =
            (draw(1, (5 * WIDTH) as u32, 2.0), draw(2, WIDTH as u32, 1.0), draw(3, WIDTH as u32, 1.0));
        for (found, row) in found.chunks(WIDTH).zip(x.chunks(WIDTH)) {
            assert_eq!(found, plain(row, &gamma, &beta));
        }
    }

    /// More rows than one task has. Gradients of parameters are sums of 131 rounded numbers.
    #[test]
    fn values_and_gradients_are_near_those_of_fp32_and_rounded() {
        for (found, due) in run(false, 131, 1.0).iter().zip(&run(true, 131, 1.0)) {
            let largest = due.iter().fold(0f32, |m, x| m.max(x.abs()));
            for (found, due) in found.iter().zip(due) {
                assert!((found - due).abs() < 0.01 * largest, "{found} {due}");
            }
            assert!(found.iter().all(|x| f16::from_f32(*x).to_f32() == *x));
            assert_ne!(found, due);
        }
    }

    /// Squares of 300 are above 65,504. In FP32 the scale of a row does not matter.
    #[test]
    fn squares_of_large_values_overflow() {
        let ([large, ..], [exact, ..]) = (run(false, 2, 3_000.0), run(true, 2, 3_000.0));
        let beta = draw(3, WIDTH as u32, 1.0);
        for row in large.chunks(WIDTH) {
            assert_eq!(row, beta, "divided by infinity");
        }
        assert!(exact.iter().zip(&large).any(|(exact, large)| (exact - large).abs() > 1.0));
    }
}
