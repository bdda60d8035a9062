//! GELU by the error function, and its exact gradient.

use std::f64::consts::FRAC_1_SQRT_2;

use burn::tensor::{Tensor, activation};

use super::has_own_kernels;

/// x (1 + erf(x / sqrt 2)) / 2, in the type of x.
///
/// On GPUs, Burn's own operation has this value and the gradient of another function, the
/// approximation by tanh: it is up to 5e-4 off. There it is composed.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if has_own_kernels(&x.device()) {
        return activation::gelu(x);
    }
    composed(x)
}

fn composed<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let below = ((x.clone() * FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
    x * below
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::host_values;

    /// Values and gradients at some points.
    fn at(points: &[f32], of: impl Fn(Tensor<1>) -> Tensor<1>) -> [Vec<f32>; 2] {
        let data = TensorData::new(points.to_vec(), [points.len()]);
        let x = Tensor::<1>::from_data(data, &Device::flex().autodiff()).require_grad();
        let y = of(x.clone());
        let gradient = x.grad(&y.clone().sum().backward()).unwrap();
        [host_values(y.inner()), host_values(gradient)]
    }

    #[test]
    fn both_ways_have_the_value_and_the_gradient_of_the_definition() {
        let points: Vec<f32> = (-40..=40).map(|i| i as f32 / 8.0).collect();
        // erf is the integral of 2 / sqrt(pi) e^(-t^2), by Simpson's rule with 2,000 steps.
        let density = |t: f64| (-t * t).exp() * 2.0 / std::f64::consts::PI.sqrt();
        let erf = |x: f64| {
            let step = x / 2000.0;
            let weight = |i: u32| if i == 0 || i == 2000 { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
            (0..=2000).map(|i| weight(i) * density(f64::from(i) * step)).sum::<f64>() * step / 3.0
        };
        for found in [at(&points, gelu), at(&points, composed)] {
            for (i, x) in points.iter().map(|&x| f64::from(x)).enumerate() {
                let below = (1.0 + erf(x * FRAC_1_SQRT_2)) / 2.0;
                let slope = below + x * density(x * FRAC_1_SQRT_2) * FRAC_1_SQRT_2 / 2.0;
                assert!((f64::from(found[0][i]) - x * below).abs() < 2e-6, "value at {x}");
                // The gradient of the approximation by tanh is up to 5e-4 off.
                assert!((f64::from(found[1][i]) - slope).abs() < 2e-6, "gradient at {x}");
            }
        }
    }
}
