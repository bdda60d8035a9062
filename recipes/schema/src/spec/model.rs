//! The `[model]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AcousticSpec, ContextUse, ConvolutionalDecoderSpec, ConvolutionalEncoderSpec, RecurrentDecoderSpec,
    RecurrentEncoderSpec, SynthesisModel, TacotronDecoderSpec, TacotronEncoderSpec,
};

/// The `[model]` block: an encoder and a decoder, each of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Width of the embeddings, and of all Transformer layers. Only for models of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Token embeddings and positions. Only for models of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<EmbeddingSpec>,
    /// The encoder, which reads the source.
    pub encoder: EncoderSpec,
    /// The decoder, which writes the target.
    pub decoder: DecoderSpec,
}

/// The kind of model that the encoder and the decoder form together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Architecture<'a> {
    /// Tokens to tokens.
    Tokens(TokenModel<'a>),
    /// Frames of speech to classes.
    Acoustic(&'a AcousticSpec),
    /// Symbols to frames of speech.
    Synthesis(SynthesisModel<'a>),
}

/// A model of tokens: any encoder of tokens with any decoder of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenModel<'a> {
    /// Width of the embeddings.
    pub width: u32,
    /// Token embeddings and positions.
    pub embedding: &'a EmbeddingSpec,
    /// The encoder, which reads the source.
    pub encoder: &'a EncoderSpec,
    /// The decoder, which writes the target.
    pub decoder: &'a DecoderSpec,
}

impl ModelSpec {
    /// The kind of model that the parts form; `None` if they do not fit together, which no checked
    /// recipe has.
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
    /// Width of the encoder's outputs.
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

    /// Width of the vectors that are projected to the vocabulary.
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

    /// The input before the first target token; `None` for a decoder of frames.
    pub fn start(&self) -> Option<DecoderStart> {
        match self {
            Self::Transformer(d) => Some(d.start),
            Self::Recurrent(d) => Some(d.start),
            Self::Convolutional(d) => Some(d.start),
            Self::Ctc {} | Self::Tacotron(_) => None,
        }
    }

    /// Whether the target sequence itself begins with the begin token.
    pub fn begin_token_in_target(&self) -> bool {
        match self {
            Self::Transformer(d) => d.begin_token_in_target,
            Self::Recurrent(d) => d.begin_token_in_target,
            Self::Convolutional(d) => d.begin_token_in_target,
            Self::Ctc {} | Self::Tacotron(_) => false,
        }
    }

    /// Whether the output projection has a bias.
    pub fn output_bias(&self) -> bool {
        match self {
            Self::Recurrent(d) => d.output_bias,
            Self::Convolutional(d) => d.output_bias,
            Self::Transformer(_) | Self::Ctc {} | Self::Tacotron(_) => false,
        }
    }
}

/// The `[model.embedding]` block: embedding tables and position encodings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSpec {
    /// Which of source table, target table and output projection share one matrix.
    pub tied: Tying,
    /// Whether embedded vectors are multiplied by sqrt(width).
    pub scale: bool,
    /// Standard deviation of the normal initialiser. Absent: width^-0.5.
    #[serde(default)]
    pub init_std: Option<f64>,
    /// Initialiser other than a normal one. Absent: normal, with `init_std`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<EmbeddingInit>,
    /// Whether the padding token embeds as zeros and gets no gradient.
    pub zero_padding: bool,
    /// Position encoding that is added to the embeddings.
    pub positions: Positions,
    /// Dropout rate after adding the positions.
    pub dropout: f64,
}

/// Initialiser, other than a normal one, of embeddings and of an output projection that is not an
/// embedding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EmbeddingInit {
    /// Uniform in [-bound, bound).
    Uniform {
        /// Bound of the uniform distribution.
        bound: f64,
    },
    /// Xavier uniform (Glorot and Bengio 2010) with fans rows and width (TensorFlow's default).
    XavierUniform,
}

/// Which embedding tables and output projection share one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tying {
    /// Source table, target table and output projection share one matrix.
    All,
    /// Target table and output projection share one matrix.
    Decoder,
    /// Source and target table share one matrix.
    Inputs,
    /// Three separate matrices.
    None,
}

/// Position encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// No encoding here. Encoder and decoder may have learned positions of their own.
    None,
    /// Sines, then cosines, with time scales 1..10000 including the end point; the first position
    /// is 0 (tensor2tensor, OpenSeq2Seq).
    SinusoidTensor2tensor,
    /// Layout of `sinusoid-tensor2tensor`, with first position 2 and zeros at padding (fairseq with
    /// padding index 1).
    SinusoidFairseq,
    /// Sine and cosine interleaved, with exponent 2i/width (Vaswani et al. 2017, section 3.5).
    SinusoidPaper,
}

/// An encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EncoderSpec {
    /// Transformer: a stack of self-attention layers.
    Transformer(TransformerSpec),
    /// A stack of recurrent layers.
    Recurrent(RecurrentEncoderSpec),
    /// Gated convolutions (Gehring et al. 2017).
    Convolutional(ConvolutionalEncoderSpec),
    /// Speech encoder: a stack of layers over frames of features.
    Acoustic(AcousticSpec),
    /// Tacotron 2's encoder, which reads the input symbols of speech synthesis.
    Tacotron(TacotronEncoderSpec),
}

/// A decoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DecoderSpec {
    /// Transformer: a stack of layers with causal self-attention and cross-attention.
    Transformer(TransformerDecoderSpec),
    /// A stack of recurrent layers with attention.
    Recurrent(RecurrentDecoderSpec),
    /// Gated convolutions with attention (Gehring et al. 2017).
    Convolutional(ConvolutionalDecoderSpec),
    /// CTC: classifies each frame separately, as a class of the tokenizer or as the blank, which is
    /// the last class.
    Ctc {},
    /// Tacotron 2's decoder, which writes frames of speech.
    Tacotron(TacotronDecoderSpec),
}

/// The encoder's stack of Transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformerSpec {
    /// Number of layers.
    pub layers: u32,
    /// Number of attention heads. It divides the model's width.
    pub heads: u32,
    /// Inner width of the feed-forward part.
    pub ffn: u32,
    /// Position of the norm in a layer. `pre` adds a norm after the last layer.
    pub norm: NormPlace,
    /// Epsilon of the norms, added to the variance.
    pub norm_epsilon: f64,
    /// Whether the four attention projections have biases.
    pub attention_bias: bool,
    /// Initialiser of the projections.
    pub init: LinearInit,
    /// Dropout rate of each sub-layer's output.
    pub dropout: f64,
    /// Dropout rate of the attention weights.
    pub attention_dropout: f64,
    /// Dropout rate after the feed-forward activation.
    pub activation_dropout: f64,
    /// Whether padding is removed before the feed-forward part (OpenSeq2Seq's encoder).
    /// The result is the same, with less computation.
    #[serde(default)]
    pub remove_padding: bool,
}

/// The decoder's stack of Transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformerDecoderSpec {
    /// Number of layers.
    pub layers: u32,
    /// Number of attention heads. It divides the model's width.
    pub heads: u32,
    /// Inner width of the feed-forward part.
    pub ffn: u32,
    /// Position of the norm in a layer. `pre` adds a norm after the last layer.
    pub norm: NormPlace,
    /// Epsilon of the norms, added to the variance.
    pub norm_epsilon: f64,
    /// Whether the attention projections have biases.
    pub attention_bias: bool,
    /// Initialiser of the projections.
    pub init: LinearInit,
    /// Dropout rate of each sub-layer's output.
    pub dropout: f64,
    /// Dropout rate of the attention weights.
    pub attention_dropout: f64,
    /// Dropout rate after the feed-forward activation.
    pub activation_dropout: f64,
    /// Input before the first target token.
    pub start: DecoderStart,
    /// Whether the target sequence itself begins with the begin token.
    /// The model then learns to write it (OpenSeq2Seq's `use_start_token`).
    #[serde(default)]
    pub begin_token_in_target: bool,
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

/// Position of the norm in a Transformer layer.
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
    /// Xavier uniform (Glorot and Bengio 2010), TensorFlow's default.
    XavierUniform,
    /// fairseq's: Xavier uniform, with gain 1/sqrt(2) for the query, key and value projections.
    Fairseq,
}
