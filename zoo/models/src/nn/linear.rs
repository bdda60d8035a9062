//! Linear layer: y = x Wᵀ + b.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::Pass;
use crate::ops;

/// A linear layer on rows. The weight is `[out, in]`, PyTorch's layout.
#[derive(Module, Debug)]
pub struct Linear {
    /// Shape `[out, in]`.
    pub weight: Param<Tensor<2>>,
    /// Shape `[out]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Linear {
    /// Initialises weights as Xavier uniform times `gain`, and biases as zero.
    pub fn new(init: &Init, input: usize, output: usize, bias: bool, gain: f64) -> Self {
        let bound = gain * (6.0 / (input + output) as f64).sqrt();
        Self {
            weight: init.at("weight").uniform([output, input], bound),
            bias: bias.then(|| init.at("bias").constant([output], 0.0)),
        }
    }

    /// x `[rows, in]` -> `[rows, out]`, in the compute type.
    pub fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        ops::linear(x, self.weight.val(), self.bias.as_ref().map(Param::val), pass)
    }
}
