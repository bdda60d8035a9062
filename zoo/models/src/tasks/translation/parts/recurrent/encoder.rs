//! Recurrent encoder.

use burn::module::Module;
use burn::tensor::Tensor;
use zoo_recipes::tasks::translation::{Directions, RecurrentEncoderSpec, TranslationModelSpec};

use super::{Between, Kind, cost_of_layer};
use crate::nn::{Init, RecurrentLayer};
use crate::ops::Sequences;
use crate::tasks::translation::{Memory, TokenEncoder};
use crate::{Cost, Pass};

/// A stack that reads from the first token to the last, and layers that read from the last to the
/// first.
#[derive(Module, Debug)]
pub struct RecurrentEncoder {
    pub layers: Vec<RecurrentLayer>,
    /// Layers that read from the end: one layer parallel to the first, or a stack parallel to the
    /// whole stack.
    pub backward: Vec<RecurrentLayer>,
    #[module(skip)]
    directions: Directions,
    #[module(skip)]
    between: Between,
    #[module(skip)]
    input_dropout: f64,
}

impl TokenEncoder for RecurrentEncoder {
    type Spec = RecurrentEncoderSpec;

    fn new(init: &Init, spec: &RecurrentEncoderSpec, model: &TranslationModelSpec) -> Self {
        let width = model.width as usize;
        let (layers, units) = (spec.layers as usize, spec.units as usize);
        let kind = Kind {
            cell: spec.cell,
            units,
            biases: spec.biases,
            forget_bias: spec.forget_bias,
            init: spec.init,
        };
        let both = spec.directions == Directions::FirstLayerBoth;
        let input = |i: usize| match i {
            0 => width,
            1 if both => 2 * units,
            _ => units,
        };
        let stack = |name: &str, layers: usize| {
            let at = init.at(name);
            (0..layers).map(|i| kind.layer(&at.at(i), input(i))).collect()
        };
        let backward = match spec.directions {
            Directions::Forward => 0,
            Directions::FirstLayerBoth => 1,
            Directions::TwoStacks => layers,
        };
        Self {
            layers: stack("layers", layers),
            backward: stack("backward", backward),
            directions: spec.directions,
            between: Between::new(spec.dropout, spec.residual_from),
            input_dropout: spec.input_dropout.unwrap_or(spec.dropout),
        }
    }

    /// The memory is the output of the last layer.
    fn forward(&self, x: Tensor<2>, lengths: &[u32], pass: &mut Pass) -> Memory {
        let ahead = Sequences::new(lengths);
        let back = ahead.reversed();
        let rows = match self.directions {
            Directions::Forward => self.stack(&self.layers, 0, x, &ahead, pass),
            Directions::FirstLayerBoth => {
                let (first, rest) = self.layers.split_at(1);
                let there = self.stack(first, 0, x.clone(), &ahead, pass);
                let again = self.stack(&self.backward, 0, x, &back, pass);
                self.stack(rest, 1, Tensor::cat(vec![there, again], 1), &ahead, pass)
            }
            Directions::TwoStacks => {
                let there = self.stack(&self.layers, 0, x.clone(), &ahead, pass);
                let again = self.stack(&self.backward, 0, x, &back, pass);
                Tensor::cat(vec![there, again], 1)
            }
        };
        Memory::new(rows, lengths)
    }

    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost {
        let width = u64::from(model.width);
        let (units, layers) = (u64::from(spec.units), u64::from(spec.layers));
        let layer = |input| cost_of_layer(true, spec.cell, spec.biases, [input, units]);
        let upper = |input, layers| layer(input) + layer(units).times(layers);
        match spec.directions {
            Directions::Forward => upper(width, layers - 1),
            Directions::TwoStacks => upper(width, layers - 1).times(2),
            Directions::FirstLayerBoth if layers == 1 => layer(width).times(2),
            Directions::FirstLayerBoth => layer(width).times(2) + upper(2 * units, layers - 2),
        }
    }
}

impl RecurrentEncoder {
    /// Runs the layers from number `first` of the stack on.
    fn stack(
        &self,
        layers: &[RecurrentLayer],
        first: usize,
        mut x: Tensor<2>,
        sequences: &Sequences,
        pass: &mut Pass,
    ) -> Tensor<2> {
        for (i, layer) in layers.iter().enumerate() {
            let dropout = if first + i == 0 { self.input_dropout } else { self.between.dropout };
            let between = Between { dropout, ..self.between };
            x = between.through((first + i, layer), x, None, (sequences, None), pass).0;
        }
        x
    }
}
