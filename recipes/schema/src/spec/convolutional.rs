//! Convolutional encoders and decoders of tokens (Gehring et al. 2017).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DecoderStart;

/// Gated convolutions that read tokens. Every layer is weight-normalised; sums of two are scaled by sqrt(0.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalEncoderSpec {
    /// First to last.
    pub layer: Vec<GatedConvolutionSpec>,
    /// Learned positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<LearnedPositions>,
    /// Drop rate of the embedded tokens and of each convolution's input.
    pub dropout: f64,
    /// What comes back from so many attentions is divided by twice their number; the decoder's layers, mostly.
    pub attentions: u32,
}

/// Gated convolutions, each with attention, that write tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalDecoderSpec {
    /// First to last.
    pub layer: Vec<GatedConvolutionSpec>,
    /// Learned positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<LearnedPositions>,
    /// Drop rate of the embedded tokens, of each convolution's input, and of what is projected.
    pub dropout: f64,
    /// Width of what is projected; absent: the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_width: Option<u32>,
    /// Where output and target tokens are no one matrix: the projection is weight-normalised and has a bias, as every other layer.
    #[serde(default)]
    pub output_bias: bool,
    /// What an attention's answer is scaled by the square root of.
    #[serde(default, skip_serializing_if = "SourceLength::is_own")]
    pub source_length: SourceLength,
    /// What stands before the first target token.
    pub start: DecoderStart,
    /// The target sequence itself begins with the begin token.
    #[serde(default)]
    pub begin_token_in_target: bool,
}

/// How long a source is, for the scale of an attention's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceLength {
    /// Its own tokens (fairseq).
    #[default]
    Own,
    /// The longest of its batch, of which it is padded to the length (OpenSeq2Seq). A search has a source at a time, as there.
    Padded,
}

impl SourceLength {
    fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// Some convolutions of the same size, each followed by a gated linear unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatedConvolutionSpec {
    /// Outputs, behind the gate.
    pub channels: u32,
    /// Taps: odd in an encoder.
    pub kernel: u32,
    /// So many, one behind the other.
    pub repeat: u32,
}

/// A table of position vectors, added to the tokens'; normal, standard deviation 0.1 as the tokens' are. Positions behind its
/// end have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearnedPositions {
    /// Rows.
    pub rows: u32,
    /// Nothing is added to the first token (OpenSeq2Seq: its table takes position 0 for padding).
    #[serde(default)]
    pub first_is_zero: bool,
}
