//! Common interface of recurrent layers: whole sequences, single steps, both directions.

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::RecurrentBiases;

use super::{Gru, Init, Lstm, LstmState};
use crate::Pass;
use crate::ops::Sequences;

/// Number and initialisation of the bias vectors of a recurrent layer. Two vectors that are added
/// have the same gradient, but an optimizer moves both, so two vectors train differently from one.
/// (The second bias of a GRU is not merely added.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Biases {
    /// No bias.
    None,
    /// A bias of the input product.
    One,
    /// A bias of the input and of the recurrent product, as in PyTorch and cuDNN.
    Two,
    /// A bias of the input product, initialised to zero (TensorFlow).
    OneOfZeros,
    /// Both biases; the recurrent one is initialised to zero (NVIDIA's GNMT).
    SecondOfZeros,
    /// Both biases, initialised to zero (cuDNN in TensorFlow, JoeyNMT).
    TwoOfZeros,
}

impl From<RecurrentBiases> for Biases {
    fn from(biases: RecurrentBiases) -> Self {
        match biases {
            RecurrentBiases::OneOfZeros => Self::OneOfZeros,
            RecurrentBiases::SecondOfZeros => Self::SecondOfZeros,
            RecurrentBiases::Two => Self::Two,
            RecurrentBiases::TwoOfZeros => Self::TwoOfZeros,
        }
    }
}

impl Biases {
    /// Whether the input bias is drawn (or zero); `None` without an input bias.
    pub(super) fn first(self) -> Option<bool> {
        match self {
            Self::None => None,
            Self::OneOfZeros | Self::TwoOfZeros => Some(false),
            Self::One | Self::Two | Self::SecondOfZeros => Some(true),
        }
    }

    /// Whether the recurrent bias is drawn (or zero); `None` without a recurrent bias.
    pub(super) fn second(self) -> Option<bool> {
        match self {
            Self::None | Self::One | Self::OneOfZeros => None,
            Self::Two => Some(true),
            Self::SecondOfZeros | Self::TwoOfZeros => Some(false),
        }
    }
}

/// A layer that processes sequences step by step.
pub trait Recurrent {
    /// State between two calls.
    type State;

    /// x `[rows, in]` -> outputs `[rows, hidden]` in the compute type, and the last state of each
    /// sequence. Without a state, sequences start from zeros.
    fn forward(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        state: Option<Self::State>,
        pass: &Pass,
    ) -> (Tensor<2>, Self::State);

    /// One step of every sequence, for decoders: x `[sequences, in]`.
    fn step(&self, x: Tensor<2>, state: Option<Self::State>, pass: &Pass) -> (Tensor<2>, Self::State) {
        let each = Sequences::new(&vec![1; x.dims()[0]]);
        self.forward(x, &each, state, pass)
    }
}

/// A layer of either kind.
#[derive(Module, Debug)]
pub enum RecurrentLayer {
    /// Long short-term memory.
    Lstm(Lstm),
    /// Gated recurrent units.
    Gru(Gru),
}

/// State of a recurrent layer: `[sequences, hidden]` each, FP32.
#[derive(Debug, Clone)]
pub struct LayerState {
    /// Output state.
    pub h: Tensor<2>,
    /// Cell state, for LSTM layers.
    pub c: Option<Tensor<2>>,
}

impl LayerState {
    /// Applies a function to each tensor, such as a selection of sequences.
    pub fn map(self, mut of: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        Self { h: of(self.h), c: self.c.map(of) }
    }
}

impl Recurrent for RecurrentLayer {
    type State = LayerState;

    fn forward(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        state: Option<LayerState>,
        pass: &Pass,
    ) -> (Tensor<2>, LayerState) {
        match self {
            Self::Lstm(layer) => {
                let state = state.and_then(|state| Some(LstmState { h: state.h, c: state.c? }));
                let (out, LstmState { h, c }) = layer.forward(x, sequences, state, pass);
                (out, LayerState { h, c: Some(c) })
            }
            Self::Gru(layer) => {
                let (out, h) = layer.forward(x, sequences, state.map(|state| state.h), pass);
                (out, LayerState { h, c: None })
            }
        }
    }
}

/// Two layers that read the same rows: one from the first to the last of each sequence, one from
/// the last to the first.
#[derive(Module, Debug)]
pub struct Bidirectional<L: Module> {
    /// Reads from the first row to the last.
    pub forward: L,
    /// Reads from the last row to the first.
    pub backward: L,
}

impl<L: Module + Recurrent> Bidirectional<L> {
    /// Builds both layers with `layer`.
    pub fn new(init: &Init, layer: impl Fn(&Init) -> L) -> Self {
        Self { forward: layer(&init.at("forward")), backward: layer(&init.at("backward")) }
    }

    /// x `[rows, in]` -> outputs of both directions side by side `[rows, 2 hidden]`, and the last
    /// state of each direction. The last state of the backward layer is that of the first row.
    pub fn forward(
        &self,
        x: Tensor<2>,
        sequences: &Sequences,
        state: Option<[L::State; 2]>,
        pass: &Pass,
    ) -> (Tensor<2>, [L::State; 2]) {
        let [ahead, back] = state.map_or([None, None], |state| state.map(Some));
        let (there, ahead) = self.forward.forward(x.clone(), sequences, ahead, pass);
        let (again, back) = self.backward.forward(x, &sequences.reversed(), back, pass);
        (Tensor::cat(vec![there, again], 1), [ahead, back])
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;
    use crate::random::Key;

    const HIDDEN: usize = 5;

    fn rows(count: usize) -> Tensor<2> {
        let key = Key::new(3, 1, 0);
        let values: Vec<f32> = (0..count * 4).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, [count, 4]), &Device::flex())
    }

    fn lstm(init: &Init) -> Lstm {
        Lstm::new(init, 4, HIDDEN, Biases::Two, 0.5, None)
    }

    fn gru(init: &Init) -> Gru {
        Gru::new(init, 4, HIDDEN, Biases::Two, 0.5)
    }

    /// Runs two sequences of three rows at once and step by step. The products have other shapes,
    /// but their sums have the same order.
    fn steps_are_the_whole<L: Recurrent>(layer: &L) {
        let pass = Pass::evaluation(Compute::FP32);
        let x = rows(6);
        let whole = host_values(layer.forward(x.clone(), &Sequences::new(&[3, 3]), None, &pass).0);
        let mut state = None;
        for step in 0..3 {
            let now = Tensor::cat(vec![x.clone().narrow(0, step, 1), x.clone().narrow(0, 3 + step, 1)], 0);
            let (out, next) = layer.step(now, state, &pass);
            let expected: Vec<f32> =
                [step, 3 + step].iter().flat_map(|row| &whole[row * HIDDEN..][..HIDDEN]).copied().collect();
            assert_eq!(host_values(out), expected);
            state = Some(next);
        }
    }

    #[test]
    fn steps_are_those_of_the_whole() {
        let init = Init::new(1, &Device::flex());
        steps_are_the_whole(&lstm(&init));
        steps_are_the_whole(&gru(&init));
    }

    /// Runs three rows and one row in both directions, and compares with rows reversed by hand.
    fn backward_reads_from_the_end<L: Module + Recurrent>(layer: impl Fn(&Init) -> L) {
        let pass = Pass::evaluation(Compute::FP32);
        let both = Bidirectional::new(&Init::new(1, &Device::flex()), layer);
        let x = rows(4);
        let sequences = Sequences::new(&[3, 1]);
        let turned =
            |x: Tensor<2>| Tensor::cat([2, 1, 0, 3].map(|row| x.clone().narrow(0, row, 1)).into(), 0);
        let (out, _) = both.forward(x.clone(), &sequences, None, &pass);
        let ahead = both.forward.forward(x.clone(), &sequences, None, &pass).0;
        let back = turned(both.backward.forward(turned(x), &sequences, None, &pass).0);
        assert_eq!(host_values(out.clone().narrow(1, 0, HIDDEN)), host_values(ahead));
        assert_eq!(host_values(out.narrow(1, HIDDEN, HIDDEN)), host_values(back));
    }

    #[test]
    fn one_direction_reads_from_the_end() {
        backward_reads_from_the_end(lstm);
        backward_reads_from_the_end(gru);
    }

    #[test]
    fn directions_start_unlike() {
        let both = Bidirectional::new(&Init::new(1, &Device::flex()), lstm);
        assert_ne!(host_values(both.forward.weight_ih.val()), host_values(both.backward.weight_ih.val()));
    }
}
