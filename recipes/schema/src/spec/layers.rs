//! Settings of layers that models of several tasks have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pooling layer takes of the pixels of a square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolKind {
    /// Maximum; of equal ones the first gets the gradient, row by row.
    Max,
    /// Mean.
    Average,
}

/// Batch norm. In speech recognition, `model.encoder.padded_frames` decides whether padding counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchNormSpec {
    /// Epsilon, added to the variance.
    pub epsilon: f64,
    /// Weight of a new batch in the running statistics.
    /// PyTorch's `momentum`; 1 - TensorFlow's `momentum`.
    pub momentum: f64,
    /// Whether the norm has a learned scale and shift.
    #[serde(default = "yes")]
    pub affine: bool,
    /// Whether the running variance divides by n - 1, not by n.
    /// PyTorch and TensorFlow's fused kernel divide by n - 1.
    #[serde(default = "yes")]
    pub unbiased: bool,
}

/// Kind of a recurrent cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentCell {
    /// Long short-term memory.
    Lstm,
    /// Gated recurrent unit, with the reset gate applied after the product (cuDNN).
    Gru,
}

/// Bias vectors of a recurrent layer and their initial values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentBiases {
    /// One vector, initially zeros (TensorFlow).
    OneOfZeros,
    /// Two vectors: the first is initialised as the weights are, the second with zeros (NVIDIA's
    /// GNMT).
    SecondOfZeros,
    /// Two vectors, initially zeros (cuDNN in TensorFlow, JoeyNMT).
    TwoOfZeros,
    /// Two vectors, initialised as the weights are (PyTorch).
    Two,
}

impl RecurrentBiases {
    /// The same number of vectors, without their initial values.
    pub fn kind(self) -> Self {
        match self {
            Self::OneOfZeros => Self::OneOfZeros,
            Self::SecondOfZeros | Self::TwoOfZeros | Self::Two => Self::Two,
        }
    }
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

impl Tying {
    /// Whether the output projection has a matrix of its own.
    pub fn has_own_output(self) -> bool {
        matches!(self, Self::Inputs | Self::None)
    }

    /// Whether the target table is a matrix of its own.
    pub fn has_own_target(self) -> bool {
        matches!(self, Self::Decoder | Self::None)
    }
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

fn yes() -> bool {
    true
}
