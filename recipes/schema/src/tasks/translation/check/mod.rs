//! What a schema cannot say of a translation recipe.

mod data;
mod model;

pub(super) use data::data;
pub(super) use model::model;
