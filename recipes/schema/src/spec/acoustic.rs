//! Encoders of speech: the layers between features and the classes of a frame.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Layers from the features on, one after the other, and a projection to the classes behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcousticSpec {
    /// Initialiser of convolutions, dense layers and the projection.
    pub init: AcousticInit,
    /// Initialiser of the projection, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_init: Option<AcousticInit>,
    /// The batch norms.
    pub norm: BatchNormSpec,
    /// What the frames behind an utterance's end are in training. Inference never sees them.
    #[serde(default, skip_serializing_if = "PaddedFrames::is_default")]
    pub padded_frames: PaddedFrames,
    /// In order.
    pub layer: Vec<AcousticLayerSpec>,
}

/// See [`AcousticSpec::init`]. Biases start at 0 but for `torch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcousticInit {
    /// Glorot and Bengio 2010, uniform.
    XavierUniform,
    /// The same, normal.
    XavierNormal,
    /// The same, normal and cut off at two deviations of sqrt(1.3 x 2 / (fan in + fan out)), which leaves the deviation of `xavier-normal`
    /// (TensorFlow's `xavier_initializer(uniform=False)`).
    XavierTruncatedNormal,
    /// PyTorch's own: weights and biases uniform in 1 / sqrt(fan in).
    Torch,
}

/// See [`AcousticSpec::padded_frames`]. The sources of `counted` and `carried` evaluate one utterance at a time, which has no padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PaddedFrames {
    /// They do not count in batch norms, and are zeros before every layer: what is said of an utterance does not depend on its batch.
    #[default]
    LeftOut,
    /// They count in batch norms, and are zeros before every layer (Jasper: OpenSeq2Seq's `use_conv_mask`, NVIDIA's `MaskedConv1d`).
    Counted,
    /// They count in batch norms, and a layer reads what the one before made of them (OpenSeq2Seq's Wave2Letter and Deep Speech 2).
    /// Recurrent layers read no padding in any case.
    Carried,
}

impl PaddedFrames {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Batch norm over the frames of all utterances. Whether padding counts is said by [`AcousticSpec::padded_frames`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchNormSpec {
    /// Added to the variance.
    pub epsilon: f64,
    /// Share of a new batch in the running statistics: PyTorch's `momentum`, 1 less TensorFlow's.
    pub momentum: f64,
    /// Learned scale and shift.
    #[serde(default = "yes")]
    pub affine: bool,
    /// The running variance is of n - 1 (PyTorch, and TensorFlow's fused kernel), not of n.
    #[serde(default = "yes")]
    pub unbiased: bool,
}

/// A kind of layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AcousticLayerSpec {
    /// Over time and frequency, batch norm, activation.
    Convolution2d(Convolution2dSpec),
    /// Over time: blocks of convolution, batch norm, activation, dropout.
    Convolution(ConvolutionSpec),
    /// LSTM or GRU layers.
    Recurrent(RecurrentSpec),
    /// Each channel over some frames (Amodei et al. 2016, section 3.7), batch norm, activation.
    RowConvolution(RowConvolutionSpec),
    /// Every frame by itself: affine map, activation, dropout.
    Dense(DenseSpec),
}

/// See [`AcousticLayerSpec::Convolution2d`]. Zeros keep ceil(size / stride) positions on both axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Convolution2dSpec {
    /// Channels of the output.
    pub channels: u32,
    /// Taps over time and over frequency.
    pub kernel: [u32; 2],
    /// The same.
    pub stride: [u32; 2],
    /// Behind the norm.
    pub activation: Activation,
}

/// See [`AcousticLayerSpec::Convolution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionSpec {
    /// Convolutions, one after the other.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Channels of their outputs.
    pub channels: u32,
    /// Taps.
    pub kernel: u32,
    /// Frames from one output to the next; of a block of one.
    #[serde(default = "one")]
    pub stride: u32,
    /// Frames from one tap to the next.
    #[serde(default = "one")]
    pub dilation: u32,
    /// What stands beside the frames.
    #[serde(default)]
    pub padding: FramePadding,
    /// Each channel by itself over time, then all channels of a frame (depthwise separable).
    #[serde(default)]
    pub separable: bool,
    /// A bias in the convolution: a norm that shifts makes it idle.
    #[serde(default)]
    pub bias: bool,
    /// What is added to the last norm's output before its activation.
    #[serde(default)]
    pub residual: Residual,
    /// Behind the norm, or before it.
    pub activation: Activation,
    /// The activation stands before the norm.
    #[serde(default)]
    pub activation_before_norm: bool,
    /// Drop rate.
    #[serde(default)]
    pub dropout: f64,
}

/// See [`ConvolutionSpec::padding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FramePadding {
    /// Zeros, so that ceil(frames / stride) frames come out (TensorFlow's `SAME`, the odd zero behind).
    #[default]
    Same,
    /// Nothing: the kernel's reach is lost.
    None,
}

/// See [`ConvolutionSpec::residual`]. Each addend is projected by a convolution of one tap and has a norm of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Residual {
    /// Nothing.
    #[default]
    None,
    /// The block's input.
    Block,
    /// The inputs of this block and of all `dense` ones before it (Jasper's dense residual).
    Dense,
}

/// Behind a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing.
    None,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 20).
    #[serde(rename = "relu-20")]
    Relu20,
}

/// See [`AcousticLayerSpec::Recurrent`]. Every layer but the first reads all outputs of the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurrentSpec {
    /// Kind of cell.
    pub cell: RecurrentCell,
    /// Layers.
    pub layers: u32,
    /// Outputs of a direction.
    pub hidden: u32,
    /// A second layer reads from the end.
    #[serde(default)]
    pub bidirectional: bool,
    /// Bias vectors of a layer: cuDNN and PyTorch have 2, TensorFlow's own cells 1.
    pub biases: u32,
    /// Drop rate between layers.
    #[serde(default)]
    pub dropout: f64,
}

/// See [`RecurrentSpec::cell`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentCell {
    /// Long short-term memory.
    Lstm,
    /// Gated recurrent units, the reset gate behind the product (cuDNN).
    Gru,
}

/// See [`AcousticLayerSpec::RowConvolution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowConvolutionSpec {
    /// Taps; zeros keep the frames, the odd one behind (OpenSeq2Seq centres them, the paper looks ahead alone).
    pub width: u32,
    /// Behind the norm.
    pub activation: Activation,
}

/// See [`AcousticLayerSpec::Dense`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DenseSpec {
    /// Outputs.
    pub units: u32,
    /// Behind the map.
    pub activation: Activation,
    /// Drop rate.
    #[serde(default)]
    pub dropout: f64,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
