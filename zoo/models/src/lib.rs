//! Models of the zoo: contracts of losses, layers, models, searches.
//!
//! The crate builds a Burn module from a spec of `zoo-recipes`. No file names a backend, an
//! optimizer, or a file on disk: operations are those of `zoo-ops`, which this crate hands on.

pub mod contract;
pub mod models;
pub mod nn;
pub mod search;
pub mod tasks;

pub use zoo_ops::{self as ops, Pass, parameters, precision, random};

pub use contract::{Objective, Running, Term};
