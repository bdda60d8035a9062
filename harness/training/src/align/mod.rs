//! Comparison of a model with the same model in another framework, rung by rung: inputs, outputs,
//! losses, gradients, one update.
//!
//! `docs/align.md` describes the file's layout and the limits. The comparison stops at the first
//! rung that fails, because later rungs would fail for the same reason. What is compared is in the
//! folders of [`tasks`](crate::tasks).

mod comparison;
mod error;
mod fixture;
mod limits;
mod rung;

pub(crate) use comparison::Comparison;
pub use error::AlignError;
pub(crate) use fixture::{Fixture, described, stepped};
pub(crate) use limits::Limits;
pub use rung::{Alignment, Rung};
pub(crate) use rung::{Measure, Values};
