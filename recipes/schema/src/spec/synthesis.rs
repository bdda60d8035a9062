//! Speech synthesis: from symbols to the frames of a spectrogram (Tacotron 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BatchNormSpec, DecoderSpec, EncoderSpec, RecurrentBiases};

/// A synthesis model: the encoder and the decoder, which go together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SynthesisModel<'a> {
    /// The encoder, which reads symbols.
    pub encoder: &'a TacotronEncoderSpec,
    /// The decoder, which writes frames.
    pub decoder: &'a TacotronDecoderSpec,
}

impl<'a> SynthesisModel<'a> {
    pub(super) fn of(encoder: &'a EncoderSpec, decoder: &'a DecoderSpec) -> Option<Self> {
        match (encoder, decoder) {
            (EncoderSpec::Tacotron(encoder), DecoderSpec::Tacotron(decoder)) => {
                Some(Self { encoder, decoder })
            }
            _ => None,
        }
    }
}

/// Tacotron 2's encoder: symbol embeddings, convolutions over them, and a bidirectional LSTM (Shen
/// et al. 2018).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TacotronEncoderSpec {
    /// Width of the embeddings.
    pub width: u32,
    /// Convolutions, each with batch norm, ReLU and dropout.
    pub convolutions: FrameConvolutionsSpec,
    /// Number of LSTM units in each direction.
    pub units: u32,
    /// Bias vectors of the LSTM and their initial values.
    pub biases: RecurrentBiases,
    /// Whether the LSTM also reads the padding of a batch in training.
    /// This is cuDNN without sequence lengths (OpenSeq2Seq).
    #[serde(default)]
    pub reads_padding: bool,
    /// Initialiser of parameters.
    pub init: SynthesisInit,
}

/// Convolutions over time, all of one width. In training, batch norms count padding like any other
/// frame, as in both published systems. Otherwise padding is treated as absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameConvolutionsSpec {
    /// Number of convolutions.
    pub layers: u32,
    /// Number of channels.
    pub channels: u32,
    /// Kernel size, in frames. Zero padding keeps the number of frames; an odd zero goes last.
    pub kernel: u32,
    /// Whether the convolutions have a bias. It has no effect before a norm with a shift.
    pub bias: bool,
    /// Dropout rate after the activation.
    pub dropout: f64,
    /// Settings of the batch norms.
    pub norm: BatchNormSpec,
}

/// Initialiser of a speech synthesiser's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SynthesisInit {
    /// NVIDIA's Tacotron 2: Xavier uniform times the gain of the following activation (ReLU sqrt 2,
    /// tanh 5/3). Embeddings are uniform with bound sqrt(6 / (symbols + width)), LSTMs and biases
    /// use PyTorch's defaults, and the scales of batch norms are uniform in [0, 1).
    Nvidia,
    /// OpenSeq2Seq's: Xavier uniform with zero biases.
    /// An LSTM's input and recurrent weights count as one matrix.
    Openseq2seq,
}

/// Tacotron 2's decoder, which writes one frame per step (Shen et al. 2018): a pre-net, LSTM layers
/// with location-sensitive attention, projections to the frame and to the stop prediction, and a
/// post-net that corrects all frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TacotronDecoderSpec {
    /// Pre-net, which the previous frame passes through.
    pub prenet: PrenetSpec,
    /// Number of LSTM layers.
    pub layers: u32,
    /// Layer, counted from 1, whose output is the attention's query.
    /// The layer above it also reads the context; the first layer also reads the previous step's
    /// context.
    pub asking_layer: u32,
    /// Number of units of a layer.
    pub units: u32,
    /// Bias vectors of a layer and their initial values.
    pub biases: RecurrentBiases,
    /// Initial value of the forget gate's first bias. Absent: as `biases` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// Dropout rate of the layers' outputs.
    pub dropout: f64,
    /// Whether the dropout also applies to the layers' recurrent state (NVIDIA).
    #[serde(default)]
    pub state_dropout: bool,
    /// Attention over the symbols.
    pub attention: LocationAttentionSpec,
    /// Input of the stop prediction.
    pub stop_reads: StopReads,
    /// Post-net, which corrects the frames. Tanh follows every convolution but the last.
    pub postnet: FrameConvolutionsSpec,
    /// Network that computes magnitudes from corrected mel frames. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnitudes: Option<MagnitudesSpec>,
    /// Initialiser of parameters.
    pub init: SynthesisInit,
}

/// Pre-net: affine maps with ReLU and with dropout that is also active at inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrenetSpec {
    /// Number of outputs of each layer.
    pub units: Vec<u32>,
    /// Whether the affine maps have biases.
    pub bias: bool,
    /// Dropout rate, at inference too.
    pub dropout: f64,
}

/// Location-sensitive attention: v · tanh(W query + U memory + filter * weights + b) (Chorowski et
/// al. 2015).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocationAttentionSpec {
    /// Number of rows of W and U.
    pub units: u32,
    /// Number of filters over the sum of all earlier attention weights.
    /// An affine map turns their outputs into `units` values.
    pub filters: u32,
    /// Kernel size of the filters, in symbols.
    pub kernel: u32,
    /// Whether the filters also read the previous step's weights.
    pub last_weights: bool,
    /// Whether there is the bias b, and biases of the filters.
    pub bias: bool,
}

/// Input of the stop prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReads {
    /// The vector from which the frame is projected.
    Output,
    /// The frame itself.
    Frame,
}

/// Network from mel frames to magnitudes: convolutions with batch norm and ReLU, optionally an
/// exponential, and a projection without bias (OpenSeq2Seq).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MagnitudesSpec {
    /// Number of channels of each convolution.
    pub channels: Vec<u32>,
    /// Kernel size, in frames.
    pub kernel: u32,
    /// Settings of the batch norms.
    pub norm: BatchNormSpec,
    /// Whether the projection reads exp(x) of the last convolution's outputs x.
    /// The targets are then magnitudes. Otherwise both are logarithms.
    pub exponential: bool,
}
