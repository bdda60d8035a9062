//! Synthesis of speech: symbols to the frames of a spectrogram (Tacotron 2), and from those to sound.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BatchNormSpec, DecoderSpec, EncoderSpec, MaxLength, RecurrentBiases};

/// Symbols to frames: the two parts that go together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SynthesisModel<'a> {
    /// Reads symbols.
    pub encoder: &'a TacotronEncoderSpec,
    /// Writes frames.
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

/// Embeddings of symbols, convolutions over them, and an LSTM both ways (Shen et al. 2018).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TacotronEncoderSpec {
    /// Width of the embeddings.
    pub width: u32,
    /// Convolutions, each with batch norm, ReLU and dropout.
    pub convolutions: FrameConvolutionsSpec,
    /// Outputs of the LSTM, of each direction.
    pub units: u32,
    /// Bias vectors of the LSTM and how they start.
    pub biases: RecurrentBiases,
    /// In training the LSTM goes over the padding of a batch, too (cuDNN's without lengths, OpenSeq2Seq).
    #[serde(default)]
    pub reads_padding: bool,
    /// How parameters start.
    pub init: SynthesisInit,
}

/// Convolutions over time of one width. In training batch norms see padding as they see what is there, as in both published systems;
/// behind an utterance's end there is nothing otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameConvolutionsSpec {
    /// How many.
    pub layers: u32,
    /// Channels.
    pub channels: u32,
    /// Taps; zeros keep the frames, the odd one behind.
    pub kernel: u32,
    /// A bias in the convolutions: a norm that shifts makes it idle.
    pub bias: bool,
    /// Drop rate behind the activation.
    pub dropout: f64,
    /// The batch norms.
    pub norm: BatchNormSpec,
}

/// How parameters of a synthesiser start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SynthesisInit {
    /// NVIDIA's Tacotron 2: Xavier uniform times the gain of what follows (ReLU sqrt 2, tanh 5/3), embeddings uniform in
    /// sqrt(6 / (symbols + width)), LSTMs and biases as PyTorch starts them, scales of batch norms uniform in [0, 1).
    Nvidia,
    /// OpenSeq2Seq's: Xavier uniform, biases 0, an LSTM's input's and recurrent weights one matrix to it.
    Openseq2seq,
}

/// Writes a frame a step (Shen et al. 2018): pre-net, LSTM layers with an attention that knows where it has been, projections to the frame
/// and to whether it is the last, and a post-net that corrects all frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TacotronDecoderSpec {
    /// What the last frame goes through.
    pub prenet: PrenetSpec,
    /// LSTM layers.
    pub layers: u32,
    /// The last of them that stands before the attention: it asks. The others get what was found beside what is below them; the first gets
    /// what was found a step before.
    pub asking_layer: u32,
    /// Outputs of a layer.
    pub units: u32,
    /// Bias vectors of a layer and how they start.
    pub biases: RecurrentBiases,
    /// Starts the forget gate's first bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// Drop rate of the layers' outputs.
    pub dropout: f64,
    /// What is dropped is missing from a layer's state, too (NVIDIA).
    #[serde(default)]
    pub state_dropout: bool,
    /// How symbols are weighed.
    pub attention: LocationAttentionSpec,
    /// What is projected to whether a frame is the last.
    pub stop_reads: StopReads,
    /// Corrects the frames. Behind all but the last of its convolutions stands tanh.
    pub postnet: FrameConvolutionsSpec,
    /// Makes magnitudes of corrected mel frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnitudes: Option<MagnitudesSpec>,
    /// How parameters start.
    pub init: SynthesisInit,
}

/// Affine maps with ReLU and a dropout that stays where nothing is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrenetSpec {
    /// Outputs of each layer.
    pub units: Vec<u32>,
    /// Biases.
    pub bias: bool,
    /// Drop rate.
    pub dropout: f64,
}

/// v · tanh(W query + U memory + filter * weights + b) (Chorowski et al. 2015).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocationAttentionSpec {
    /// Rows of W and U.
    pub units: u32,
    /// Filters over the sum of the weights so far; an affine map makes `units` of them.
    pub filters: u32,
    /// Their taps.
    pub kernel: u32,
    /// They see the last step's weights, too.
    pub last_weights: bool,
    /// b, and biases of the filters.
    pub bias: bool,
}

/// See [`TacotronDecoderSpec::stop_reads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReads {
    /// What the frame is projected from.
    Output,
    /// The frame.
    Frame,
}

/// Convolutions with batch norm and ReLU over mel frames, e to the power of that, and a projection without a bias (OpenSeq2Seq).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MagnitudesSpec {
    /// Channels of each convolution.
    pub channels: Vec<u32>,
    /// Taps.
    pub kernel: u32,
    /// The batch norms.
    pub norm: BatchNormSpec,
    /// e to the power of the last convolution's outputs is projected, and the targets are magnitudes; else both are logarithms.
    pub exponential: bool,
}

/// See [`DecodeSpec::FreeRunning`](super::DecodeSpec::FreeRunning).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeRunningSpec {
    /// The first frame whose probability to be the last is above this is the last.
    pub threshold: f64,
    /// Frames at most.
    pub max_frames: MaxLength,
    /// Sound from frames.
    pub vocoder: VocoderSpec,
}

/// Griffin and Lim 1984, with the momentum of Perraudin et al. 2013.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VocoderSpec {
    /// Times that phases are taken from their own signal.
    pub iterations: u32,
    /// Magnitudes are raised to this.
    pub power: f64,
    /// 0: the method as it was published.
    #[serde(default)]
    pub momentum: f64,
}
