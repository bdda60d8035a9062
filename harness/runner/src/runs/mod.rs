//! The runs of a home: found, named and summarised from their small files.

mod found;
pub mod log;
mod name;
mod remembered;
mod summary;
mod verdicts;

pub use found::{Found, all, all_with, below, called, names};
pub use name::{LAST, folder_of, named_run, run_or_recipe};
pub use remembered::{FILE as REMEMBERED, Remembered};
pub use summary::{State, Summary, state_of};
pub use verdicts::{Recorded, Verdicts};

/// The tier of the published size, in options and tables.
pub const FULL: &str = "full";
