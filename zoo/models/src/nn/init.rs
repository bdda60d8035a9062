//! Initial values as a function of (seed, parameter path, element): adding a layer does not change
//! the values of other layers.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use crate::random::{Key, stream_of};

/// Path of a parameter in the module tree, with the seed and the device.
#[derive(Debug, Clone)]
pub struct Init {
    seed: u64,
    path: String,
    device: Device,
}

impl Init {
    /// The root of a model. On an autodiff device parameters are tracked leaves.
    pub fn new(seed: u64, device: &Device) -> Self {
        Self { seed, path: String::new(), device: device.clone() }
    }

    /// Path of a field or element below this one.
    pub fn at(&self, name: impl std::fmt::Display) -> Self {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) };
        Self { path, ..self.clone() }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A parameter whose elements are all `value`.
    pub fn constant<const D: usize>(&self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.draw(shape, |_, _| value)
    }

    /// A parameter with uniform values in [-bound, bound).
    pub fn uniform<const D: usize>(&self, shape: [usize; D], bound: f64) -> Param<Tensor<D>> {
        self.draw(shape, |key, i| ((2.0 * f64::from(key.uniform(i)) - 1.0) * bound) as f32)
    }

    /// A parameter with normal values of mean 0 and standard deviation `std`.
    pub fn normal<const D: usize>(&self, shape: [usize; D], std: f64) -> Param<Tensor<D>> {
        self.draw(shape, |key, i| (f64::from(key.normal(i)) * std) as f32)
    }

    /// A parameter with normal values of mean 0. Values are redrawn until they are within two
    /// standard deviations.
    pub fn truncated_normal<const D: usize>(&self, shape: [usize; D], std: f64) -> Param<Tensor<D>> {
        let stream = stream_of(&self.path);
        self.draw(shape, |_, i| {
            let mut draws = (0..).map(|again| Key::new(self.seed, stream, again).normal(i));
            let within = draws.find(|value| value.abs() < 2.0).expect("95 % of all draws are");
            (f64::from(within) * std) as f32
        })
    }

    /// A matrix `[rows, columns]` whose columns are orthonormal, drawn uniformly among all such
    /// matrices: normal columns, each made orthogonal to those before it (Saxe et al. 2013; Keras's
    /// `orthogonal`). There are at least as many rows as columns.
    pub fn orthonormal_columns(&self, [rows, columns]: [usize; 2]) -> Param<Tensor<2>> {
        let key = Key::new(self.seed, stream_of(&self.path), 0);
        let mut found: Vec<Vec<f64>> = Vec::with_capacity(columns);
        for column in 0..columns {
            let mut new: Vec<f64> =
                (0..rows).map(|row| f64::from(key.normal((row * columns + column) as u32))).collect();
            // Twice, because rounding leaves a part in the first pass.
            for before in found.iter().chain(&found) {
                let along: f64 = before.iter().zip(&new).map(|(a, b)| a * b).sum();
                new.iter_mut().zip(before).for_each(|(x, a)| *x -= along * a);
            }
            let norm = new.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            found.push(new.into_iter().map(|x| x / norm).collect());
        }
        self.draw([rows, columns], |_, i| found[i as usize % columns][i as usize / columns] as f32)
    }

    fn draw<const D: usize>(&self, shape: [usize; D], value: impl Fn(Key, u32) -> f32) -> Param<Tensor<D>> {
        let key = Key::new(self.seed, stream_of(&self.path), 0);
        let n = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..n).map(|i| value(key, i as u32)).collect();
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::host_values;

    #[test]
    fn orthonormal_columns_have_length_one_and_no_common_part() {
        let values = host_values(Init::new(1, &Device::flex()).orthonormal_columns([40, 10]).val());
        for one in 0..10 {
            for other in 0..10 {
                let product: f32 = (0..40).map(|row| values[row * 10 + one] * values[row * 10 + other]).sum();
                let due = if one == other { 1.0 } else { 0.0 };
                assert!((product - due).abs() < 1e-5, "{one} {other}: {product}");
            }
        }
    }
}
