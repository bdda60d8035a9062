//! Encoders and decoders of tokens. Any encoder can be combined with any decoder.
//!
//! A part is a file or folder here with an implementation of [`TokenEncoder`] or [`TokenDecoder`],
//! and a word in the list below.

mod convolutional;
mod recurrent;
mod transformer;

use burn::module::Module;
use burn::tensor::{Int, Tensor};
use zoo_recipes::tasks::translation::{TokenDecoderSpec, TokenEncoderSpec, TranslationModelSpec};

use self::convolutional::{ConvolutionalDecoder, ConvolutionalEncoder};
use self::recurrent::{RecurrentDecoder, RecurrentEncoder};
use self::transformer::{TransformerDecoder, TransformerEncoder};
use super::{Memory, Sources};
use crate::nn::Init;
use crate::{Cost, Pass};

/// An encoder of tokens.
pub trait TokenEncoder: Sized {
    /// The encoder's settings.
    type Spec;

    /// Builds the encoder with fresh parameters. Embeddings have the model's width.
    fn new(init: &Init, spec: &Self::Spec, model: &TranslationModelSpec) -> Self;

    /// x `[source rows, width]` FP32 -> encoder output, as wide as
    /// [`TranslationModelSpec::memory_width`] says. `lengths` are the rows of each source.
    fn forward(&self, x: Tensor<2>, lengths: &[u32], pass: &mut Pass) -> Memory;

    /// Counts the parameters and operations of a spec.
    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost;
}

/// A decoder of tokens.
pub trait TokenDecoder: Sized {
    /// The decoder's settings.
    type Spec;
    /// State that is kept between two steps of a search.
    type Cache;

    /// Builds the decoder with fresh parameters. Embeddings have the model's width.
    fn new(init: &Init, spec: &Self::Spec, model: &TranslationModelSpec) -> Self;

    /// Whole targets with teacher forcing: x `[target rows, width]` FP32 -> input of the output
    /// projection, FP32. `lengths` are the rows of each target.
    fn forward(&self, x: Tensor<2>, lengths: &[u32], memory: &Memory, pass: &mut Pass) -> Tensor<2>;

    /// State before the first step. What depends on the source alone is computed here, once for
    /// each search.
    fn begin(&self, memory: Memory, pass: &Pass) -> Self::Cache;

    /// Decodes one more token of every hypothesis: x `[hypotheses, width]` FP32 -> input of the
    /// output projection.
    fn step(&self, x: Tensor<2>, cache: &mut Self::Cache, sources: &Sources, pass: &mut Pass) -> Tensor<2>;

    /// Keeps the given hypotheses, in the given order. Each keeps its source.
    fn select(cache: &mut Self::Cache, rows: &Tensor<1, Int>);

    /// Attention weights of the last step, concatenated over the hypotheses; `None` for a decoder
    /// that does not have exactly one attention.
    fn attention(_: &Self::Cache) -> Option<Tensor<1>> {
        None
    }

    /// Dropout rate of the input of a weight-normalised output projection; `None` if the projection
    /// is a plain linear layer.
    fn normalized_output(_: &Self::Spec) -> Option<f64> {
        None
    }

    /// Counts the parameters and operations of a spec, without the output projection.
    fn cost(spec: &Self::Spec, model: &TranslationModelSpec) -> Cost;
}

/// Writes the enums of the parts and their dispatch from the list of the kinds.
macro_rules! parts {
    (
        encoders: $($(#[$of_encoder:meta])+ $encoder:ident($encoder_of:ident),)+
        decoders: $($(#[$of_decoder:meta])+ $decoder:ident($decoder_of:ident),)+
    ) => {
        /// Encoder of a sequence-to-sequence model.
        // A model holds one value, so the size of the variants does not matter.
        #[allow(clippy::large_enum_variant)]
        #[derive(Module, Debug)]
        pub enum Encoder {
            $($(#[$of_encoder])+ $encoder($encoder_of),)+
        }

        impl Encoder {
            pub(super) fn new(init: &Init, model: &TranslationModelSpec) -> Self {
                match &model.encoder {
                    $(TokenEncoderSpec::$encoder(spec) => {
                        Self::$encoder(<$encoder_of as TokenEncoder>::new(init, spec, model))
                    })+
                }
            }

            pub(super) fn forward(&self, x: Tensor<2>, lengths: &[u32], pass: &mut Pass) -> Memory {
                match self { $(Self::$encoder(part) => part.forward(x, lengths, pass)),+ }
            }

            pub(super) fn cost(model: &TranslationModelSpec) -> Cost {
                match &model.encoder {
                    $(TokenEncoderSpec::$encoder(spec) => <$encoder_of as TokenEncoder>::cost(spec, model)),+
                }
            }
        }

        /// Decoder of a sequence-to-sequence model.
        #[derive(Module, Debug)]
        pub enum Decoder {
            $($(#[$of_decoder])+ $decoder($decoder_of),)+
        }

        /// Decoder state that is kept between two steps of a search.
        // A search holds one value, so the size of the variants does not matter.
        #[allow(clippy::large_enum_variant)]
        #[derive(Debug, Clone)]
        pub(super) enum Cache {
            $($decoder(<$decoder_of as TokenDecoder>::Cache),)+
        }

        impl Decoder {
            pub(super) fn new(init: &Init, model: &TranslationModelSpec) -> Self {
                match &model.decoder {
                    $(TokenDecoderSpec::$decoder(spec) => {
                        Self::$decoder(<$decoder_of as TokenDecoder>::new(init, spec, model))
                    })+
                }
            }

            pub(super) fn forward(
                &self,
                x: Tensor<2>,
                lengths: &[u32],
                memory: &Memory,
                pass: &mut Pass,
            ) -> Tensor<2> {
                match self { $(Self::$decoder(part) => part.forward(x, lengths, memory, pass)),+ }
            }

            pub(super) fn begin(&self, memory: Memory, pass: &Pass) -> Cache {
                match self { $(Self::$decoder(part) => Cache::$decoder(part.begin(memory, pass))),+ }
            }

            pub(super) fn step(
                &self,
                x: Tensor<2>,
                cache: &mut Cache,
                sources: &Sources,
                pass: &mut Pass,
            ) -> Tensor<2> {
                match (self, cache) {
                    $((Self::$decoder(part), Cache::$decoder(cache)) => part.step(x, cache, sources, pass),)+
                    _ => unreachable!("a cache is made by its decoder"),
                }
            }

            pub(super) fn normalized_output(model: &TranslationModelSpec) -> Option<f64> {
                match &model.decoder {
                    $(TokenDecoderSpec::$decoder(spec) => {
                        <$decoder_of as TokenDecoder>::normalized_output(spec)
                    })+
                }
            }

            pub(super) fn cost(model: &TranslationModelSpec) -> Cost {
                match &model.decoder {
                    $(TokenDecoderSpec::$decoder(spec) => <$decoder_of as TokenDecoder>::cost(spec, model)),+
                }
            }
        }

        impl Cache {
            pub(super) fn select(&mut self, rows: &Tensor<1, Int>) {
                match self { $(Self::$decoder(cache) => <$decoder_of as TokenDecoder>::select(cache, rows)),+ }
            }

            pub(super) fn attention(&self) -> Option<Tensor<1>> {
                match self { $(Self::$decoder(cache) => <$decoder_of as TokenDecoder>::attention(cache)),+ }
            }
        }
    };
}

parts! {
    encoders:
        /// Self-attention.
        Transformer(TransformerEncoder),
        /// Recurrent layers.
        Recurrent(RecurrentEncoder),
        /// Gated convolutions.
        Convolutional(ConvolutionalEncoder),
    decoders:
        /// Self-attention and cross-attention.
        Transformer(TransformerDecoder),
        /// Recurrent layers with attention.
        Recurrent(RecurrentDecoder),
        /// Gated convolutions with attention.
        Convolutional(ConvolutionalDecoder),
}
