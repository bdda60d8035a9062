//! A bundle: one file with everything that a reviewer needs to check a record, offline and without the machine that made it.
//!
//! It holds the ledger's own line, the recipe as every arm had it, the environment of every run, the hypotheses, and the digests
//! of the references (which the data's licence may not let anybody pass on). [`check()`] derives recipe hash, scores and
//! verdicts again. `docs/bundles.md` describes the file.

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
