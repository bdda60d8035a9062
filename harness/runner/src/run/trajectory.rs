//! Points of trajectory claims: decoding during training.

use std::collections::BTreeMap;
use std::path::PathBuf;

use zoo_recipes::{ClaimKind, ClaimSpec, DIRECT, Moment, Recipe};
use zoo_results::verdict::trained_term;

use super::conventions::Conventions;
use super::data::TaskData;
use super::evaluate::{Evaluation, Weights, decode_all, stored};
use super::folder::Run;
use crate::context::Context;
use crate::error::Result;

/// The trajectory claims about an arm that can be scored from decoded output.
pub fn claims<'r>(recipe: &'r Recipe, arm: &str) -> impl Iterator<Item = &'r ClaimSpec> {
    let scored = |claim: &&ClaimSpec| {
        let search = recipe.search(claim.decode.as_deref().unwrap_or(DIRECT));
        claim.kind == ClaimKind::Trajectory
            && claim.eval.is_some()
            && claim.signature.is_some()
            && trained_term(claim).is_none()
            && search.is_some_and(|search| !search.lacks_language_model())
    };
    recipe.claim.iter().filter(move |claim| claim.speaks_of(arm)).filter(scored)
}

/// Pairs of evaluation set and search to decode at each moment of an arm's run.
pub fn wanted(recipe: &Recipe, arm: &str) -> BTreeMap<Moment, Vec<(String, String)>> {
    let mut found: BTreeMap<Moment, Vec<(String, String)>> = BTreeMap::new();
    for claim in claims(recipe, arm) {
        let Some(eval) = claim.eval.clone() else { continue };
        let pair = (eval, claim.decode.as_deref().unwrap_or(DIRECT).to_owned());
        for moment in claim.moments() {
            let pairs = found.entry(moment).or_default();
            if !pairs.contains(&pair) {
                pairs.push(pair.clone());
            }
        }
    }
    found
}

/// Folder of a moment's evaluations, relative to a run's folder `eval`.
fn place(moment: Moment) -> PathBuf {
    format!("{}-{}", moment.clock.one(), moment.at).into()
}

/// Stored evaluations at the points of a run. File names are relative to the run's folder `eval`.
pub fn kept(run: &Run, recipe: &Recipe) -> Result<BTreeMap<Moment, Vec<Evaluation>>> {
    let mut found: BTreeMap<Moment, Vec<Evaluation>> = BTreeMap::new();
    for (moment, pairs) in wanted(recipe, &run.card.arm) {
        let place = place(moment);
        for (eval, decode) in pairs {
            if let Some(evaluation) = stored(&run.folder.join("eval").join(&place), recipe, &eval, &decode)? {
                let evaluation = Evaluation {
                    hypotheses: place.join(&evaluation.hypotheses),
                    references: place.join(&evaluation.references),
                    ..evaluation
                };
                found.entry(moment).or_default().push(evaluation);
            }
        }
    }
    Ok(found)
}

/// Decodes and scores the missing evaluations of the moments that were just reached, with the
/// current weights.
pub fn decode_points<T: TaskData>(
    ctx: &Context,
    recipe: &Recipe,
    task: &T,
    run: &Run,
    reached: &[Moment],
    weights: impl Fn() -> Weights,
    conventions: Conventions<'_>,
) -> Result<()> {
    let wanted = wanted(recipe, &run.card.arm);
    // Reports show no examples of these moments.
    let conventions = Conventions { sources: &|_| None, ..conventions };
    for moment in reached {
        let folder = run.folder.join("eval").join(place(*moment));
        let mut pairs = Vec::new();
        for pair in wanted.get(moment).into_iter().flatten() {
            if stored(&folder, recipe, &pair.0, &pair.1)?.is_none() {
                pairs.push(pair.clone());
            }
        }
        if pairs.is_empty() {
            continue;
        }
        for evaluation in decode_all(ctx, recipe, task, &folder, weights(), &pairs, conventions)? {
            for score in &evaluation.scores {
                ctx.progress.note(&format!(
                    "{moment}: {} {:.2} on {} with {}",
                    score.metric, score.value, evaluation.eval, evaluation.decode
                ));
            }
        }
    }
    Ok(())
}
