//! Models of the zoo: contracts of losses, layers, searches, and the models of each task.
//!
//! The crate builds a Burn module from a spec of `zoo-recipes`. No file names a backend, an
//! optimizer, or a file on disk: operations are those of `zoo-ops`, which this crate hands on.

pub mod contract;
mod cost;
pub mod nn;
mod packed;
pub mod search;
pub mod tasks;

pub use zoo_ops::{self as ops, Pass, parameters, precision, random};

pub use contract::{Objective, Running, Term};
pub use cost::Cost;
pub use packed::Packed;
