//! The `[model]` block of a translation recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TokenDecoderSpec, TokenEncoderSpec};
use crate::spec::EmbeddingSpec;

/// The `[model]` block: an encoder and a decoder of tokens, each of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranslationModelSpec {
    /// Width of the embeddings, and of all Transformer layers.
    pub width: u32,
    /// Token embeddings and positions.
    pub embedding: EmbeddingSpec,
    /// The encoder, which reads the source.
    pub encoder: TokenEncoderSpec,
    /// The decoder, which writes the target.
    pub decoder: TokenDecoderSpec,
}

impl TranslationModelSpec {
    /// Width of the encoder's outputs.
    pub fn memory_width(&self) -> u32 {
        self.encoder.memory_width(self.width)
    }

    /// Width of the vectors that are projected to the vocabulary.
    pub fn projected_width(&self) -> u32 {
        self.decoder.projected_width(self)
    }

    /// The model with sizes, rates and initialisers set to fixed values. It is equal for two models
    /// that run the same code.
    pub fn kinds(&self) -> Self {
        let embedding = EmbeddingSpec { init_std: None, init: None, dropout: 0.0, ..self.embedding };
        let (encoder, decoder) = (self.encoder.kinds(), self.decoder.kinds());
        Self { width: 1, embedding, encoder, decoder }
    }
}

/// Input of a decoder before the first target token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecoderStart {
    /// A vector of zeros instead of an embedding (tensor2tensor, OpenSeq2Seq).
    Zeros,
    /// The end token (fairseq).
    End,
    /// The begin token.
    Begin,
}
