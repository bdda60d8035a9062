//! Models: a spec becomes a Burn module here. One part or family a file.

pub mod acoustic;
mod batch;
mod cost;
mod seq2seq;
mod speech;
mod transformer;
mod translation_loss;

pub use batch::{Packed, PairBatch};
pub use cost::{Cost, cost};
pub use seq2seq::{DecodingState, Seq2Seq, Vocabularies, Writer};
pub use speech::{CtcClasses, CtcLoss, SpeechBatch};
pub use transformer::{TransformerDecoder, TransformerEncoder};
pub use translation_loss::TranslationLoss;
