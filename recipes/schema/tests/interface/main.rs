//! Tests of recipes: their form, their resolution and their hashes.
//!
//! They are one program, because every program takes seconds to link.

mod diagnostics;
mod hashes;
mod loading;
mod properties;
mod recipes;
mod schema;
mod smoke;
mod speech;
