//! Text classification: from a text to one of several classes.

mod data;
mod model;
mod shape;

pub use data::*;
pub use model::*;
pub use shape::*;
