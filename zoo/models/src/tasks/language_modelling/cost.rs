//! Number of parameters and operations of a language model, computed from its spec without building
//! it.

use zoo_recipes::RecurrentBiases;
use zoo_recipes::tasks::language_modelling::LanguageModelSpec;

use crate::Cost;

/// Counts the parameters and operations of a model of `units` units. Operations
/// ([`Cost::target_token`]) are the multiply-adds of an input, without those of attention between
/// inputs.
pub fn cost(spec: &LanguageModelSpec, units: u64) -> Cost {
    match spec {
        LanguageModelSpec::Lstm(spec) => {
            let [width, hidden, output] = [spec.width, spec.units, spec.output()].map(u64::from);
            let biases = match spec.biases {
                RecurrentBiases::OneOfZeros => 1,
                RecurrentBiases::SecondOfZeros | RecurrentBiases::TwoOfZeros | RecurrentBiases::Two => 2,
            };
            let layer = |at: u32| {
                let input = if at == 0 { width } else { output };
                let projection = if spec.projection.is_some() { output } else { 0 };
                Cost::product(false, [input + output, 4 * hidden])
                    + Cost::product(false, [hidden, projection])
                    + Cost::held(biases * 4 * hidden)
            };
            // A tied softmax multiplies with the embedding, whose parameters count once.
            let table = if spec.tied { 0 } else { units * width };
            let softmax = Cost::product(false, [output, units]) + Cost::held(units);
            (0..spec.layers).map(layer).sum::<Cost>() + softmax + Cost::held(table)
        }
        LanguageModelSpec::LayerNormLstm(spec) => {
            let layer = |at: u32| {
                let [input, hidden] = spec.layer(at).map(u64::from);
                // Five norms have two vectors each.
                Cost::product(false, [input + hidden, 4 * hidden]) + Cost::held(10 * hidden)
            };
            let softmax = Cost::product(false, [u64::from(spec.width), units]) + Cost::held(units);
            (0..spec.layers).map(layer).sum::<Cost>() + softmax
        }
        LanguageModelSpec::Gpt(spec) => {
            let width = u64::from(spec.width);
            let block = Cost::product(false, [width, 12 * width]) + Cost::held(2 * width);
            let tables = Cost::product(false, [width, units]) + Cost::held(u64::from(spec.context) * width);
            block.times(u64::from(spec.layers)) + tables + Cost::held(width)
        }
    }
}
