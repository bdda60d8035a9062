//! The `[model]` block of a speech recognition recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AcousticSpec;

/// The `[model]` block: layers over the frames of a recording, and the classes of a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecognitionModelSpec {
    /// The encoder, which reads the frames.
    pub encoder: RecognitionEncoderSpec,
    /// The decoder, which turns the encoder's outputs into text.
    pub decoder: RecognitionDecoderSpec,
}

impl RecognitionModelSpec {
    /// The layers over the frames.
    pub fn layers(&self) -> &AcousticSpec {
        let RecognitionEncoderSpec::Acoustic(layers) = &self.encoder;
        layers
    }
}

/// An encoder of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RecognitionEncoderSpec {
    /// Speech encoder: a stack of layers over frames of features.
    Acoustic(AcousticSpec),
}

/// A decoder of an encoder's outputs, one for each frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RecognitionDecoderSpec {
    /// CTC: classifies each frame separately, as a class of the tokenizer or as the blank, which is
    /// the last class.
    Ctc {},
}
