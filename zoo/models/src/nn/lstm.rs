//! LSTM layers over packed sequences.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::projection::projected_steps;
use super::{Biases, Init, Recurrent};
use crate::Pass;
use crate::ops::{self, Sequences};

/// State of an LSTM layer, FP32: `h` `[sequences, width of the output]`, `c` `[sequences, hidden]`.
#[derive(Debug, Clone)]
pub struct LstmState {
    /// Output state, as wide as the output.
    pub h: Tensor<2>,
    /// Cell state.
    pub c: Tensor<2>,
}

/// One layer of a long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates).
/// Gates are in PyTorch's order i, f, g, o.
#[derive(Module, Debug)]
pub struct Lstm {
    /// Shape `[4 hidden, in]`.
    pub weight_ih: Param<Tensor<2>>,
    /// Shape `[4 hidden, hidden]`; `[4 hidden, width]` with a projection.
    pub weight_hh: Param<Tensor<2>>,
    /// Shape `[4 hidden]`.
    pub bias_ih: Option<Param<Tensor<1>>>,
    /// Shape `[4 hidden]`. It is added to `bias_ih` and has the same gradient.
    pub bias_hh: Option<Param<Tensor<1>>>,
    /// Projection of the output, shape `[width, hidden]` (Sak et al. 2014; PyTorch's `proj_size`).
    pub weight_hr: Option<Param<Tensor<2>>>,
}

impl Lstm {
    /// Draws weights and biases uniformly from [-bound, bound) (PyTorch's bound is 1 /
    /// sqrt(hidden)). With `forget_bias` the biases of the forget gate are not drawn: the first is
    /// `forget_bias`, the second 0.
    pub fn new(
        init: &Init,
        input: usize,
        hidden: usize,
        biases: Biases,
        bound: f64,
        forget_bias: Option<f32>,
    ) -> Self {
        Self::sized(init, [input, hidden, hidden], biases, bound, forget_bias)
    }

    /// A layer whose output is projected. The widths are those of the input, of the cells and of
    /// the output; the bounds are those of the weights and of the projection. See [`Self::new`].
    pub fn projected(
        init: &Init,
        [input, hidden, width]: [usize; 3],
        biases: Biases,
        [bound, of_projection]: [f64; 2],
        forget_bias: Option<f32>,
    ) -> Self {
        let weight_hr = Some(init.at("weight_hr").uniform([width, hidden], of_projection));
        Self { weight_hr, ..Self::sized(init, [input, hidden, width], biases, bound, forget_bias) }
    }

    fn sized(
        init: &Init,
        [input, hidden, width]: [usize; 3],
        biases: Biases,
        bound: f64,
        forget_bias: Option<f32>,
    ) -> Self {
        let bias = |name: &str, drawn: bool, forget: Option<f32>| {
            let init = init.at(name);
            let start =
                if drawn { init.uniform([4 * hidden], bound) } else { init.constant([4 * hidden], 0.0) };
            match forget {
                None => start,
                Some(value) => start.map(|start| {
                    let parts = vec![
                        start.clone().narrow(0, 0, hidden),
                        Tensor::full([hidden], value, &start.device()),
                        start.clone().narrow(0, 2 * hidden, 2 * hidden),
                    ];
                    let tracked = start.device().is_autodiff();
                    let whole = Tensor::cat(parts, 0).detach();
                    if tracked { whole.require_grad() } else { whole }
                }),
            }
        };
        Self {
            weight_ih: init.at("weight_ih").uniform([4 * hidden, input], bound),
            weight_hh: init.at("weight_hh").uniform([4 * hidden, width], bound),
            bias_ih: biases.first().map(|drawn| bias("bias_ih", drawn, forget_bias)),
            bias_hh: biases.second().map(|drawn| bias("bias_hh", drawn, forget_bias.map(|_| 0.0))),
            weight_hr: None,
        }
    }

    /// The initial values of Keras: Glorot uniform weights, a recurrent weight with orthonormal
    /// columns, and one bias, which is 1 for the forget gate and 0 for the others.
    pub fn keras(init: &Init, input: usize, hidden: usize) -> Self {
        // The fan out counts all four gates.
        let bound = (6.0 / (input + 4 * hidden) as f64).sqrt();
        let lstm = Self::new(init, input, hidden, Biases::OneOfZeros, bound, Some(1.0));
        Self { weight_hh: init.at("weight_hh").orthonormal_columns([4 * hidden, hidden]), ..lstm }
    }

    /// Like [`Recurrent::forward`] without a state, with Keras 2's `hard_sigmoid` for the gates.
    pub fn forward_hard(&self, x: Tensor<2>, sequences: &Sequences, pass: &Pass) -> (Tensor<2>, LstmState) {
        let (out, (h, c)) = ops::hard_lstm(self.gates(x, pass), self.weight_hh.val(), sequences, pass);
        (out, LstmState { h, c })
    }

    /// The input's part of the gates, with every bias.
    fn gates(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let bias = match (&self.bias_ih, &self.bias_hh) {
            (Some(a), Some(b)) => Some(a.val() + b.val()),
            (a, b) => a.as_ref().or(b.as_ref()).map(Param::val),
        };
        ops::linear(x, self.weight_ih.val(), bias, pass)
    }
}

impl Recurrent for Lstm {
    type State = LstmState;

    fn forward(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        state: Option<LstmState>,
        pass: &Pass,
    ) -> (Tensor<2>, LstmState) {
        let gates = self.gates(x, pass);
        if let Some(projection) = &self.weight_hr {
            let weights = [self.weight_hh.val(), projection.val()];
            return projected_steps(gates, weights, sequences, state, pass);
        }
        let state = state.map(|state| (state.h, state.c));
        let (out, (h, c)) = ops::lstm(gates, self.weight_hh.val(), state, sequences, pass);
        (out, LstmState { h, c })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;

    #[test]
    fn the_forget_bias_stands_where_the_second_gate_is() {
        let init = Init::new(1, &Device::flex());
        let drawn = Lstm::new(&init, 2, 3, Biases::Two, 0.1, None);
        let set = Lstm::new(&init, 2, 3, Biases::Two, 0.1, Some(1.0));
        let values = |bias: &Option<Param<Tensor<1>>>| host_values(bias.as_ref().unwrap().val());
        for (drawn, set, forget) in [(&drawn.bias_ih, &set.bias_ih, 1.0), (&drawn.bias_hh, &set.bias_hh, 0.0)]
        {
            let (drawn, set) = (values(drawn), values(set));
            assert_eq!(set[3..6], [forget; 3]);
            assert_eq!((&set[..3], &set[6..]), (&drawn[..3], &drawn[6..]));
            assert!(drawn.iter().all(|x| x.abs() <= 0.1 && *x != 0.0));
        }
    }

    #[test]
    fn a_set_forget_bias_is_learnt() {
        let lstm = Lstm::new(&Init::new(1, &Device::flex().autodiff()), 2, 3, Biases::One, 0.1, Some(1.0));
        assert!(lstm.bias_ih.unwrap().val().is_require_grad());
    }
}
