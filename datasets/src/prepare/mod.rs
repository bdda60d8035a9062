//! From the text of splits to token ids: normalisation, sub-words, vocabularies, filter; kept on disk and verified.

mod error;
mod pipeline;
mod sequences;
mod store;
mod translation;

pub use error::PrepareError;
pub use pipeline::TextPipeline;
pub use sequences::Sequences;
pub use store::{load, prepare_cached};
pub use translation::{
    EvalSet, PrepareOptions, PreparedSplit, PreparedTranslation, SplitReferences, SplitStatistics, prepare,
};
