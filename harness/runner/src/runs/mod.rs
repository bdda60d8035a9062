//! The runs of a home: found, named and summarised from their small files.

mod found;
pub mod log;
mod name;
mod summary;
mod verdicts;

pub use found::{Found, all, below, called};
pub use name::{folder_of, named_run, run_or_recipe};
pub use summary::{State, Summary, state_of};
pub use verdicts::{Recorded, Verdicts};
