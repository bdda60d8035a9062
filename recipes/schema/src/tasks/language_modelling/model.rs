//! The `[model]` and `[loss]` blocks of a language modelling recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::RecurrentBiases;

/// A language model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LanguageModelSpec {
    /// A stack of LSTM layers between an embedding and a softmax.
    Lstm(LstmModelSpec),
    /// A stack of layer-normalised LSTM layers whose softmax is tied to the embedding
    /// (OpenSeq2Seq).
    LayerNormLstm(LayerNormLstmModelSpec),
    /// A decoder of pre-norm Transformer blocks (GPT-2), with learned positions and no biases; its
    /// softmax is tied to the embedding.
    Gpt(GptModelSpec),
}

/// Settings of [`LanguageModelSpec::Lstm`]. Gates are sigmoids; there are no peepholes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LstmModelSpec {
    /// Width of the embedding.
    pub width: u32,
    /// Units of each layer.
    pub units: u32,
    /// Number of layers.
    pub layers: u32,
    /// Whether the softmax has the embedding as its weights. `width` must equal `units`, or the
    /// projection's width.
    pub tied: bool,
    /// Dropout of the embedding's output and of each layer's output, new at every step. 0: none.
    pub dropout: f64,
    /// Bias vectors of a layer.
    pub biases: RecurrentBiases,
    /// Bound of the uniform initial weights of the layers, and of their biases if these are drawn.
    /// Absent: 1 / sqrt(units) (PyTorch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Bound of the uniform initial weights of embedding and softmax.
    pub embedding_bound: f64,
    /// Bound of the uniform initial biases of the softmax. 0: zeros.
    pub softmax_bias_bound: f64,
    /// First value of the biases of the forget gates, in the first bias vector. Absent: that of the
    /// other biases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// A linear map of each layer's output. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<ProjectionSpec>,
}

/// A linear map, without a bias, of the output of an LSTM layer. Its result takes the output's
/// place also in the layer's own next step (Sak et al. 2014).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectionSpec {
    /// Width of the result.
    pub width: u32,
    /// Bound of the uniform initial weights.
    pub bound: f64,
}

impl LstmModelSpec {
    /// Width of the output of a layer.
    pub fn output(&self) -> u32 {
        self.projection.map_or(self.units, |projection| projection.width)
    }

    /// Bound of the initial weights of the layers.
    pub fn layer_bound(&self) -> f64 {
        self.bound.unwrap_or_else(|| f64::from(self.units).powf(-0.5))
    }
}

/// Settings of [`LanguageModelSpec::LayerNormLstm`]. The layers have no biases. Each gate, and the
/// new cell state before it is stored, has a layer norm with scale and shift (OpenSeq2Seq's
/// `WeightDropLayerNormBasicLSTMCell` without dropped weights). Initial weights are Glorot uniform.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerNormLstmModelSpec {
    /// Width of the embedding, and units of the last layer.
    pub width: u32,
    /// Units of each layer before the last one.
    pub units: u32,
    /// Number of layers.
    pub layers: u32,
    /// Dropout of single elements of the embedding matrix, once a batch. The softmax reads the
    /// matrix without it. 0: none.
    pub embedding_dropout: f64,
    /// Dropout of the candidate of the new cell state, new at every step. 0: none.
    pub candidate_dropout: f64,
    /// Dropout of each layer's output, new at every step. The layer's own next step reads the
    /// output without it. 0: none.
    pub dropout: f64,
    /// Number that is added to the forget gate before its sigmoid.
    pub forget_bias: f64,
    /// Bound of the uniform initial weights of the embedding.
    pub embedding_bound: f64,
    /// Epsilon of the layer norms.
    pub epsilon: f64,
}

impl LayerNormLstmModelSpec {
    /// Width of the input, and units of a layer. The last layer is as wide as the embedding.
    pub fn layer(&self, at: u32) -> [u32; 2] {
        let hidden = |at: u32| if at + 1 == self.layers { self.width } else { self.units };
        [if at == 0 { self.width } else { hidden(at - 1) }, hidden(at)]
    }
}

/// Settings of [`LanguageModelSpec::Gpt`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GptModelSpec {
    /// Width of the residual stream. The feed-forward layers have four times as many units.
    pub width: u32,
    /// Number of blocks.
    pub layers: u32,
    /// Attention heads of a block.
    pub heads: u32,
    /// Number of learned positions: the longest window.
    pub context: u32,
    /// Dropout of the embedding, of the attention weights, and of both branches of a block.
    pub dropout: f64,
    /// Standard deviation of the normal initial weights. The two projections onto the residual
    /// stream have this divided by sqrt(2 layers).
    pub init_std: f64,
    /// Epsilon of the layer norms.
    pub epsilon: f64,
}

/// The training loss of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LanguageLossSpec {
    /// Cross-entropy of the next unit, in nats.
    CrossEntropy {
        /// How the units of a window are put together.
        over: LossOver,
    },
    /// In training, the cross-entropy among the next unit and some units that are drawn, whose
    /// scores are corrected by their probabilities: TensorFlow's `sampled_softmax_loss` with its
    /// log-uniform sampler, for which frequent units have low numbers. Drawn units are different;
    /// one that is the next unit itself is left out. In evaluation, the cross-entropy of the next
    /// unit.
    SampledSoftmax {
        /// How the units of a window are put together.
        over: LossOver,
        /// Number of units that are drawn; all but one, if the text has fewer.
        sampled: u32,
        /// Number of draws: parts of the rows of a batch, each with drawn units of its own (the
        /// GPUs of the source).
        #[serde(default = "one", skip_serializing_if = "is_one")]
        draws: u32,
    },
}

impl LanguageLossSpec {
    /// How the units of a window are put together.
    pub fn over(&self) -> LossOver {
        match self {
            Self::CrossEntropy { over } | Self::SampledSoftmax { over, .. } => *over,
        }
    }
}

fn one() -> u32 {
    1
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// See [`LanguageLossSpec::CrossEntropy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossOver {
    /// The mean over all units of a batch (PyTorch).
    Mean,
    /// The sum over the steps of a window of the mean over the rows (TensorFlow's `ptb` tutorial):
    /// `data.batching.steps` times the mean, so that a limit of the gradient's norm is as much
    /// tighter.
    SumOfSteps,
}
