//! Short forms of a recipe file. Each is expanded in the tree before anything else reads it, and
//! the result keeps the position of the short form. Overlays, checks and hashes only see the long
//! form.

mod both;
mod claims;
mod parts;

pub(crate) use both::both;
pub(crate) use claims::claims;
pub(crate) use parts::{parts, presets};
