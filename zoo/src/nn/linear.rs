//! y = x Wᵀ + b.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::contract::Pass;
use crate::ops;

/// An affine map of rows. The weight is [out, in], PyTorch's layout.
#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Param<Tensor<2>>,
    /// [out]
    pub bias: Option<Param<Tensor<1>>>,
}

impl Linear {
    /// Xavier-uniform weights times `gain`, zero bias.
    pub fn new(init: &Init, input: usize, output: usize, bias: bool, gain: f64) -> Self {
        let bound = gain * (6.0 / (input + output) as f64).sqrt();
        Self {
            weight: init.at("weight").uniform([output, input], bound),
            bias: bias.then(|| init.at("bias").constant([output], 0.0)),
        }
    }

    /// x [rows, in] -> [rows, out], in the compute type.
    pub fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        ops::linear(x, self.weight.val(), self.bias.as_ref().map(Param::val), pass)
    }
}
