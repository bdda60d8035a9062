//! Translation: a model of an encoder and a decoder of tokens, and its loss.

mod batch;
mod cost;
mod loss;
mod memory;
mod parts;
mod seq2seq;

pub use batch::PairBatch;
pub use cost::cost;
pub use loss::TranslationLoss;
pub use memory::{Memory, Sources};
pub use parts::{Decoder, Encoder, TokenDecoder, TokenEncoder};
pub use seq2seq::{DecodingState, Output, Seq2Seq, Vocabularies, Writer};
