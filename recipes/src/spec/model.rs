//! The `[model]` and `[loss]` blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AcousticSpec, CtcDenominator};

/// Any encoder with any decoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Model width, which is also the embeddings' width. Models of tokens have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Token embeddings and positions. Models of tokens have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<EmbeddingSpec>,
    /// Reads the source.
    pub encoder: EncoderSpec,
    /// Writes the target.
    pub decoder: DecoderSpec,
}

/// A model as its parts make it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Architecture<'a> {
    /// Tokens to tokens.
    Transformer {
        /// Model width.
        width: u32,
        /// Token embeddings and positions.
        embedding: &'a EmbeddingSpec,
        /// Reads the source.
        encoder: &'a TransformerSpec,
        /// Writes the target.
        decoder: &'a TransformerDecoderSpec,
    },
    /// Frames of speech to classes.
    Acoustic(&'a AcousticSpec),
}

impl ModelSpec {
    /// What the parts make together; `None` if they do not fit (no recipe that was checked).
    pub fn architecture(&self) -> Option<Architecture<'_>> {
        match (&self.encoder, &self.decoder, self.width, &self.embedding) {
            (
                EncoderSpec::Transformer(encoder),
                DecoderSpec::Transformer(decoder),
                Some(width),
                Some(embedding),
            ) => Some(Architecture::Transformer { width, embedding, encoder, decoder }),
            (EncoderSpec::Acoustic(encoder), DecoderSpec::Ctc {}, None, None) => {
                Some(Architecture::Acoustic(encoder))
            }
            _ => None,
        }
    }
}

/// Embedding tables and position codes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSpec {
    /// Which of source table, target table and output projection are one matrix.
    pub tied: Tying,
    /// Multiply looked-up vectors by sqrt(width).
    pub scale: bool,
    /// Standard deviation of the normal initialiser; absent: width^-0.5.
    #[serde(default)]
    pub init_std: Option<f64>,
    /// Padding embeds as zeros and gets no gradient.
    pub zero_padding: bool,
    /// Position code added to the embeddings.
    pub positions: Positions,
    /// Drop rate after adding positions.
    pub dropout: f64,
}

/// See [`EmbeddingSpec::tied`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tying {
    /// Source, target and output are one.
    All,
    /// Target and output are one.
    Decoder,
    /// Three matrices.
    None,
}

/// Position codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// Sines then cosines, time scales 1..10000 with the end point, first position 0 (tensor2tensor, OpenSeq2Seq).
    SinusoidTensor2tensor,
    /// The same layout, first position 2, padding positions zero (fairseq with padding index 1).
    SinusoidFairseq,
    /// Sine and cosine interleaved, exponent 2i/width (Vaswani et al. 2017, section 3.5).
    SinusoidPaper,
}

/// Encoder parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EncoderSpec {
    /// Self-attention stack.
    Transformer(TransformerSpec),
    /// Layers over the frames of speech.
    Acoustic(AcousticSpec),
}

/// Decoder parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DecoderSpec {
    /// Causal self-attention, cross-attention.
    Transformer(TransformerDecoderSpec),
    /// Each frame by itself: a class of the tokenizer, or the blank, which is the last class.
    Ctc {},
}

/// One stack of Transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformerSpec {
    /// Layers.
    pub layers: u32,
    /// Attention heads; divides the model width.
    pub heads: u32,
    /// Inner width of the feed-forward part.
    pub ffn: u32,
    /// Place of the norm. `pre` adds a norm after the last layer.
    pub norm: NormPlace,
    /// Added to the variance.
    pub norm_epsilon: f64,
    /// Biases in the four attention projections.
    pub attention_bias: bool,
    /// Initialiser of the projections.
    pub init: LinearInit,
    /// Drop rate of each sub-layer's output.
    pub dropout: f64,
    /// Drop rate of attention weights.
    pub attention_dropout: f64,
    /// Drop rate behind the feed-forward activation.
    pub activation_dropout: f64,
    /// Take padding out before the feed-forward part (OpenSeq2Seq's encoder). The result is the same; less is computed.
    #[serde(default)]
    pub remove_padding: bool,
}

/// A Transformer decoder: the stack and what its first input is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformerDecoderSpec {
    /// Layers.
    pub layers: u32,
    /// Attention heads; divides the model width.
    pub heads: u32,
    /// Inner width of the feed-forward part.
    pub ffn: u32,
    /// Place of the norm. `pre` adds a norm after the last layer.
    pub norm: NormPlace,
    /// Added to the variance.
    pub norm_epsilon: f64,
    /// Biases in the attention projections.
    pub attention_bias: bool,
    /// Initialiser of the projections.
    pub init: LinearInit,
    /// Drop rate of each sub-layer's output.
    pub dropout: f64,
    /// Drop rate of attention weights.
    pub attention_dropout: f64,
    /// Drop rate behind the feed-forward activation.
    pub activation_dropout: f64,
    /// What stands before the first target token.
    pub start: DecoderStart,
    /// The target sequence itself begins with the begin token, so the model learns to write it (OpenSeq2Seq's `use_start_token`).
    #[serde(default)]
    pub begin_token_in_target: bool,
}

/// See [`TransformerDecoderSpec::start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecoderStart {
    /// A vector of zeros in the embedding's place (tensor2tensor, OpenSeq2Seq).
    Zeros,
    /// The end token (fairseq).
    End,
    /// The begin token.
    Begin,
}

/// See [`TransformerSpec::norm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormPlace {
    /// x + f(norm(x)).
    Pre,
    /// norm(x + f(x)).
    Post,
}

/// Initialiser of linear layers. Biases start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinearInit {
    /// Glorot and Bengio 2010, uniform: TensorFlow's default.
    XavierUniform,
    /// fairseq: Xavier uniform; the query, key and value projections with gain 1/sqrt(2).
    Fairseq,
}

/// The `[loss]` block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSpec {
    /// Cross-entropy of the target tokens, padding excluded from the sum.
    CrossEntropy {
        /// Mass taken from the true class.
        label_smoothing: f64,
        /// Where that mass goes.
        #[serde(default)]
        smoothing: Smoothing,
        /// What the sum is divided by.
        denominator: Denominator,
    },
    /// Connectionist temporal classification, FP32. Utterances of too few frames for what is said count nothing.
    Ctc {
        /// What the sum is divided by.
        denominator: CtcDenominator,
    },
}

/// The two published definitions of label smoothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Smoothing {
    /// eps/V on every class, the true one too (fairseq, NVIDIA).
    #[default]
    AllClasses,
    /// eps/(V-1) on the other classes; the target's entropy is subtracted so that the least loss is 0 (tensor2tensor, OpenSeq2Seq).
    OtherClasses,
}

/// See [`LossSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// Target tokens that are not padding.
    Tokens,
    /// Sentences.
    Sentences,
    /// All target positions, padding included.
    Positions,
}
