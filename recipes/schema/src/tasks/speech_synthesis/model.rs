//! The `[model]` block of a speech synthesis recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FrameConvolutionsSpec, SynthesisInit, TacotronDecoderSpec, TacotronEncoderSpec};

/// The `[model]` block: an encoder of symbols and a decoder of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SynthesisModelSpec {
    /// The encoder, which reads symbols.
    pub encoder: SynthesisEncoderSpec,
    /// The decoder, which writes frames.
    pub decoder: SynthesisDecoderSpec,
}

/// An encoder of symbols.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SynthesisEncoderSpec {
    /// Tacotron 2's encoder, which reads the input symbols of speech synthesis.
    Tacotron(TacotronEncoderSpec),
}

/// A decoder of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SynthesisDecoderSpec {
    /// Tacotron 2's decoder, which writes frames of speech.
    Tacotron(TacotronDecoderSpec),
}

impl SynthesisModelSpec {
    /// The encoder and the decoder.
    pub fn parts(&self) -> (&TacotronEncoderSpec, &TacotronDecoderSpec) {
        let (SynthesisEncoderSpec::Tacotron(encoder), SynthesisDecoderSpec::Tacotron(decoder)) =
            (&self.encoder, &self.decoder);
        (encoder, decoder)
    }

    /// The model with sizes, rates and initialisers set to fixed values. It is equal for two models
    /// that run the same code.
    pub fn kinds(&self) -> Self {
        let mut kinds = self.clone();
        let (SynthesisEncoderSpec::Tacotron(e), SynthesisDecoderSpec::Tacotron(d)) =
            (&mut kinds.encoder, &mut kinds.decoder);
        (e.width, e.units, e.biases, e.init) = (1, 1, e.biases.kind(), SynthesisInit::Nvidia);
        keep_kinds(&mut e.convolutions);
        (d.prenet.units, d.prenet.dropout) = (vec![1; d.prenet.units.len()], 0.0);
        (d.units, d.dropout, d.forget_bias) = (1, 0.0, None);
        (d.biases, d.init) = (d.biases.kind(), SynthesisInit::Nvidia);
        (d.attention.units, d.attention.filters) = (1, 1);
        d.attention.kernel = parity(d.attention.kernel);
        keep_kinds(&mut d.postnet);
        if let Some(magnitudes) = &mut d.magnitudes {
            magnitudes.channels = vec![1; magnitudes.channels.len()];
            magnitudes.kernel = parity(magnitudes.kernel);
            (magnitudes.norm.epsilon, magnitudes.norm.momentum) = (1.0, 0.0);
        }
        kinds
    }
}

/// Sets the sizes and rates of convolutions over frames to fixed values.
fn keep_kinds(spec: &mut FrameConvolutionsSpec) {
    (spec.layers, spec.channels, spec.dropout) = (1, 1, 0.0);
    spec.kernel = parity(spec.kernel);
    (spec.norm.epsilon, spec.norm.momentum) = (1.0, 0.0);
}

/// 1 for odd kernels and 2 for even kernels, which have no centre.
fn parity(kernel: u32) -> u32 {
    if kernel.is_multiple_of(2) { 2 } else { 1 }
}
