//! Models of the zoo: interfaces, precision, custom operations, layers, models, searches.
//!
//! The crate builds a Burn module from a spec of `zoo-recipes`. Only `ops` names a backend. No file
//! names an optimizer, or a file on disk.

pub mod contract;
pub mod models;
pub mod nn;
pub mod ops;
pub mod parameters;
pub mod precision;
pub mod random;
pub mod search;

pub use contract::{Objective, Pass, Running, Term};
