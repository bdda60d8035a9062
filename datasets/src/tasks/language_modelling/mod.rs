//! Language modelling: a text as numbers of its units, and windows of it.

mod babble;
mod chunks;
mod error;
mod kept;
mod list;
mod own;
mod prepared;
mod rules;
mod sentences;
mod source;
#[cfg(test)]
mod tests;
mod units;
mod windows;

pub use chunks::Chunks;
pub use error::LanguageDataError;
pub use own::{own_lines, own_stamps, own_units};
pub use prepared::{LanguageSplit, PreparedLanguage, TrainingWindows, prepare_language};
pub use sentences::Sentences;
pub use source::fetched_names;
pub use units::Units;
pub use windows::{Contiguous, Scattered, WindowBatch};
pub use zoo_recipes::tasks::language_modelling::NO_TARGET;
