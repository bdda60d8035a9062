//! Recurrent encoders and decoders with attention (Bahdanau et al. 2015; Luong et al. 2015; Wu et al. 2016).
//!
//! What layers hand each other is FP32; layers compute in the pass's type. All sequences of a batch are packed.

mod attention;
mod decoder;
mod encoder;

pub use decoder::{RecurrentCache, RecurrentDecoder};
pub use encoder::RecurrentEncoder;

use burn::tensor::Tensor;
use zoo_recipes::{RecurrentBiases, RecurrentCell, RecurrentInit};

use crate::contract::Pass;
use crate::nn::{Biases, Gru, Init, LayerState, Lstm, Recurrent, RecurrentLayer};
use crate::ops::{self, Sequences};
use crate::precision::to_f32;

/// What the layers of a stack have in common.
#[derive(Debug, Clone, Copy)]
struct Kind {
    cell: RecurrentCell,
    units: usize,
    biases: RecurrentBiases,
    forget_bias: Option<f64>,
    init: RecurrentInit,
}

impl Kind {
    fn layer(&self, init: &Init, input: usize) -> RecurrentLayer {
        let gates = match self.cell {
            RecurrentCell::Lstm => 4,
            RecurrentCell::Gru => 3,
        };
        let bound = match self.init {
            RecurrentInit::Uniform { bound } => bound,
            RecurrentInit::XavierUniform => (6.0 / (input + self.units + gates * self.units) as f64).sqrt(),
            RecurrentInit::Torch => (self.units as f64).powf(-0.5),
        };
        let biases = self.biases.into();
        match self.cell {
            RecurrentCell::Lstm => {
                let forget = self.forget_bias.map(|bias| bias as f32);
                RecurrentLayer::Lstm(Lstm::new(init, input, self.units, biases, bound, forget))
            }
            RecurrentCell::Gru => RecurrentLayer::Gru(Gru::new(init, input, self.units, biases, bound)),
        }
    }
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

/// What stands between the layers of a stack.
#[derive(Debug, Clone, Copy)]
struct Between {
    /// Of each layer's input.
    dropout: f64,
    /// The first layer, counted from 0, whose input is added to its output.
    residual_from: usize,
}

impl Between {
    fn new(dropout: f64, residual_from: Option<u32>) -> Self {
        Self { dropout, residual_from: residual_from.map_or(usize::MAX, |layer| layer as usize - 1) }
    }

    /// Layer `i` on x, `beside` what else it gets. The sum is of x as it came, not dropped.
    fn through(
        &self,
        (i, layer): (usize, &RecurrentLayer),
        x: Tensor<2>,
        beside: Option<Tensor<2>>,
        (sequences, state): (&Sequences, Option<LayerState>),
        pass: &mut Pass,
    ) -> (Tensor<2>, LayerState) {
        let input = match beside {
            Some(beside) => Tensor::cat(vec![x.clone(), beside], 1),
            None => x.clone(),
        };
        let input = ops::dropout(input, self.dropout, pass);
        let (out, state) = layer.forward(input, sequences, state, pass);
        let out = to_f32(out);
        (if i >= self.residual_from { x + out } else { out }, state)
    }
}
