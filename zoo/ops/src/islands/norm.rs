//! Rows of a layer norm without FP32.

use super::super::rounding::Half;
use super::{each, one, sum, with};

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

/// Outputs of rows, given gamma and beta as values of the type.
pub fn forward_rows(half: Half, out: &mut [f32], x: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32) {
    out.copy_from_slice(x);
    for row in out.chunks_exact_mut(gamma.len()) {
        normalize(half, row, epsilon);
        with(half, row, gamma, |x, gamma| x * gamma);
        with(half, row, beta, |x, beta| x + beta);
    }
}

/// Gradients of rows. Adds the gradients of gamma and beta to the two halves of `sums`.
pub fn backward_rows(
    half: Half,
    out: &mut [f32],
    x: &[f32],
    gradient: &[f32],
    gamma: &[f32],
    sums: &mut [f32],
    epsilon: f32,
) {
    let width = gamma.len();
    let (for_gamma, for_beta) = sums.split_at_mut(width);
    out.copy_from_slice(x);
    for (row, upstream) in out.chunks_exact_mut(width).zip(gradient.chunks_exact(width)) {
        backward(half, row, upstream, gamma, [&mut *for_gamma, &mut *for_beta], epsilon);
    }
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

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, Tensor, TensorData, f16};

    use super::super::Islands;
    use super::super::tests::{draw, halves, plain_sum};
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::{Pass, layer_norm_by};

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
