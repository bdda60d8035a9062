//! GRU layers over packed sequences.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{Biases, Init, Recurrent};
use crate::Pass;
use crate::ops::{self, Sequences};

/// One layer of gated recurrent units (Cho et al. 2014). The reset gate is applied after the
/// recurrent product, as in PyTorch and cuDNN. Gates are in PyTorch's order r, z, n. A state is
/// `[sequences, hidden]`, FP32.
#[derive(Module, Debug)]
pub struct Gru {
    /// Shape `[3 hidden, in]`.
    pub weight_ih: Param<Tensor<2>>,
    /// Shape `[3 hidden, hidden]`.
    pub weight_hh: Param<Tensor<2>>,
    /// Shape `[3 hidden]`.
    pub bias_ih: Option<Param<Tensor<1>>>,
    /// Shape `[3 hidden]`. The reset gate also scales the last third.
    pub bias_hh: Option<Param<Tensor<1>>>,
}

impl Gru {
    /// Draws weights and biases uniformly from [-bound, bound) (PyTorch's bound is 1 /
    /// sqrt(hidden)).
    pub fn new(init: &Init, input: usize, hidden: usize, biases: Biases, bound: f64) -> Self {
        let bias = |name: &str, drawn: bool| match drawn {
            true => init.at(name).uniform([3 * hidden], bound),
            false => init.at(name).constant([3 * hidden], 0.0),
        };
        Self {
            weight_ih: init.at("weight_ih").uniform([3 * hidden, input], bound),
            weight_hh: init.at("weight_hh").uniform([3 * hidden, hidden], bound),
            bias_ih: biases.first().map(|drawn| bias("bias_ih", drawn)),
            bias_hh: biases.second().map(|drawn| bias("bias_hh", drawn)),
        }
    }
}

impl Recurrent for Gru {
    type State = Tensor<2>;

    fn forward(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        state: Option<Tensor<2>>,
        pass: &Pass,
    ) -> (Tensor<2>, Tensor<2>) {
        let gates = ops::linear(x, self.weight_ih.val(), self.bias_ih.as_ref().map(Param::val), pass);
        let bias = self.bias_hh.as_ref().map(Param::val);
        ops::gru(gates, self.weight_hh.val(), bias, state, sequences, pass)
    }
}
