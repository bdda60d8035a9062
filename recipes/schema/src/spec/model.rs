//! The `[model]` and `[loss]` blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AcousticSpec, ContextUse, ConvolutionalDecoderSpec, ConvolutionalEncoderSpec, CtcDenominator,
    RecurrentDecoderSpec, RecurrentEncoderSpec, SynthesisModel, TacotronDecoderSpec, TacotronEncoderSpec,
};

/// Any encoder with any decoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Width of the embeddings, and of all layers of a Transformer. Models of tokens have one.
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
    Tokens(TokenModel<'a>),
    /// Frames of speech to classes.
    Acoustic(&'a AcousticSpec),
    /// Symbols to frames of speech.
    Synthesis(SynthesisModel<'a>),
}

/// Tokens to tokens: any encoder of tokens with any decoder of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenModel<'a> {
    /// Width of the embeddings.
    pub width: u32,
    /// Token embeddings and positions.
    pub embedding: &'a EmbeddingSpec,
    /// Reads the source.
    pub encoder: &'a EncoderSpec,
    /// Writes the target.
    pub decoder: &'a DecoderSpec,
}

impl ModelSpec {
    /// What the parts make together; `None` if they do not fit (no recipe that was checked).
    pub fn architecture(&self) -> Option<Architecture<'_>> {
        match (&self.encoder, &self.decoder, self.width, &self.embedding) {
            (EncoderSpec::Acoustic(encoder), DecoderSpec::Ctc {}, None, None) => {
                Some(Architecture::Acoustic(encoder))
            }
            (EncoderSpec::Tacotron(_), _, None, None) => {
                SynthesisModel::of(&self.encoder, &self.decoder).map(Architecture::Synthesis)
            }
            (EncoderSpec::Acoustic(_) | EncoderSpec::Tacotron(_), ..)
            | (_, DecoderSpec::Ctc {} | DecoderSpec::Tacotron(_), ..) => None,
            (encoder, decoder, Some(width), Some(embedding)) => {
                Some(Architecture::Tokens(TokenModel { width, embedding, encoder, decoder }))
            }
            _ => None,
        }
    }
}

impl TokenModel<'_> {
    /// Width of what the encoder writes.
    pub fn memory_width(&self) -> u32 {
        match self.encoder {
            EncoderSpec::Recurrent(e) if e.writes_both_directions() => e.units.saturating_mul(2),
            EncoderSpec::Recurrent(e) => e.units,
            EncoderSpec::Transformer(_)
            | EncoderSpec::Convolutional(_)
            | EncoderSpec::Acoustic(_)
            | EncoderSpec::Tacotron(_) => self.width,
        }
    }

    /// Width of what is projected to the vocabulary.
    pub fn projected_width(&self) -> u32 {
        match self.decoder {
            DecoderSpec::Recurrent(d) if d.context == ContextUse::Output => self.memory_width(),
            DecoderSpec::Recurrent(d) => d.units,
            DecoderSpec::Convolutional(d) => d.output_width.unwrap_or(self.width),
            DecoderSpec::Transformer(_) | DecoderSpec::Ctc {} | DecoderSpec::Tacotron(_) => self.width,
        }
    }
}

impl DecoderSpec {
    /// The value of `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Transformer(_) => "transformer",
            Self::Recurrent(_) => "recurrent",
            Self::Convolutional(_) => "convolutional",
            Self::Ctc {} => "ctc",
            Self::Tacotron(_) => "tacotron",
        }
    }

    /// What stands before the first target token; `None` of frames.
    pub fn start(&self) -> Option<DecoderStart> {
        match self {
            Self::Transformer(d) => Some(d.start),
            Self::Recurrent(d) => Some(d.start),
            Self::Convolutional(d) => Some(d.start),
            Self::Ctc {} | Self::Tacotron(_) => None,
        }
    }

    /// Does the target sequence itself begin with the begin token?
    pub fn begin_token_in_target(&self) -> bool {
        match self {
            Self::Transformer(d) => d.begin_token_in_target,
            Self::Recurrent(d) => d.begin_token_in_target,
            Self::Convolutional(d) => d.begin_token_in_target,
            Self::Ctc {} | Self::Tacotron(_) => false,
        }
    }

    /// Has the output projection a bias?
    pub fn output_bias(&self) -> bool {
        match self {
            Self::Recurrent(d) => d.output_bias,
            Self::Convolutional(d) => d.output_bias,
            Self::Transformer(_) | Self::Ctc {} | Self::Tacotron(_) => false,
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
    /// Another initialiser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<EmbeddingInit>,
    /// Padding embeds as zeros and gets no gradient.
    pub zero_padding: bool,
    /// Position code added to the embeddings.
    pub positions: Positions,
    /// Drop rate after adding positions.
    pub dropout: f64,
}

/// Initialiser of embeddings and of an output projection that is no embedding, other than a normal one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EmbeddingInit {
    /// Uniform in [-bound, bound).
    Uniform {
        /// Largest size.
        bound: f64,
    },
    /// Glorot and Bengio 2010, uniform, of rows and width (TensorFlow's default).
    XavierUniform,
}

/// See [`EmbeddingSpec::tied`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tying {
    /// Source, target and output are one.
    All,
    /// Target and output are one.
    Decoder,
    /// Source and target are one.
    Inputs,
    /// Three matrices.
    None,
}

/// Position codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// None; or what learned ones encoder and decoder have of their own.
    None,
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
    /// Recurrent stack.
    Recurrent(RecurrentEncoderSpec),
    /// Gated convolutions.
    Convolutional(ConvolutionalEncoderSpec),
    /// Layers over the frames of speech.
    Acoustic(AcousticSpec),
    /// Symbols that are to be spoken.
    Tacotron(TacotronEncoderSpec),
}

/// Decoder parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DecoderSpec {
    /// Causal self-attention, cross-attention.
    Transformer(TransformerDecoderSpec),
    /// Recurrent stack with attention.
    Recurrent(RecurrentDecoderSpec),
    /// Gated convolutions with attention.
    Convolutional(ConvolutionalDecoderSpec),
    /// Each frame by itself: a class of the tokenizer, or the blank, which is the last class.
    Ctc {},
    /// Frames of speech.
    Tacotron(TacotronDecoderSpec),
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
    /// Of the frames of speech: mean squared errors before and behind the post-net, and of magnitudes where there are any, and the
    /// cross-entropy of whether to stop, in nats a frame; their sum. FP32.
    Spectrogram {
        /// Padding counts as frames of zeros at which to stop (NVIDIA).
        padding: bool,
        /// What attention is told of where in a text a frame is likely to be. Absent: nothing, as published for Tacotron 2.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guide: Option<AttentionGuide>,
    },
}

/// Guided attention (Tachibana et al. 2018, section 4.1): what lies far from the diagonal costs. Of frame t of T, attention a(n) on symbol n
/// of N costs the sum of a(n) (1 - exp(-(n/N - t/T)^2 / (2 width^2))), the mean of which over frames is another term of the loss. The paper
/// takes the mean over symbols, too, which is 1/N as much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttentionGuide {
    /// How far from the diagonal is near, as a share of the text: 0.2 in the paper, 0.4 in ESPnet.
    pub width: f64,
    /// Factor of the term.
    pub weight: f64,
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
