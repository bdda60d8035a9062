//! Short forms of a recipe file. Each is written out on the tree before anything else reads it, and what it stands for keeps the place
//! where it was written: overlays, checks and hashes know the long form alone.

mod both;
mod claims;
mod parts;

pub(crate) use both::both;
pub(crate) use claims::claims;
pub(crate) use parts::{parts, presets};
