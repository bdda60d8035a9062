//! One run: an arm of a recipe with a seed, trained, decoded, timed and profiled, whatever its
//! task.
//!
//! A task gives its data as [`data::TaskData`]; the stages use it as [`ready::Ready`]. Nothing here
//! asks which task a recipe has.

pub mod activity;
pub mod conventions;
pub mod data;
pub mod evaluate;
pub mod folder;
pub mod from_end;
pub mod initial;
pub mod log;
pub mod log_reader;
pub mod numbering;
pub mod own_files;
pub mod package;
pub mod profile;
pub mod ready;
pub mod recorder;
pub mod replay;
mod samples;
pub mod saved_profile;
mod scratch;
pub mod sweep;
mod tensors;
pub mod timed_arm;
pub mod train;
pub mod trajectory;
