//! The position-wise feed-forward sub-layer (Vaswani et al. 2017, section 3.3).

use burn::module::Module;
use burn::tensor::Tensor;

use super::{Init, Linear};
use crate::Pass;
use crate::ops;

/// Linear, ReLU, dropout, linear. Both linear layers have a bias.
#[derive(Module, Debug)]
pub struct FeedForward {
    /// Shape `[inner, width]`.
    pub input: Linear,
    /// Shape `[width, inner]`.
    pub output: Linear,
    #[module(skip)]
    dropout: f64,
}

impl FeedForward {
    /// Builds the sub-layer. `dropout` is the drop rate after the activation.
    pub fn new(init: &Init, width: usize, inner: usize, dropout: f64) -> Self {
        Self {
            input: Linear::new(&init.at("input"), width, inner, true, 1.0),
            output: Linear::new(&init.at("output"), inner, width, true, 1.0),
            dropout,
        }
    }

    /// x `[rows, width]` -> `[rows, width]`, in the compute type.
    pub fn forward(&self, x: Tensor<2>, pass: &mut Pass) -> Tensor<2> {
        let inner = ops::relu_dropout(self.input.forward(x, pass), self.dropout, pass);
        self.output.forward(inner, pass)
    }
}
