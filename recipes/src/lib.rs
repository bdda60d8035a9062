//! What a recipe says: schema, parsing, validation, and the recipes themselves. Nothing in this crate runs a model.

pub mod spec;

pub use spec::*;
