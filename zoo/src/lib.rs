//! Models of the zoo: contracts, precision, own operations, layers, models, searches.
//!
//! A spec of `zoo-recipes` becomes a Burn module here. No file of this crate names a backend other than those of `ops`,
//! an optimizer, or a file on disk.

pub mod contract;
pub mod models;
pub mod nn;
pub mod ops;
pub mod parameters;
pub mod precision;
pub mod random;
pub mod search;

pub use contract::{Objective, Pass, Running, Term};
