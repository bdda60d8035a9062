//! Models: builds a Burn module from a spec. Each file holds one part or one family.

pub mod acoustic;
mod batch;
mod convolutional;
mod cost;
mod memory;
mod recurrent;
mod seen;
mod seq2seq;
mod speech;
pub mod synthesis;
mod transformer;
mod translation_loss;

pub use batch::{Packed, PairBatch};
pub use convolutional::{ConvolutionalDecoder, ConvolutionalEncoder};
pub use cost::{Cost, cost};
pub use memory::{Memory, Sources};
pub use recurrent::{RecurrentDecoder, RecurrentEncoder};
pub use seq2seq::{DecodingState, Seq2Seq, Vocabularies, Writer};
pub use speech::{CtcClasses, CtcLoss, SpeechBatch};
pub use transformer::{TransformerDecoder, TransformerEncoder};
pub use translation_loss::TranslationLoss;
