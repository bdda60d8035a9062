//! Initialisation of linear layers.

use zoo_recipes::tasks::speech_synthesis::SynthesisInit;

use crate::nn::{Init, Linear};

/// Weights: Xavier uniform times a gain. Biases: PyTorch's default initialisation, or 0.
pub fn linear(
    init: &Init,
    input: usize,
    output: usize,
    bias: bool,
    gain: f64,
    from: SynthesisInit,
) -> Linear {
    let mut linear = Linear::new(init, input, output, bias, gain);
    if from == SynthesisInit::Nvidia {
        let bound = (input as f64).powf(-0.5);
        linear.bias = linear.bias.map(|_| init.at("bias").uniform([output], bound));
    }
    linear
}
