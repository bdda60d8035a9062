//! The ledger: an append-only file with one line of JSON for each run and each judgement. Each line
//! contains the hash of the previous line.
//!
//! A line holds the fields of a [`Record`] between the fields of the chain: `schema`, `sequence`
//! and `previous` before them, `seals` and `hash` after them. `hash` is the SHA-256 of all bytes of
//! the line before `,"hash":`. `seals` holds a short digest of each field, so that an edit can be
//! traced to a field and not only to a line.

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
pub use recheck::{Disagreement, Kept, NoReferences, Recheck, Rescored, Rescorer, contradicts, recheck};
pub use recipe::{AgainstRecipe, against_arms, against_recipe};
pub use record::{HypothesesFile, Judgement, Record, RunEnd, RunRecord, ScoreRecord};
pub use rescore::{difference, difference_again, needs_no_references, references_key, score_again};
pub use sound::Contradiction;
pub use spent::{System, spent};
pub use store::Ledger;
pub use time::utc_now;
