//! Recurrent encoders and decoders of tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DecoderStart, RecurrentCell};

/// A stack of recurrent layers that reads tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurrentEncoderSpec {
    /// Kind of cell.
    pub cell: RecurrentCell,
    /// Layers.
    pub layers: u32,
    /// Outputs of a layer, of each direction.
    pub units: u32,
    /// Which layers read from the end too.
    pub directions: Directions,
    /// From this layer on (the first is 1) a layer's input is added to its output; absent: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_from: Option<u32>,
    /// Bias vectors and how they start.
    pub biases: RecurrentBiases,
    /// Starts the forget gate's first bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// Initialiser of weights.
    pub init: RecurrentInit,
    /// Drop rate of each layer's input.
    pub dropout: f64,
    /// Drop rate of the first layer's input, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_dropout: Option<f64>,
}

impl RecurrentEncoderSpec {
    /// Is what it writes the outputs of two directions side by side?
    pub fn writes_both_directions(&self) -> bool {
        match self.directions {
            Directions::Forward => false,
            Directions::FirstLayerBoth => self.layers == 1,
            Directions::TwoStacks => true,
        }
    }
}

/// See [`RecurrentEncoderSpec::directions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// None does.
    Forward,
    /// The first layer reads both ways; the second gets both outputs side by side (GNMT).
    FirstLayerBoth,
    /// Two stacks that know nothing of each other, side by side at the end (OpenSeq2Seq's bidirectional encoder).
    TwoStacks,
}

/// A stack of recurrent layers with attention that writes tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurrentDecoderSpec {
    /// Kind of cell.
    pub cell: RecurrentCell,
    /// Layers.
    pub layers: u32,
    /// Outputs of a layer.
    pub units: u32,
    /// From this layer on (the first is 1) a layer's input, without the context, is added to its output; absent: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_from: Option<u32>,
    /// Bias vectors and how they start.
    pub biases: RecurrentBiases,
    /// Starts the forget gate's first bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// Initialiser of weights, those of the attention too.
    pub init: RecurrentInit,
    /// Drop rate of each layer's input, the context in it included.
    pub dropout: f64,
    /// How positions of the source are weighed.
    pub attention: AttentionSpec,
    /// Where the context goes.
    pub context: ContextUse,
    /// Where the states of the layers begin; absent: at zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_state: Option<InitialState>,
    /// W of input feeding has a bias, which starts at 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub combine_bias: bool,
    /// Drop rate of what W of input feeding is multiplied with; absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combine_dropout: Option<f64>,
    /// The output projection has a bias (`model.embedding.tied` is then `none` or `inputs`).
    #[serde(default)]
    pub output_bias: bool,
    /// What stands before the first target token.
    pub start: DecoderStart,
    /// The target sequence itself begins with the begin token.
    #[serde(default)]
    pub begin_token_in_target: bool,
}

/// Scores of the source's positions; softmax makes weights of them, and the weighted sum of what the encoder wrote is the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttentionSpec {
    /// v · tanh(W query + U memory) (Bahdanau et al. 2015).
    Additive {
        /// Rows of W and U.
        units: u32,
        /// g v/|v| · tanh(W query + U memory + b) (Salimans and Kingma 2016), as GNMT has it. g starts at units^-0.5, b at 0.
        normalized: bool,
    },
    /// query · U memory (Luong et al. 2015, "general"): U has as many rows as the query.
    Multiplicative {},
}

/// See [`RecurrentDecoderSpec::context`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextUse {
    /// The first layer asks; each layer above it gets the answer beside its input. Whole sequences at once (NVIDIA's GNMT v2).
    UpperLayers,
    /// The same, and the first layer gets the last step's answer beside its input (OpenSeq2Seq's `gnmt_v2`).
    AllLayers,
    /// The last layer asks; the first layer gets the last step's answer beside its input; the answer alone is what is projected
    /// (TensorFlow's AttentionWrapper without an attention layer).
    Output,
    /// The last layer asks; tanh(W [its output; the answer]), `units` wide, is projected, and is beside the first layer's next
    /// input (Luong et al. 2015, input feeding).
    InputFeeding,
}

/// See [`RecurrentDecoderSpec::initial_state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialState {
    /// Outputs and cells of all layers at what a recurrent encoder wrote of the source's last token: what its forward layer did, where both
    /// directions lie side by side and are twice as wide (JoeyNMT's `init_hidden: last`).
    LastOfEncoder,
}

/// Bias vectors of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentBiases {
    /// One, of zeros (TensorFlow).
    OneOfZeros,
    /// Two, the first drawn as weights are, the second of zeros (NVIDIA's GNMT).
    SecondOfZeros,
    /// Two, of zeros (cuDNN in TensorFlow, JoeyNMT).
    TwoOfZeros,
    /// Two, drawn as weights are (PyTorch).
    Two,
}

/// How weights of recurrent layers and their attention start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RecurrentInit {
    /// Uniform in [-bound, bound).
    Uniform {
        /// Largest size.
        bound: f64,
    },
    /// Glorot and Bengio 2010, uniform; input's and recurrent weights are one matrix to it (TensorFlow's default).
    XavierUniform,
    /// The same of each gate's two matrices by themselves (JoeyNMT).
    XavierUniformOfGates,
    /// Uniform in units^-0.5 (PyTorch's default).
    Torch,
}
