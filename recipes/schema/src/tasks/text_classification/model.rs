//! The `[model]` and `[loss]` blocks of a text classification recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::PoolKind;

/// A classifier of texts: layers in order. The first one is an embedding, the last one is dense.
/// Biases start at 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextClassifierSpec {
    /// Layers, from the numbers of words to the scores of the classes.
    pub layer: Vec<TextLayerSpec>,
}

/// One layer of a classifier of texts. Layers before `over-positions`, `kernels` or an LSTM compute
/// numbers for each position; layers behind them compute numbers for each text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextLayerSpec {
    /// A vector for each number.
    Embedding {
        /// Numbers of a vector.
        width: u32,
        /// Initial vectors.
        weights: TextWeightInit,
        /// Whether the vector of padding is 0 and stays 0. Otherwise it is learned as any other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        zero_padding: bool,
        /// Dropout of single elements of the matrix of vectors, once a batch: all places of a word
        /// lose the same elements. 0: none.
        #[serde(default, skip_serializing_if = "is_zero")]
        element_dropout: f64,
    },
    /// Convolution over positions without padding, with a bias.
    Convolution {
        /// Output channels.
        channels: u32,
        /// Positions of the kernel.
        kernel: u32,
        /// Initial weights.
        weights: TextWeightInit,
    },
    /// Convolutions side by side, each with a bias, ReLU, and the maximum over positions (Kim
    /// 2014).
    Kernels {
        /// Output channels of each.
        channels: u32,
        /// Positions of each kernel.
        kernels: Vec<u32>,
        /// Initial weights.
        weights: TextWeightInit,
    },
    /// Maximum or mean of neighbouring positions, channel by channel. Positions that do not fill a
    /// group are left out.
    Pool {
        /// What is taken of a group.
        of: PoolKind,
        /// Positions of a group.
        size: u32,
    },
    /// Maximum or mean over all positions, padding included.
    OverPositions {
        /// What is taken of the positions.
        of: PoolKind,
    },
    /// LSTM; its output is that of the last position. Keras's: Glorot weights, an orthogonal
    /// recurrent weight, and a bias that is 1 for the forget gate, else 0.
    Lstm {
        /// Outputs.
        units: u32,
        /// Function of the gates.
        gates: GateFunction,
        /// Whether a second LSTM reads from the last position to the first. Its output at the first
        /// position is appended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        bidirectional: bool,
    },
    /// A stack of layer-normalised LSTM layers without biases, as in a language model of the kind
    /// `layer-norm-lstm`; its output is of the state of the last layer behind the last word.
    /// Padding without a vector is not read. Initial weights are Glorot uniform.
    LayerNormLstm {
        /// Units of each layer before the last one.
        units: u32,
        /// Units of the last layer.
        width: u32,
        /// Number of layers.
        layers: u32,
        /// Dropout of the candidate of the new cell state, new at every step. 0: none.
        candidate_dropout: f64,
        /// Dropout of each layer's output on its way to the next layer, new at every step. 0: none.
        dropout: f64,
        /// Number that is added to the forget gate before its sigmoid.
        forget_bias: f64,
        /// Epsilon of the layer norms.
        epsilon: f64,
        /// What of the state is the output.
        state: StateOutput,
    },
    /// Linear layer, with a bias.
    Dense {
        /// Outputs.
        units: u32,
        /// Initial weights.
        weights: TextWeightInit,
        /// Euclidean norm of the weights of each output, to which they are rescaled after every
        /// update (sent-conv-torch; Kim's own code only reduces larger norms). Absent: they are
        /// left as they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        row_norm: Option<f64>,
    },
    /// Rectified linear function.
    Relu {},
    /// Dropout; the kept values are divided by 1 - rate in training.
    Dropout {
        /// Share of values that become 0.
        rate: f64,
    },
}

/// See [`TextLayerSpec::LayerNormLstm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateOutput {
    /// The layer's output.
    Output,
    /// The layer's output, then its cell state (OpenSeq2Seq's `use_cell_state`).
    OutputAndCell,
}

/// Function of the gates of an LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateFunction {
    /// Logistic function.
    Sigmoid,
    /// Keras 2's `hard_sigmoid`: 0.2 x + 0.5, within 0 and 1.
    HardSigmoid,
}

/// Distribution of initial weights. The fan of a convolution counts the positions of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextWeightInit {
    /// Uniform with bound sqrt(6 / (fan in + fan out)) (Keras's `glorot_uniform`).
    XavierUniform {},
    /// Uniform.
    Uniform {
        /// Bound of the absolute value.
        bound: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
}

/// The training loss of a classifier of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextLossSpec {
    /// Mean cross-entropy of the true class over the texts of an update, in nats. The model has an
    /// output for each class.
    CrossEntropy {},
    /// The same for two classes and one output, whose sigmoid is the probability of the second
    /// class.
    BinaryCrossEntropy {},
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(rate: &f64) -> bool {
    *rate == 0.0
}

impl TextLossSpec {
    /// Outputs of a model for `classes` classes.
    pub fn outputs(self, classes: u32) -> u32 {
        match self {
            Self::CrossEntropy {} => classes,
            Self::BinaryCrossEntropy {} => 1,
        }
    }
}
