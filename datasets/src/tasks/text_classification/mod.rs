//! Text classification: labelled texts as numbers of words in memory, and batches of them.

mod batches;
mod error;
mod folds;
mod kept;
mod marked;
mod prepared;
mod source;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use batches::{TextBatch, TrainingTexts};
pub use error::LabelledTextError;
pub use prepared::{PreparedTexts, TextSplit, prepare_texts};
pub use source::{own_classes, own_stamps, own_texts};
pub use vocabulary::{KnownWords, LabelledVocabulary};
