//! From a recipe to a verdict: `plan -> prepare -> train(arm, seed) -> evaluate(arm, seed) -> judge -> record`.
//!
//! A stage's output has a key: a hash of the blocks of the recipe that it depends on and of the stage's own version. What is
//! there, and whole, is not made again; what is made goes to a temporary name first.

mod evaluate;
mod infer;
mod judge;
mod plan;
mod prepare;
mod record;
mod reproduce;
mod run;
mod train;

pub use evaluate::{EvaluateRequest, evaluate, stored};
pub use infer::{InferRequest, infer};
pub use plan::plan;
pub use reproduce::{Outcome, reproduce};
pub use run::Run;

use zoo_recipes::{Document, Resolved, Selection};

use crate::error::Result;

/// What `zoo reproduce` was asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The recipe.
    pub document: Document,
    /// Arms, in the order in which they run.
    pub arms: Vec<String>,
    /// A size other than the published one.
    pub tier: Option<String>,
    /// `--set key=value`.
    pub overrides: Vec<String>,
    /// Seeds, fixed before the first run.
    pub seeds: Vec<u64>,
    /// Evaluation sets to decode besides those of the claims.
    pub evals: Vec<String>,
}

impl Request {
    /// The recipe as an arm has it.
    pub fn resolve(&self, arm: &str) -> Result<Resolved> {
        let selection = Selection {
            arm: Some(arm.to_string()),
            tier: self.tier.clone(),
            overrides: self.overrides.clone(),
        };
        Ok(self.document.resolve(&selection)?)
    }

    /// All arms, resolved.
    pub fn resolve_all(&self) -> Result<Vec<Resolved>> {
        self.arms.iter().map(|arm| self.resolve(arm)).collect()
    }
}
