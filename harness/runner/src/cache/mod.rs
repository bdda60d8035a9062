//! What lies in the home: sizes and entries by kind, what needs an entry, which entries can be
//! removed, and whether files still have their recorded digests.

mod entries;
mod extent;
mod kind;
mod needs;
mod plan;
mod remove;
mod verify;

pub use self::entries::{Entry, entries};
pub use self::extent::Extent;
pub use self::kind::Kind;
pub use self::needs::Needs;
pub use self::plan::{Choice, Planned, plan};
pub use self::remove::{Removal, remove};
pub use self::verify::{Checked, verify};
