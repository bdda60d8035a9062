//! Layers. Each holds FP32 parameters and casts to the pass's compute type where it multiplies.

mod attention;
mod embedding;
mod feed_forward;
mod init;
mod layer_norm;
mod linear;
mod positions;

pub use attention::Attention;
pub use embedding::Embedding;
pub use feed_forward::FeedForward;
pub use init::Init;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use positions::PositionTable;
