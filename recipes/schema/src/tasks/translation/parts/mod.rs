//! Encoders and decoders of tokens. Any encoder can be combined with any decoder.
//!
//! A part is a file here with its struct and its answers ([`EncoderPart`], [`DecoderPart`]), and a
//! word in the list below.

mod convolutional;
mod recurrent;
mod transformer;

pub use convolutional::*;
pub use recurrent::*;
pub use transformer::*;

use std::mem::discriminant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DecoderStart, TranslationModelSpec};
use crate::validate::Findings;

/// An encoder's answers about its settings.
pub(super) trait EncoderPart {
    /// Width of the outputs, of embeddings of this width.
    fn memory_width(&self, width: u32) -> u32 {
        width
    }

    /// Width of the last states, from which a decoder can start; `None` without states.
    fn state_width(&self) -> Option<u32> {
        None
    }

    /// Checks ranges and combinations of `model.encoder`, which reads embeddings of this width.
    fn check(&self, width: u32, findings: &mut Findings<'_, '_>);

    /// Sets sizes, rates and initialisers to fixed values.
    fn keep_kinds(&mut self);
}

/// A decoder's answers about its settings.
pub(super) trait DecoderPart {
    /// The input before the first target token.
    fn start(&self) -> DecoderStart;

    /// Whether the target sequence itself begins with the begin token.
    fn begin_token_in_target(&self) -> bool;

    /// Whether the output projection has a bias.
    fn output_bias(&self) -> bool {
        false
    }

    /// Width of the vectors that are projected to the vocabulary.
    fn projected_width(&self, model: &TranslationModelSpec) -> u32 {
        model.width
    }

    /// How the context of the decoder's one attention is used; `None` for a decoder that does not
    /// have exactly one attention.
    fn context(&self) -> Option<ContextUse> {
        None
    }

    /// Checks ranges and combinations of `model.decoder`.
    fn check(&self, model: &TranslationModelSpec, findings: &mut Findings<'_, '_>);

    /// Sets sizes, rates and initialisers to fixed values.
    fn keep_kinds(&mut self);
}

/// Writes the enums of the parts and their dispatch from the list of the kinds.
macro_rules! parts {
    ($(
        $(#[$about:meta])+
        $name:ident: $part:ident { $($(#[$of_kind:meta])+ $kind:ident($spec:ident),)+ }
    )+) => {$(
        $(#[$about])+
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$of_kind])+ $kind($spec),)+
        }

        impl $name {
            fn part(&self) -> &dyn $part {
                match self { $(Self::$kind(part) => part),+ }
            }

            /// The part with sizes, rates and initialisers set to fixed values.
            pub(super) fn kinds(&self) -> Self {
                let mut kinds = self.clone();
                match &mut kinds { $(Self::$kind(part) => part.keep_kinds()),+ }
                kinds
            }
        }
    )+};
}

parts! {
    /// An encoder of tokens.
    TokenEncoderSpec: EncoderPart {
        /// Transformer: a stack of self-attention layers.
        Transformer(TransformerSpec),
        /// A stack of recurrent layers.
        Recurrent(RecurrentEncoderSpec),
        /// Gated convolutions (Gehring et al. 2017).
        Convolutional(ConvolutionalEncoderSpec),
    }
    /// A decoder of tokens.
    TokenDecoderSpec: DecoderPart {
        /// Transformer: a stack of layers with causal self-attention and cross-attention.
        Transformer(TransformerDecoderSpec),
        /// A stack of recurrent layers with attention.
        Recurrent(RecurrentDecoderSpec),
        /// Gated convolutions with attention (Gehring et al. 2017).
        Convolutional(ConvolutionalDecoderSpec),
    }
}

impl TokenEncoderSpec {
    /// Width of the outputs, of embeddings of this width.
    pub fn memory_width(&self, width: u32) -> u32 {
        self.part().memory_width(width)
    }

    /// Width of the last states, from which a decoder can start; `None` without states.
    pub fn state_width(&self) -> Option<u32> {
        self.part().state_width()
    }

    /// Checks ranges and combinations of `model.encoder`, which reads embeddings of this width.
    pub(super) fn check(&self, width: u32, findings: &mut Findings<'_, '_>) {
        self.part().check(width, findings);
    }
}

impl TokenDecoderSpec {
    /// The input before the first target token.
    pub fn start(&self) -> DecoderStart {
        self.part().start()
    }

    /// Whether the target sequence itself begins with the begin token.
    pub fn begin_token_in_target(&self) -> bool {
        self.part().begin_token_in_target()
    }

    /// Whether the output projection has a bias.
    pub fn output_bias(&self) -> bool {
        self.part().output_bias()
    }

    /// Width of the vectors that are projected to the vocabulary.
    pub(super) fn projected_width(&self, model: &TranslationModelSpec) -> u32 {
        self.part().projected_width(model)
    }

    /// Whether there is exactly one attention, whose weights a search can sum.
    pub fn has_one_attention(&self) -> bool {
        self.part().context().is_some()
    }

    /// Whether a search keeps the same state for both decoders: same kind, same use of the
    /// attention context.
    pub fn has_states_of(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other) && self.part().context() == other.part().context()
    }

    /// Checks ranges and combinations of `model.decoder`.
    pub(super) fn check(&self, model: &TranslationModelSpec, findings: &mut Findings<'_, '_>) {
        self.part().check(model, findings);
    }
}
