//! Layer normalisation with scale and shift.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::{Pass, ops};

/// Normalises rows to mean 0 and variance 1, then scales and shifts.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// Shape `[width]`, starts at 1.
    pub weight: Param<Tensor<1>>,
    /// Shape `[width]`, starts at 0.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    epsilon: f64,
}

impl LayerNorm {
    /// Builds a norm for rows of `width` numbers.
    pub fn new(init: &Init, width: usize, epsilon: f64) -> Self {
        Self {
            weight: init.at("weight").constant([width], 1.0),
            bias: init.at("bias").constant([width], 0.0),
            epsilon,
        }
    }

    /// [`Self::forward`], in the half type of the pass if `norms` is not one of its FP32 islands.
    pub fn forward_by(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        ops::layer_norm_by(x, self.weight.val(), self.bias.val(), self.epsilon, pass)
    }

    /// x `[rows, width]` of any float type -> `[rows, width]` FP32.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::layer_norm(x, self.weight.val(), self.bias.val(), self.epsilon)
    }
}
