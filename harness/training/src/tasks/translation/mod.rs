//! Translation: comparison of a model with the same model in another framework.
//!
//! `docs/align.md` describes the file's layout and the limits.

mod compare;
mod reference;

pub use reference::{DescribedVocabulary, Description, Reference};
