//! Whether a run stays on the published course.

use std::collections::BTreeMap;

use zoo_recipes::Recipe;
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Outcome, Verdict};

use super::judge::{Case, Conditions, Measured, evidence, verdict};
use crate::error::Result;
use crate::run::folder::{Made, Run, Trained};
use crate::run::trajectory::{claims, kept};

/// The verdict NOT REPRODUCED on a run by itself, if it has left the published course.
pub fn off_course(run: &Run, recipe: &Recipe, so_far: &Trained) -> Result<Option<Verdict>> {
    let measured = [Measured {
        run: run.clone(),
        made: Made::default(),
        trained: so_far.clone(),
        evaluations: Vec::new(),
        on_the_way: kept(run, recipe)?,
        precision: None,
        data: BTreeMap::new(),
    }];
    let plan = LookPlan::fixed(1);
    let card = &run.card;
    let conditions = Conditions {
        recipe: &run.card.recipe,
        plan: &plan,
        hardware: &card.environment.hardware(),
        tier: card.tier.as_deref(),
        overrides: &card.overrides,
    };
    for claim in claims(recipe, &card.arm) {
        let case = Case { claim, arm: card.arm.clone() };
        let verdict = verdict(&case, &evidence(&case, &measured, &[], &conditions)?);
        if verdict.outcome == Outcome::NotReproduced {
            return Ok(Some(verdict));
        }
    }
    Ok(None)
}
