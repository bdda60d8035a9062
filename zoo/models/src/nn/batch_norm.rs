//! Batch normalisation with running statistics.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::Pass;
use crate::ops::{self, Normalization, Rows, Statistics};

/// Settings of a batch norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormSpec {
    /// Added to the variance. PyTorch: 1e-5; TensorFlow: 1e-3.
    pub epsilon: f64,
    /// Weight of a new batch in the running statistics. This is PyTorch's `momentum`, 0.1;
    /// TensorFlow's `momentum` is 1 minus this value.
    pub momentum: f64,
    /// Whether the running variance divides by n - 1 (PyTorch) or by n (TensorFlow without fusion).
    pub unbiased: bool,
    /// Whether the norm has a trained scale and shift.
    pub affine: bool,
    /// Whether a ReLU follows.
    pub relu: bool,
}

impl Default for BatchNormSpec {
    /// PyTorch's defaults.
    fn default() -> Self {
        Self { epsilon: 1e-5, momentum: 0.1, unbiased: true, affine: true, relu: false }
    }
}

/// Normalises every channel over the rows of a batch, then scales and shifts; in FP32, or in the half
/// type of a training pass if `norms` is not one of its FP32 islands.
///
/// A forward pass does not change the norm. It returns the statistics of the batch, and
/// [`BatchNorm::fold`] adds them to the running statistics once the update that they belong to is
/// accepted.
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// Shape `[channels]`, starts at 1.
    pub weight: Option<Param<Tensor<1>>>,
    /// Shape `[channels]`, starts at 0.
    pub bias: Option<Param<Tensor<1>>>,
    /// Shape `[channels]`, starts at 0; no gradient.
    pub running_mean: Param<Tensor<1>>,
    /// Shape `[channels]`, starts at 1; no gradient.
    pub running_variance: Param<Tensor<1>>,
    #[module(skip)]
    spec: BatchNormSpec,
}

impl BatchNorm {
    /// Builds a norm for `channels` channels.
    pub fn new(init: &Init, channels: usize, spec: BatchNormSpec) -> Self {
        let all = |name: &str, value: f32| init.at(name).constant([channels], value);
        Self {
            weight: spec.affine.then(|| all("weight", 1.0)),
            bias: spec.affine.then(|| all("bias", 0.0)),
            running_mean: all("running_mean", 0.0).set_require_grad(false),
            running_variance: all("running_variance", 1.0).set_require_grad(false),
            spec,
        }
    }

    /// x `[rows, channels]` of any float type -> `[rows, channels]` FP32. Only a training pass
    /// returns statistics. Rows that do not count are zero in the output.
    pub fn forward(&self, x: Tensor<2>, rows: Rows, pass: &Pass) -> (Tensor<2>, Option<Statistics>) {
        let (channels, device) = (self.running_mean.dims(), x.device());
        let gamma = self.weight.as_ref().map_or_else(|| Tensor::ones(channels, &device), Param::val);
        let beta = self.bias.as_ref().map_or_else(|| Tensor::zeros(channels, &device), Param::val);
        let how = Normalization { epsilon: self.spec.epsilon, relu: self.spec.relu, rows };
        if pass.is_training() {
            let (out, statistics) = ops::batch_norm(x, gamma, beta, &how, pass);
            return (out, Some(statistics));
        }
        let running = Statistics {
            mean: self.running_mean.val().inner(),
            variance: self.running_variance.val().inner(),
            count: 0,
        };
        (ops::batch_norm_by(x, gamma, beta, &running, &how), None)
    }

    /// Adds the statistics of a batch to the running statistics.
    pub fn fold(self, batch: &Statistics) -> Self {
        let share = self.spec.momentum;
        let n = batch.count as f64;
        let correction = if self.spec.unbiased { n / (n - 1.0).max(1.0) } else { 1.0 };
        let mixed = |running: Param<Tensor<1>>, batch: Tensor<1>| {
            running.map(|running| {
                let tracked = running.device().is_autodiff();
                let mixed = running.inner() * (1.0 - share) + batch * share;
                if tracked { Tensor::from_inner(mixed) } else { mixed }
            })
        };
        Self {
            running_mean: mixed(self.running_mean, batch.mean.clone()),
            running_variance: mixed(self.running_variance, batch.variance.clone() * correction),
            ..self
        }
    }
}
