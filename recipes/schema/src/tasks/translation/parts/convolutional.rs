//! Convolutional encoders and decoders of tokens (Gehring et al. 2017).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DecoderPart, EncoderPart};
use crate::tasks::translation::{DecoderStart, TranslationModelSpec};
use crate::validate::Findings;

/// Gated convolutions that read tokens. Every layer is weight-normalised; sums of two terms are
/// scaled by sqrt(0.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalEncoderSpec {
    /// Groups of convolutions, first to last.
    pub layer: Vec<GatedConvolutionSpec>,
    /// Learned positions. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<LearnedPositions>,
    /// Dropout rate of the embedded tokens and of each convolution's input.
    pub dropout: f64,
    /// Number of attentions that read the encoder: usually the decoder's layers.
    /// The gradient into the encoder is divided by twice this number.
    pub attentions: u32,
}

/// Gated convolutions that write tokens, each with attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalDecoderSpec {
    /// Groups of convolutions, first to last.
    pub layer: Vec<GatedConvolutionSpec>,
    /// Learned positions. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<LearnedPositions>,
    /// Dropout rate of the embedded tokens, each convolution's input, and the projection's input.
    pub dropout: f64,
    /// Width of the output projection's input. Absent: the model's width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_width: Option<u32>,
    /// Whether the output projection has a bias, and is weight-normalised as all other layers.
    /// Only if the projection does not share the target embeddings' matrix.
    #[serde(default)]
    pub output_bias: bool,
    /// Length whose square root scales the attention context.
    #[serde(default, skip_serializing_if = "SourceLength::is_own")]
    pub source_length: SourceLength,
    /// Input before the first target token.
    pub start: DecoderStart,
    /// Whether the target sequence itself begins with the begin token.
    #[serde(default)]
    pub begin_token_in_target: bool,
}

/// Definition of a source's length, for the scale of the attention context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceLength {
    /// The source's own number of tokens (fairseq).
    #[default]
    Own,
    /// The length of the batch's longest source, to which all are padded (OpenSeq2Seq).
    /// A search processes one source at a time, as in OpenSeq2Seq.
    Padded,
}

impl SourceLength {
    fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// A group of convolutions of the same size, each followed by a gated linear unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatedConvolutionSpec {
    /// Number of channels after the gate.
    pub channels: u32,
    /// Kernel size, in tokens. Odd in an encoder.
    pub kernel: u32,
    /// Number of convolutions in the group.
    pub repeat: u32,
}

/// Table of position vectors, added to the token embeddings. Initialised, as those, from a normal
/// distribution with standard deviation 0.1. Nothing is added at positions beyond the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearnedPositions {
    /// Number of rows: the positions that get a vector.
    pub rows: u32,
    /// Whether the first token gets no position (OpenSeq2Seq, whose table reserves 0 for padding).
    #[serde(default)]
    pub first_is_zero: bool,
}

impl EncoderPart for ConvolutionalEncoderSpec {
    fn check(&self, _: u32, findings: &mut Findings<'_, '_>) {
        check("model.encoder", &self.layer, self.positions, self.dropout, findings);
        findings.positive(u64::from(self.attentions), "model.encoder.attentions");
        for (i, layer) in self.layer.iter().enumerate() {
            findings.require(layer.kernel % 2 == 1, &format!("model.encoder.layer.{i}.kernel"), || {
                format!("{} taps have no middle; an encoder's kernel is odd", layer.kernel)
            });
        }
    }

    fn keep_kinds(&mut self) {
        (self.layer, self.dropout, self.attentions) = (kinds(&self.layer), 0.0, 1);
        self.positions.iter_mut().for_each(|positions| positions.rows = 1);
    }
}

impl DecoderPart for ConvolutionalDecoderSpec {
    fn start(&self) -> DecoderStart {
        self.start
    }

    fn begin_token_in_target(&self) -> bool {
        self.begin_token_in_target
    }

    fn output_bias(&self) -> bool {
        self.output_bias
    }

    fn projected_width(&self, model: &TranslationModelSpec) -> u32 {
        self.output_width.unwrap_or(model.width)
    }

    fn check(&self, model: &TranslationModelSpec, findings: &mut Findings<'_, '_>) {
        check("model.decoder", &self.layer, self.positions, self.dropout, findings);
        findings.positive(u64::from(self.output_width.unwrap_or(1)), "model.decoder.output_width");
        let (width, memory) = (model.width, model.memory_width());
        findings.require(memory == width, "model.decoder.kind", || {
            format!(
                "its attention multiplies tokens {width} wide with what the encoder writes, {memory} wide"
            )
        });
    }

    fn keep_kinds(&mut self) {
        (self.layer, self.dropout) = (kinds(&self.layer), 0.0);
        self.positions.iter_mut().for_each(|positions| positions.rows = 1);
        self.output_width = self.output_width.map(|_| 1);
        self.begin_token_in_target = false;
    }
}

/// One layer, or two if the widths change, because a layer that changes the width has a projected
/// shortcut.
fn kinds(layers: &[GatedConvolutionSpec]) -> Vec<GatedConvolutionSpec> {
    let changes = layers.windows(2).any(|pair| pair[0].channels != pair[1].channels);
    let layer = |channels| GatedConvolutionSpec { channels, kernel: 1, repeat: 1 };
    if changes { vec![layer(1), layer(2)] } else { vec![layer(1)] }
}

fn check(
    part: &str,
    layers: &[GatedConvolutionSpec],
    positions: Option<LearnedPositions>,
    dropout: f64,
    findings: &mut Findings<'_, '_>,
) {
    findings.require(!layers.is_empty(), &format!("{part}.layer"), || format!("`{part}` has no layer"));
    for (i, layer) in layers.iter().enumerate() {
        for (value, key) in [(layer.channels, "channels"), (layer.kernel, "kernel"), (layer.repeat, "repeat")]
        {
            findings.positive(u64::from(value), &format!("{part}.layer.{i}.{key}"));
        }
    }
    if let Some(positions) = positions {
        findings.positive(u64::from(positions.rows), &format!("{part}.positions.rows"));
    }
    findings.share(dropout, &format!("{part}.dropout"));
}
