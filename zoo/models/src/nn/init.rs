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

    fn draw<const D: usize>(&self, shape: [usize; D], value: impl Fn(Key, u32) -> f32) -> Param<Tensor<D>> {
        let key = Key::new(self.seed, stream_of(&self.path), 0);
        let n = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..n).map(|i| value(key, i as u32)).collect();
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }
}
