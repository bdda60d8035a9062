//! Comparison of synthesizers by the kinds of their parts.

use zoo_recipes::tasks::speech_synthesis::SpectrogramLossSpec;
use zoo_recipes::{DecoderSpec, EncoderSpec, FrameConvolutionsSpec, ModelSpec, SynthesisInit};

use crate::kinds::biases;

/// The model with sizes, rates and initialisers set to fixed values.
pub fn kinds(model: &ModelSpec) -> ModelSpec {
    let mut kinds = model.clone();
    if let EncoderSpec::Tacotron(e) = &mut kinds.encoder {
        (e.width, e.units, e.biases, e.init) = (1, 1, biases(e.biases), SynthesisInit::Nvidia);
        sizes(&mut e.convolutions);
    }
    if let DecoderSpec::Tacotron(d) = &mut kinds.decoder {
        (d.prenet.units, d.prenet.dropout) = (vec![1; d.prenet.units.len()], 0.0);
        (d.units, d.dropout, d.forget_bias) = (1, 0.0, None);
        (d.biases, d.init) = (biases(d.biases), SynthesisInit::Nvidia);
        (d.attention.units, d.attention.filters) = (1, 1);
        d.attention.kernel = parity(d.attention.kernel);
        sizes(&mut d.postnet);
        if let Some(magnitudes) = &mut d.magnitudes {
            magnitudes.channels = vec![1; magnitudes.channels.len()];
            magnitudes.kernel = parity(magnitudes.kernel);
            (magnitudes.norm.epsilon, magnitudes.norm.momentum) = (1.0, 0.0);
        }
    }
    kinds
}

/// Sets the sizes and rates of convolutions over frames to fixed values.
fn sizes(spec: &mut FrameConvolutionsSpec) {
    (spec.layers, spec.channels, spec.dropout) = (1, 1, 0.0);
    spec.kernel = parity(spec.kernel);
    (spec.norm.epsilon, spec.norm.momentum) = (1.0, 0.0);
}

/// 1 for odd kernels and 2 for even kernels, which have no centre.
fn parity(kernel: u32) -> u32 {
    if kernel.is_multiple_of(2) { 2 } else { 1 }
}

/// Whether two losses are equal except for the numbers of the attention guide.
pub fn same_loss(one: &SpectrogramLossSpec, other: &SpectrogramLossSpec) -> bool {
    let kinds = |SpectrogramLossSpec::Spectrogram { padding, guide }: &SpectrogramLossSpec| {
        (*padding, guide.is_some())
    };
    kinds(one) == kinds(other)
}
