//! A bundle: one file with everything a reviewer needs to check a record, offline and without the
//! machine that produced it.
//!
//! It contains the ledger's line, the recipe of every arm, the environment of every run, the
//! hypotheses, and the digests of the references (the data's licence may not allow their
//! distribution). [`check()`] derives recipe hash, scores and verdicts again. `docs/bundles.md`
//! describes the file.

mod check;
mod facts;
mod file;
mod limits;

pub use check::{Checked, check};
pub use facts::contradictions;
pub use file::{
    Bundle, BundleError, BundledHypotheses, BundledRecipe, BundledReferences, FORMAT, RunEnvironment, VERSION,
};
pub use limits::{MAX_BYTES, may_derive_references};
