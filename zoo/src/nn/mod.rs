//! Layers. Each holds FP32 parameters and casts to the pass's compute type where it multiplies.

mod attention;
mod batch_norm;
mod conv;
mod embedding;
mod feed_forward;
mod gru;
mod init;
mod layer_norm;
mod linear;
mod lstm;
mod positions;

pub use attention::Attention;
pub use batch_norm::{BatchNorm, BatchNormSpec};
pub use conv::{Channels, Conv1d, Conv2d, ConvInit};
pub use embedding::Embedding;
pub use feed_forward::FeedForward;
pub use gru::{BiGru, Gru};
pub use init::Init;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use lstm::{BiLstm, Lstm, LstmState};
pub use positions::PositionTable;

/// How many bias vectors a recurrent layer has. Two that are added have one gradient, but an optimizer moves both: it is not the
/// same as one. (A GRU's second is no mere addition.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Biases {
    /// None.
    None,
    /// The input's.
    One,
    /// The input's and the recurrent part's, as PyTorch and cuDNN have them.
    Two,
}
