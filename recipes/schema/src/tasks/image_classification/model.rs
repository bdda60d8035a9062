//! The `[model]` and `[loss]` blocks of an image classification recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::PoolKind;

/// A feed-forward classifier: layers in order. The last one has as many units as there are classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassifierSpec {
    /// Layers, from the picture to the scores of the classes.
    pub layer: Vec<ClassifierLayerSpec>,
}

/// One layer of a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClassifierLayerSpec {
    /// Convolution over height and width, with a bias.
    Convolution {
        /// Output channels.
        channels: u32,
        /// Height and width of the kernel.
        kernel: u32,
        /// Step, in both directions.
        #[serde(default = "one")]
        stride: u32,
        /// Zeros on each side, in both directions.
        #[serde(default)]
        padding: u32,
        /// Initial weights.
        weights: WeightInit,
        /// Initial bias.
        bias: BiasInit,
    },
    /// Maximum or mean of squares of pixels, channel by channel. No padding; pixels that do not
    /// fill a square are left out.
    Pool {
        /// What is taken of a square.
        of: PoolKind,
        /// Height and width of the square.
        size: u32,
        /// Step, in both directions.
        stride: u32,
    },
    /// All pixels and channels as one row. Needed before the first dense layer.
    Flatten {
        /// Order of the row.
        order: FlattenOrder,
    },
    /// Linear layer, with a bias.
    Dense {
        /// Outputs.
        units: u32,
        /// Initial weights.
        weights: WeightInit,
        /// Initial bias.
        bias: BiasInit,
    },
    /// Rectified linear function.
    Relu {},
    /// Logistic function.
    Sigmoid {},
    /// Dropout; the kept values are divided by 1 - rate in training.
    Dropout {
        /// Share of values that become 0.
        rate: f64,
    },
}

/// See [`ClassifierLayerSpec::Flatten`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlattenOrder {
    /// Channels, rows, columns (PyTorch, Caffe).
    ChannelsFirst,
    /// Rows, columns, channels (TensorFlow, Keras).
    ChannelsLast,
}

/// Distribution of initial weights. The fan of a convolution counts the pixels of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WeightInit {
    /// Uniform with bound sqrt(6 / (fan in + fan out)) (PyTorch's `xavier_uniform_`, Keras's
    /// `glorot_uniform`).
    XavierUniform,
    /// Uniform with bound sqrt(3 / fan in) (Caffe's `xavier`).
    XavierFanIn,
    /// Uniform with bound 1 / sqrt(fan in) (PyTorch's default).
    Torch,
}

/// Distribution of initial biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BiasInit {
    /// Zeros.
    Zero,
    /// Uniform with bound 1 / sqrt(fan in) (PyTorch's default).
    Torch,
}

/// The training loss of a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClassifierLossSpec {
    /// Mean cross-entropy of the true class over the pictures of an update, in nats.
    CrossEntropy {},
}

fn one() -> u32 {
    1
}
