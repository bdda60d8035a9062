//! Image classification: from a picture to one of several classes.

mod data;
mod model;

pub use data::*;
pub use model::*;
