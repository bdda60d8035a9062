//! A trained run, opened for a user's own input.

use zoo_recipes::Recipe;

use crate::context::Context;
use crate::run::folder::Run;

/// An opened run with one of its searches.
pub struct Inference {
    /// Context of the call, with the precision of the run.
    pub ctx: Context,
    pub run: Run,
    /// Recipe of the run, with the overrides.
    pub recipe: Recipe,
    /// Name of the search.
    pub search: String,
}
