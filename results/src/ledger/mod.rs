//! The ledger: one line of JSON for every run and every judgement, only ever added to, each line holding the hash of the one before.
//!
//! A line is a [`Record`]'s fields between the chain's own: `schema`, `sequence`, `previous` in front, `seals` and `hash` behind.
//! `hash` is the SHA-256 of all bytes of the line in front of `,"hash":`; `seals` holds a short digest of each field, so that an
//! edit can be traced to a field and not to a line only.

mod chain;
mod error;
mod recheck;
mod recipe;
mod record;
mod rescore;
mod sound;
mod spent;
mod store;
mod time;
mod unlike;

pub use chain::{Entry, GENESIS, SCHEMA};
pub use error::LedgerError;
pub use recheck::{Disagreement, Kept, NoReferences, Recheck, Rescored, Rescorer, recheck};
pub use recipe::{AgainstRecipe, against_arms, against_recipe};
pub use record::{HypothesesFile, Judgement, Record, RunEnd, RunRecord, ScoreRecord};
pub use rescore::{difference, difference_again, needs_no_references, references_key, score_again};
pub use sound::Contradiction;
pub use spent::{System, spent};
pub use store::Ledger;
pub use time::utc_now;
