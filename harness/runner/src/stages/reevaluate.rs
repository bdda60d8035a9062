//! Evaluation of a run that exists: `zoo evaluate`, and the pairs of evaluation set and search that
//! a recipe's claims ask for.

use std::path::PathBuf;

use zoo_recipes::{ComputeType, DIRECT, Recipe};
use zoo_results::metrics::Scorer;

use super::opened::opened;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::conventions::{Conventions, name_of};
use crate::run::data::Sets;
use crate::run::evaluate::{Evaluation, Weights, evaluated_weights};
use crate::run::folder::Run;
use crate::run::own_files;
use crate::run::sweep::{Swept, SweptWeights};
use crate::tasks;

/// Arguments of `zoo evaluate`.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// Folder of a run, or a checkpoint in it.
    pub run: PathBuf,
    /// Evaluation set; `None` selects those of the claims.
    pub eval: Option<String>,
    /// Search; `None` selects those of the claims.
    pub decode: Option<String>,
    /// Overrides `decode.NAME.KEY=VALUE` for the run's recipe.
    pub overrides: Vec<String>,
    /// Type of the products; `None` is that of the run.
    pub compute: Option<ComputeType>,
}

impl EvaluateRequest {
    /// Opens the run and applies the overrides to its recipe.
    fn open(&self) -> Result<(Run, Recipe)> {
        let (run, recipe) = opened(&self.run)?;
        let recipe = recipe.searching(&self.overrides)?.computing(self.compute);
        Ok((run, recipe))
    }

    /// Folder of the scores: apart from those of `zoo reproduce` if weights or type are others.
    fn folder(&self, run: &Run) -> PathBuf {
        let mut folder = run.folder.join("eval");
        if self.run.is_file() {
            folder.push(self.run.file_stem().unwrap_or_default());
        }
        if let Some(compute) = self.compute {
            folder.push(compute.name());
        }
        folder
    }

    /// The weights of the named checkpoint, else those that the recipe evaluates.
    fn weights(&self, run: &Run, recipe: &Recipe) -> Result<Weights> {
        match self.run.is_file() {
            true => {
                let values = run.checkpoints().read_named(&self.run, &run.card.key)?.into_evaluated();
                Ok(Weights { values, files: vec![self.run.clone()], update: None })
            }
            false => evaluated_weights(run, recipe),
        }
    }
}

/// Runs `zoo evaluate`.
pub fn evaluate(ctx: &Context, request: &EvaluateRequest) -> Result<Vec<Evaluation>> {
    let (run, recipe) = request.open()?;
    let ctx = &ctx.for_run(&run.card.compute)?.reading(Some(run.folder.clone()));
    let wanted = wanted(&recipe, request.eval.as_deref(), request.decode.as_deref())?;
    let sets: Vec<&str> = wanted.iter().map(|(set, _)| set.as_str()).collect();
    let task = tasks::of(&recipe);
    let data = task.prepare(ctx, &run.card.base, Sets::Evaluation(&sets))?;
    data.check(&recipe, &run)?;
    let weights = request.weights(&run, &recipe)?;
    let folder = request.folder(&run);
    let conventions = Conventions {
        signatures: &|eval, decode| task.signatures(eval, decode),
        // Reports show no examples of checkpoints.
        sources: &|eval| match request.run.is_file() {
            true => None,
            false => task.sources_at_hand(ctx, &run.card.base, eval).ok().flatten(),
        },
    };
    let found = data.evaluate(ctx, &recipe, &folder, weights, &wanted, conventions)?;
    own_files::keep(ctx, &run, &recipe, &found);
    Ok(found)
}

/// Runs `zoo evaluate --sweep`: decodes and scores one evaluation set with all pairs of language
/// model weights. Stores nothing.
pub fn sweep(ctx: &Context, request: &EvaluateRequest, weights: &SweptWeights) -> Result<Swept> {
    let (run, recipe) = request.open()?;
    let ctx = &ctx.for_run(&run.card.compute)?.reading(Some(run.folder.clone()));
    let has_model = |name: &&str| recipe.search(name).is_some_and(|search| search.language_model().is_some());
    let first = || recipe.searches().into_iter().find(has_model).map(str::to_owned);
    let decode = request.decode.clone().or_else(first).ok_or_else(|| {
        Failure::usage("no search of the recipe has a language model").hint(
            "--decode NAME --set decode.NAME.language_model=model.arpa.gz, of a run whose searches take one",
        )
    })?;
    let eval = match &request.eval {
        Some(eval) => eval.clone(),
        None if recipe.data().has_eval_set("valid") => "valid".to_owned(),
        None => {
            let sets = recipe.data().eval_sets();
            return Err(Failure::usage("the recipe has no evaluation set `valid` to choose weights on")
                .hint(format!("--eval SET; it has {}", sets.join(", "))));
        }
    };
    // Reports an evaluation set or a search that does not exist.
    wanted(&recipe, Some(&eval), Some(&decode))?;
    if !has_model(&decode.as_str()) {
        let message = format!("the search `{decode}` has no language model: alpha and beta have no effect");
        return Err(Failure::usage(message).hint(format!(
            "--set decode.{decode}.language_model=model.arpa.gz, of a search that takes one"
        )));
    }
    let split_of = |name: &str| recipe.data().eval_set(name).map(|set| set.split.to_owned());
    let split = split_of(&eval);
    let mut claimed = recipe.claim.iter().filter_map(|claim| claim.eval.as_ref());
    if let Some(claimed) = claimed.find(|name| split_of(name) == split) {
        ctx.progress.note(&format!(
            "note: claims use {claimed} with these examples: its score with weights chosen on them is not evidence"
        ));
    }
    let task = tasks::of(&recipe);
    let data = task.prepare(ctx, &run.card.base, Sets::Evaluation(&[&eval]))?;
    data.check(&recipe, &run)?;
    let convention = task.signatures(&eval, &decode).swap_remove(0);
    let scorer = Scorer::from_signature(&convention)?.on(&name_of(&recipe, &eval))?;
    let values = request.weights(&run, &recipe)?.values;
    data.sweep(ctx, &recipe, (&eval, &decode), values, weights, scorer)
}

/// The pairs of evaluation set and search to decode: those that the claims judge, with `eval` and
/// `decode` in place of the claims' if given. Without such claims, every set with `decode`, else
/// with the recipe's first search.
///
/// # Errors
/// The recipe lacks the set or search, the search needs a language model, or a set mixes languages.
pub fn wanted(recipe: &Recipe, eval: Option<&str>, decode: Option<&str>) -> Result<Vec<(String, String)>> {
    let data = recipe.data();
    let unknown = |kind: &str, name: &str, known: Vec<&str>| {
        Failure::usage(format!("the recipe has no {kind} `{name}`"))
            .hint(format!("it has {}", known.join(", ")))
    };
    if let Some(name) = eval.filter(|name| !data.has_eval_set(name)) {
        return Err(unknown("evaluation set", name, data.eval_sets()));
    }
    if let Some(name) = decode.filter(|name| !recipe.has_search(name)) {
        return Err(unknown("search", name, recipe.searches()));
    }
    let lacks = |name: &str| recipe.search(name).is_some_and(|search| search.lacks_language_model());
    if let Some(name) = decode.filter(|name| lacks(name)) {
        return Err(Failure::usage(format!("the search `{name}` needs a language model, and none is given"))
            .hint(format!("--set decode.{name}.language_model=model.arpa.gz")));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    // A claim that names no search is on the outputs of a task without searches.
    let of_claims = recipe
        .claim
        .iter()
        .filter_map(|claim| Some((claim.eval.clone()?, claim.decode.as_deref().unwrap_or(DIRECT))));
    let of_claims = of_claims.filter(|(_, search)| recipe.has_search(search));
    let of_claims = of_claims.filter(|(_, search)| decode.is_some() || !lacks(search));
    for (claim_eval, claim_decode) in of_claims {
        let pair = (eval.map_or(claim_eval, str::to_string), decode.unwrap_or(claim_decode).to_owned());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let first_search = || recipe.searches().into_iter().find(|name| !lacks(name));
    if pairs.is_empty()
        && let Some(decode) = decode.or_else(first_search)
    {
        // The set `valid` is for choosing weights. It is scored only if there is no other set.
        let several = |name: &str| data.eval_set(name).is_some_and(|set| set.languages.len() > 1);
        let others = data.eval_sets().into_iter().any(|name| name != "valid");
        let scored = |name: &str| match name {
            "valid" => !others && !several(name),
            _ => true,
        };
        let chosen = |name: &str| eval.map_or_else(|| scored(name), |eval| eval == name);
        let sets = data.eval_sets().into_iter().filter(|name| chosen(name));
        pairs.extend(sets.map(|name| (name.to_owned(), decode.to_string())));
    }
    for (name, _) in &pairs {
        if data.eval_set(name).is_some_and(|set| set.languages.len() > 1) {
            let languages = data.languages().join(", ");
            return Err(Failure::usage(format!(
                "the evaluation set `{name}` mixes the languages {languages}"
            ))
            .hint("choose a set with a `target`: scoring needs one language"));
        }
    }
    Ok(pairs)
}
