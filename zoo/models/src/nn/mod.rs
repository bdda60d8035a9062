//! Layers, and what classifiers share (`classifier`). A layer holds FP32 parameters and casts them
//! to the compute type of the pass for its products.

mod attention;
mod batch_norm;
mod classifier;
mod conv;
mod embedding;
mod feed_forward;
mod gru;
mod init;
mod layer_norm;
mod layer_norm_lstm;
mod linear;
mod lstm;
mod normalized;
mod positions;
mod projection;
mod recurrent;
mod sampled_softmax;
mod seen;

pub use attention::Attention;
pub use batch_norm::{BatchNorm, BatchNormSpec};
pub use classifier::{class_counts, class_scores, class_terms};
pub(crate) use conv::same;
pub use conv::{Channels, Conv1d, Conv2d, ConvInit};
pub use embedding::Embedding;
pub use feed_forward::FeedForward;
pub use gru::Gru;
pub use init::Init;
pub use layer_norm::LayerNorm;
pub use layer_norm_lstm::{LayerNormLstm, LayerNormLstmSpec};
pub use linear::Linear;
pub use lstm::{Lstm, LstmState};
pub use normalized::{NormalizedConv1d, NormalizedLinear};
pub use positions::PositionTable;
pub use recurrent::{Biases, Bidirectional, LayerState, Recurrent, RecurrentLayer};
pub use sampled_softmax::{Candidates, sampled_softmax};
pub use seen::Seen;
