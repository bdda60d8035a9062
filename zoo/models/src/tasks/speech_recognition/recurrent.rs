//! LSTM and GRU layers over packed frames (without padding).

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::RecurrentCell;
use zoo_recipes::tasks::speech_recognition::RecurrentSpec;

use super::{Frames, Shape};
use crate::Pass;
use crate::nn::{Biases, Bidirectional, Gru, Init, Lstm, Recurrent};
use crate::ops::{self, Sequences};

/// A stack of recurrent layers. Each reads all outputs of the layer before it.
#[derive(Module, Debug)]
pub struct RecurrentStack {
    layers: Vec<RecurrentLayer>,
    #[module(skip)]
    dropout: f64,
}

#[derive(Module, Debug)]
enum RecurrentLayer {
    Lstm(Lstm),
    Gru(Gru),
    LstmBothWays(Bidirectional<Lstm>),
    GruBothWays(Bidirectional<Gru>),
}

impl RecurrentStack {
    pub fn new(init: &Init, spec: &RecurrentSpec, shape: &mut Shape) -> Self {
        let hidden = spec.hidden as usize;
        let biases = match spec.biases {
            0 => Biases::None,
            1 => Biases::One,
            _ => Biases::Two,
        };
        let bound = (hidden as f64).powf(-0.5);
        let layer = |i: u32| {
            let at = init.at("layers").at(i);
            let input = shape.flat();
            shape.becomes(if spec.bidirectional { 2 * hidden } else { hidden });
            let lstm = |init: &Init| Lstm::new(init, input, hidden, biases, bound, None);
            let gru = |init: &Init| Gru::new(init, input, hidden, biases, bound);
            match (spec.cell, spec.bidirectional) {
                (RecurrentCell::Lstm, false) => RecurrentLayer::Lstm(lstm(&at)),
                (RecurrentCell::Gru, false) => RecurrentLayer::Gru(gru(&at)),
                (RecurrentCell::Lstm, true) => RecurrentLayer::LstmBothWays(Bidirectional::new(&at, lstm)),
                (RecurrentCell::Gru, true) => RecurrentLayer::GruBothWays(Bidirectional::new(&at, gru)),
            }
        };
        Self { layers: (0..spec.layers).map(layer).collect(), dropout: spec.dropout }
    }

    pub fn forward(&self, frames: Frames, pass: &mut Pass) -> Frames {
        let lengths: Vec<u32> = frames.lengths.iter().map(|&length| length as u32).collect();
        let sequences = Sequences::new(&lengths);
        let mut x = frames.packed();
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                x = ops::dropout(x, self.dropout, pass);
            }
            x = layer.forward(x, &sequences, pass);
        }
        frames.unpacked(x)
    }
}

impl RecurrentLayer {
    fn forward(&self, x: Tensor<2>, sequences: &Sequences, pass: &Pass) -> Tensor<2> {
        match self {
            Self::Lstm(layer) => layer.forward(x, sequences, None, pass).0,
            Self::Gru(layer) => layer.forward(x, sequences, None, pass).0,
            Self::LstmBothWays(layer) => layer.forward(x, sequences, None, pass).0,
            Self::GruBothWays(layer) => layer.forward(x, sequences, None, pass).0,
        }
    }
}
