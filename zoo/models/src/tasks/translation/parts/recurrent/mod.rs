//! Recurrent encoders and decoders with attention (Bahdanau et al. 2015; Luong et al. 2015; Wu et
//! al. 2016).
//!
//! Layers compute in the compute type of the pass. They exchange FP32 tensors, which hold values
//! rounded to FP16 in an FP16 pass. All sequences of a batch are packed.

mod attention;
mod decoder;
mod encoder;

pub use decoder::RecurrentDecoder;
pub use encoder::RecurrentEncoder;

use burn::module::Param;
use burn::tensor::Tensor;
use zoo_recipes::tasks::translation::RecurrentInit;
use zoo_recipes::{RecurrentBiases, RecurrentCell};

use crate::nn::{Gru, Init, LayerState, Lstm, Recurrent, RecurrentLayer};
use crate::ops::{self, Sequences};
use crate::precision::to_f32;
use crate::{Cost, Pass};

/// Settings that the layers of a stack share.
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
        // Bound of the input matrix of one gate.
        let of_gate = |input: usize| (6.0 / (input + self.units) as f64).sqrt();
        let bound = match self.init {
            RecurrentInit::Uniform { bound } => bound,
            RecurrentInit::XavierUniform => (6.0 / (input + self.units + gates * self.units) as f64).sqrt(),
            RecurrentInit::XavierUniformOfGates => of_gate(input),
            RecurrentInit::Torch => (self.units as f64).powf(-0.5),
        };
        let biases = self.biases.into();
        let mut layer = match self.cell {
            RecurrentCell::Lstm => {
                let forget = self.forget_bias.map(|bias| bias as f32);
                RecurrentLayer::Lstm(Lstm::new(init, input, self.units, biases, bound, forget))
            }
            RecurrentCell::Gru => RecurrentLayer::Gru(Gru::new(init, input, self.units, biases, bound)),
        };
        if self.init == RecurrentInit::XavierUniformOfGates {
            let shape = [gates * self.units, self.units];
            *recurrent_weight(&mut layer) = init.at("weight_hh").uniform(shape, of_gate(self.units));
        }
        layer
    }
}

/// Shape `[gates x units, units]`.
fn recurrent_weight(layer: &mut RecurrentLayer) -> &mut Param<Tensor<2>> {
    match layer {
        RecurrentLayer::Lstm(layer) => &mut layer.weight_hh,
        RecurrentLayer::Gru(layer) => &mut layer.weight_hh,
    }
}

fn cost_of_layer(
    of_source: bool,
    cell: RecurrentCell,
    biases: RecurrentBiases,
    [input, units]: [u64; 2],
) -> Cost {
    let gates = match cell {
        RecurrentCell::Lstm => 4 * units,
        RecurrentCell::Gru => 3 * units,
    };
    let biases = match biases {
        RecurrentBiases::OneOfZeros => 1,
        RecurrentBiases::SecondOfZeros | RecurrentBiases::Two | RecurrentBiases::TwoOfZeros => 2,
    };
    Cost::product(of_source, [input + units, gates]) + Cost::held(biases * gates)
}

/// Dropout and residual connections between the layers of a stack.
#[derive(Debug, Clone, Copy)]
struct Between {
    /// Dropout of each layer's input.
    dropout: f64,
    /// Index of the first layer whose input is added to its output.
    residual_from: usize,
}

impl Between {
    fn new(dropout: f64, residual_from: Option<u32>) -> Self {
        Self { dropout, residual_from: residual_from.map_or(usize::MAX, |layer| layer as usize - 1) }
    }

    /// Runs layer `i` on x, with `beside` concatenated to it. The residual sum uses x before
    /// dropout.
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
        (if i >= self.residual_from { ops::stored(x + out, pass.compute) } else { out }, state)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::Compute;

    /// NVIDIA's GNMT: dropout applies to the input and the context concatenated to it, and the
    /// residual sum uses the input before dropout.
    #[test]
    fn what_enters_a_layer_is_dropped_as_a_whole_and_the_sum_is_of_what_was_not() {
        let kind = Kind {
            cell: RecurrentCell::Lstm,
            units: 6,
            biases: RecurrentBiases::SecondOfZeros,
            forget_bias: None,
            init: RecurrentInit::Uniform { bound: 0.5 },
        };
        let device = Device::flex();
        let layer = kind.layer(&Init::new(1, &device), 10);
        let x = Init::new(2, &device).at("x").uniform([4, 6], 1.0).val();
        let context = Init::new(3, &device).at("context").uniform([4, 4], 1.0).val();
        let sequences = Sequences::new(&[4]);
        let mut pass = Pass::training(Compute::FP32, 1, 1);
        let both = ops::dropout(Tensor::cat(vec![x.clone(), context.clone()], 1), 0.5, &mut pass.clone());
        let dropped = host_values(both.clone()).iter().filter(|value| **value == 0.0).count();
        assert!((5..35).contains(&dropped), "{dropped} of 40");
        let out =
            |x: Tensor<2>| to_f32(layer.forward(x, &sequences, None, &Pass::evaluation(Compute::FP32)).0);
        let due = x.clone() + out(both);
        let between = Between::new(0.5, Some(3));
        let beside = || Some(context.clone());
        let (found, _) =
            between.through((2, &layer), x.clone(), beside(), (&sequences, None), &mut pass.clone());
        assert_eq!(host_values(found), host_values(due.clone()));
        let (below, _) = between.through((1, &layer), x.clone(), beside(), (&sequences, None), &mut pass);
        assert_eq!(host_values(below + x), host_values(due));
    }

    #[test]
    fn each_gates_matrices_are_xaviers_by_themselves() {
        let kind = Kind {
            cell: RecurrentCell::Lstm,
            units: 40,
            biases: RecurrentBiases::TwoOfZeros,
            forget_bias: Some(2.0),
            init: RecurrentInit::XavierUniformOfGates,
        };
        let RecurrentLayer::Lstm(layer) = kind.layer(&Init::new(1, &Device::flex()), 110) else {
            panic!("an LSTM")
        };
        let largest =
            |x: Tensor<2>| host_values(x).into_iter().fold(0.0, |most: f32, value| most.max(value.abs()));
        for (weight, bound) in [(&layer.weight_ih, 0.2), (&layer.weight_hh, (6.0_f32 / 80.0).sqrt())] {
            let largest = largest(weight.val());
            assert!(largest <= bound && largest > 0.99 * bound, "{largest} of {bound}");
        }
        let sum = layer.bias_ih.unwrap().val() + layer.bias_hh.unwrap().val();
        let due: Vec<f32> = (0..160).map(|i| if (40..80).contains(&i) { 2.0 } else { 0.0 }).collect();
        assert_eq!(host_values(sum), due);
    }
}
