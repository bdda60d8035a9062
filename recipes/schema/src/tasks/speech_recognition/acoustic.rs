//! Speech encoders: the layers between the features and the classes of a frame.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{BatchNormSpec, RecurrentCell};

/// A stack of layers over the features, followed by a projection to the classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcousticSpec {
    /// Initialiser of convolutions, dense layers and the projection.
    pub init: AcousticInit,
    /// Initialiser of the projection. Absent: `init`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_init: Option<AcousticInit>,
    /// Settings of all batch norms.
    pub norm: BatchNormSpec,
    /// How training treats the padding after an utterance's end. Inference never sees padding.
    #[serde(default, skip_serializing_if = "PaddedFrames::is_default")]
    pub padded_frames: PaddedFrames,
    /// The layers, first to last.
    pub layer: Vec<AcousticLayerSpec>,
}

/// Initialiser of weights. Biases start at 0, except with `torch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcousticInit {
    /// Xavier uniform (Glorot and Bengio 2010).
    XavierUniform,
    /// Xavier normal (Glorot and Bengio 2010).
    XavierNormal,
    /// Xavier normal, truncated at two standard deviations.
    /// The deviation before the cut is sqrt(1.3 x 2 / (fan in + fan out)), so the truncated
    /// distribution has the deviation of `xavier-normal` (TensorFlow's
    /// `xavier_initializer(uniform=False)`).
    XavierTruncatedNormal,
    /// PyTorch's default: weights and biases uniform with bound 1 / sqrt(fan in).
    Torch,
}

/// How training treats padding frames. The sources of `counted` and `carried` evaluate one
/// utterance at a time, without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PaddedFrames {
    /// Batch norms ignore padding, and padding is set to zero before every layer.
    /// The output for an utterance does not depend on the rest of its batch.
    #[default]
    LeftOut,
    /// Batch norms count padding, and padding is set to zero before every layer (Jasper:
    /// OpenSeq2Seq's `use_conv_mask`, NVIDIA's `MaskedConv1d`).
    Counted,
    /// Batch norms count padding, and a layer reads the previous layer's outputs on it
    /// (OpenSeq2Seq's Wave2Letter and Deep Speech 2). Recurrent layers never read padding.
    Carried,
}

impl PaddedFrames {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One layer of a speech encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AcousticLayerSpec {
    /// Convolution over time and frequency, batch norm, activation.
    Convolution2d(Convolution2dSpec),
    /// A block of convolutions over time, each with batch norm, activation and dropout.
    Convolution(ConvolutionSpec),
    /// A stack of LSTM or GRU layers.
    Recurrent(RecurrentSpec),
    /// Row convolution: each channel separately over a few frames (Amodei et al. 2016, section
    /// 3.7), then batch norm and activation.
    RowConvolution(RowConvolutionSpec),
    /// Dense layer on each frame separately: affine map, activation, dropout.
    Dense(DenseSpec),
}

impl AcousticLayerSpec {
    /// Whether the layer has batch norms.
    pub(super) fn has_norm(&self) -> bool {
        match self {
            Self::Convolution2d(_) | Self::Convolution(_) | Self::RowConvolution(_) => true,
            Self::Recurrent(_) | Self::Dense(_) => false,
        }
    }
}

/// Convolution over time and frequency. Zero padding gives ceil(size / stride) positions on both
/// axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Convolution2dSpec {
    /// Number of output channels.
    pub channels: u32,
    /// Kernel size over time and over frequency.
    pub kernel: [u32; 2],
    /// Stride over time and over frequency.
    pub stride: [u32; 2],
    /// Activation after the norm.
    pub activation: Activation,
}

/// A block of convolutions over time, each with batch norm, activation and dropout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionSpec {
    /// Number of convolutions in the block, one after the other.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Number of output channels of each convolution.
    pub channels: u32,
    /// Kernel size, in frames.
    pub kernel: u32,
    /// Stride, in frames. Above 1 only if `repeat` is 1.
    #[serde(default = "one")]
    pub stride: u32,
    /// Distance between two taps of the kernel, in frames.
    #[serde(default = "one")]
    pub dilation: u32,
    /// Padding before the first and after the last frame.
    #[serde(default)]
    pub padding: FramePadding,
    /// Whether convolutions are depthwise separable: each channel over time, then all channels.
    #[serde(default)]
    pub separable: bool,
    /// Whether the convolutions have a bias. It has no effect before a norm with a shift.
    #[serde(default)]
    pub bias: bool,
    /// Residual that is added to the last norm's output, before its activation.
    #[serde(default)]
    pub residual: Residual,
    /// Activation after the norm, or before it: see `activation_before_norm`.
    pub activation: Activation,
    /// Whether the activation precedes the norm.
    #[serde(default)]
    pub activation_before_norm: bool,
    /// Dropout rate.
    #[serde(default)]
    pub dropout: f64,
}

/// Padding of a convolution over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FramePadding {
    /// Zeros, so that ceil(frames / stride) frames come out (TensorFlow's `SAME`: an odd zero goes
    /// after the last frame).
    #[default]
    Same,
    /// No padding: the output is shorter than the input by the kernel's reach.
    None,
}

/// Residual of a block. Each added input has its own projection (a convolution with kernel size 1)
/// and its own norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Residual {
    /// No residual.
    #[default]
    None,
    /// The block's input.
    Block,
    /// The inputs of this block and of all earlier `dense` blocks (Jasper's dense residual).
    Dense,
}

/// Activation function of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Identity.
    None,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 20).
    #[serde(rename = "relu-20")]
    Relu20,
}

/// A stack of LSTM or GRU layers. Every layer but the first reads the previous layer's outputs of
/// all directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurrentSpec {
    /// Kind of the recurrent cell.
    pub cell: RecurrentCell,
    /// Number of layers.
    pub layers: u32,
    /// Number of units in each direction.
    pub hidden: u32,
    /// Whether each layer also reads the frames backwards.
    #[serde(default)]
    pub bidirectional: bool,
    /// Bias vectors of a layer: 2 in cuDNN and PyTorch, 1 in TensorFlow's own cells.
    pub biases: u32,
    /// Dropout rate between layers.
    #[serde(default)]
    pub dropout: f64,
}

/// Row convolution: each channel separately over a few frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowConvolutionSpec {
    /// Kernel size, in frames.
    /// Zero padding keeps the number of frames; an odd zero goes after the last frame. OpenSeq2Seq
    /// centres the kernel; the paper looks ahead only.
    pub width: u32,
    /// Activation after the norm.
    pub activation: Activation,
}

/// Dense layer on each frame separately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DenseSpec {
    /// Number of outputs.
    pub units: u32,
    /// Activation after the affine map.
    pub activation: Activation,
    /// Dropout rate.
    #[serde(default)]
    pub dropout: f64,
}

fn one() -> u32 {
    1
}
