//! From the text of splits to token ids: normalisation, cleaning, sub-words, vocabularies and
//! length filter. Results are cached on disk and verified when read.

mod build;
mod clean;
mod error;
mod kept;
mod outputs;
mod pieces;
mod pipeline;
mod prepared;
mod sequences;
mod shuffle;
mod stage;
mod store;
mod surroundings;

pub use error::PrepareError;
pub use pipeline::TextPipeline;
pub use prepared::{
    EvalSet, PrepareOptions, PreparedSplit, PreparedTranslation, SplitReferences, SplitStatistics,
};
pub use sequences::Sequences;
pub use store::{Place, check_files, load, prepare_cached, prepare_from_files};
pub use surroundings::PrepareStep;
