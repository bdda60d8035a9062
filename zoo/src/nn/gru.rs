//! GRU layers over packed sequences.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{Biases, Init};
use crate::contract::Pass;
use crate::ops::{self, Sequences};

/// One layer of gated recurrent units (Cho et al. 2014), with the reset gate behind the recurrent product as in PyTorch and cuDNN.
/// Gates stand in PyTorch's order r, z, n. A state is [sequences, hidden], FP32.
#[derive(Module, Debug)]
pub struct Gru {
    /// [3 hidden, in]
    pub weight_ih: Param<Tensor<2>>,
    /// [3 hidden, hidden]
    pub weight_hh: Param<Tensor<2>>,
    /// [3 hidden]
    pub bias_ih: Option<Param<Tensor<1>>>,
    /// [3 hidden]; the last third is inside of what the reset gate scales.
    pub bias_hh: Option<Param<Tensor<1>>>,
}

impl Gru {
    /// Weights and biases uniform in [-bound, bound) (PyTorch's bound is 1 / sqrt(hidden)).
    pub fn new(init: &Init, input: usize, hidden: usize, biases: Biases, bound: f64) -> Self {
        let bias = |name: &str| init.at(name).uniform([3 * hidden], bound);
        Self {
            weight_ih: init.at("weight_ih").uniform([3 * hidden, input], bound),
            weight_hh: init.at("weight_hh").uniform([3 * hidden, hidden], bound),
            bias_ih: (biases != Biases::None).then(|| bias("bias_ih")),
            bias_hh: (biases == Biases::Two).then(|| bias("bias_hh")),
        }
    }

    /// x [rows, in] -> outputs [rows, hidden] in the compute type, and the last state of each sequence. Without a state
    /// sequences begin at zero.
    pub fn forward(
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

    /// One step of every sequence, for decoders: x [sequences, in].
    pub fn step(&self, x: Tensor<2>, state: Option<Tensor<2>>, pass: &Pass) -> (Tensor<2>, Tensor<2>) {
        let each = Sequences::new(&vec![1; x.dims()[0]]);
        self.forward(x, &each, state, pass)
    }
}

/// Two layers that read the same rows, one from the first to the last of each sequence, one from the last to the first.
#[derive(Module, Debug)]
pub struct BiGru {
    /// First to last.
    pub forward: Gru,
    /// Last to first.
    pub backward: Gru,
}

impl BiGru {
    /// Each with so many hidden units; see [`Gru::new`].
    pub fn new(init: &Init, input: usize, hidden: usize, biases: Biases, bound: f64) -> Self {
        let layer = |name: &str| Gru::new(&init.at(name), input, hidden, biases, bound);
        Self { forward: layer("forward"), backward: layer("backward") }
    }

    /// x [rows, in] -> outputs of both directions side by side [rows, 2 hidden], and the last state of each: the backward one's
    /// is that of the first row.
    pub fn forward(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        state: Option<[Tensor<2>; 2]>,
        pass: &Pass,
    ) -> (Tensor<2>, [Tensor<2>; 2]) {
        let [ahead, back] = state.map_or([None, None], |state| state.map(Some));
        let (there, ahead) = self.forward.forward(x.clone(), sequences, ahead, pass);
        let (again, back) = self.backward.forward(x, &sequences.reversed(), back, pass);
        (Tensor::cat(vec![there, again], 1), [ahead, back])
    }
}
