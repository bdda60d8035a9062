//! Language modelling: from the words or characters so far to the next one.

mod block;
mod data;
mod model;

pub use data::*;
pub use model::*;
