//! How affine maps start.

use zoo_recipes::SynthesisInit;

use crate::nn::{Init, Linear};

/// Xavier uniform times a gain; biases as PyTorch draws those that nobody sets, or 0.
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
