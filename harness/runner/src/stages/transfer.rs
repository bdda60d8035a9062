//! The runs that `train.transfer` of a recipe's arms takes weights from.

use std::path::Path;

use zoo_recipes::{Document, Recipe, Resolved, Selection, TransferSpec};
use zoo_results::exit::Exit;

use super::{Request, reproduce};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::folder::Run;
use crate::run::initial::InitialWeights;
use crate::tasks;

impl Request {
    /// The request with the weights that its arms take from other runs, and the context in which its
    /// task finds what such a run kept. `arms` are the request's.
    ///
    /// If the recipe names a tier of the other recipe and `may_train` allows it, a missing run is
    /// trained. A run of the published size never is.
    ///
    /// # Errors
    /// The home has no such run, or the arms name different recipes.
    pub fn sourced(&self, ctx: &Context, arms: &[Resolved], may_train: bool) -> Result<(Context, Self)> {
        let named: Vec<(&TransferSpec, &Path)> = arms
            .iter()
            .filter_map(|arm| Some((arm.recipe.train.transfer.as_ref()?, arm.folder.as_path())))
            .collect();
        let Some((first, _)) = named.first() else { return Ok((ctx.clone(), self.clone())) };
        let of = |spec: &TransferSpec| (spec.recipe.clone(), spec.tier.clone());
        if named.iter().any(|(other, _)| of(other) != of(first)) {
            return Err(Failure::usage("the arms take weights from different recipes")
                .hint("--arms ARM; one command takes weights from the arms of one recipe"));
        }
        let mut sourced = self.clone();
        if self.initial.is_none() {
            for (spec, base) in named {
                if !sourced.sources.contains_key(&spec.arm) {
                    let weights = InitialWeights::of_run(&source(ctx, spec, base, may_train)?.folder)?;
                    sourced.sources.insert(spec.arm.clone(), weights);
                }
            }
        }
        let ctx = arms.first().map_or_else(|| ctx.clone(), |arm| sourced.reading(ctx, &arm.recipe));
        Ok((ctx, sourced))
    }

    /// The context in which the task of an arm finds what the run kept that its weights are of.
    pub fn reading(&self, ctx: &Context, recipe: &Recipe) -> Context {
        match recipe.train.transfer.as_ref().and(self.initial_of(recipe)) {
            Some(initial) => ctx.reading(initial.run.as_ref().map(|run| run.folder.clone())),
            None => ctx.clone(),
        }
    }
}

/// The run that a recipe takes weights from. `base` is the folder of the recipe's file.
fn source(ctx: &Context, spec: &TransferSpec, base: &Path, may_train: bool) -> Result<Run> {
    let document = document(&spec.recipe, base)?;
    let selection = Selection { arm: Some(spec.arm.clone()), tier: spec.tier.clone(), overrides: Vec::new() };
    let resolved = document.resolve(&selection)?;
    if resolved.recipe.train.transfer.is_some() {
        let message = format!("`train.transfer` names {}, which takes weights itself", spec.recipe);
        return Err(Failure::new(Exit::Recipe, message).hint("name the recipe that it takes them from"));
    }
    if let Some(run) = find(ctx, &resolved)? {
        return Ok(run);
    }
    let TransferSpec { recipe, arm, tier, parameters: _ } = spec;
    if let (Some(tier), true) = (tier, may_train) {
        ctx.progress.note(&format!("the weights are those of {recipe}, tier {tier}, which is trained first"));
        let arms = vec![arm.clone()];
        reproduce(ctx, &Request { arms, ..Request::of(&document, Some(tier), 1)? })?;
        if let Some(run) = find(ctx, &resolved)? {
            return Ok(run);
        }
    }
    let of_tier = tier.as_ref().map_or_else(String::new, |tier| format!(" --tier {tier}"));
    let message =
        format!("`train.transfer` takes weights from a run of {recipe}, and this home has none that ended");
    Err(Failure::new(Exit::Data, message)
        .hint(format!("zoo reproduce {recipe}{of_tier} --arms {arm}; or name a run with --init-from RUN")))
}

/// The recipe of a name, or of a path that is relative to `base`.
fn document(name: &str, base: &Path) -> Result<Document> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    let place = if is_path { base.join(name).display().to_string() } else { name.to_owned() };
    Ok(Document::load(&place)?)
}

/// The run of a resolved recipe that ended with scores, as `zoo reproduce` would use it again: the
/// one with the lowest seed.
fn find(ctx: &Context, resolved: &Resolved) -> Result<Option<Run>> {
    let files = tasks::of(&resolved.recipe).own_files(&resolved.folder)?;
    let place = |seed: u64| Run::locate(ctx, resolved, &files, seed, None);
    let runs = place(0).folder.parent().map(Path::to_path_buf).unwrap_or_default();
    let folders = std::fs::read_dir(&runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = Vec::new();
    for folder in folders.filter(|folder| folder.join("run.json").is_file()) {
        // A damaged run of another seed or arm is not in the way of a good one.
        let good = Run::open(&folder).and_then(|(run, _)| {
            let fits = run.card.key == place(run.card.seed).card.key
                && run.is_trained(false)?
                && run.trained()?.ending.is_scored();
            Ok(fits.then_some(run))
        });
        match good {
            Ok(run) => found.extend(run),
            Err(failure) => ctx.progress.note(&format!("{} is skipped: {failure}", ctx.shown(&folder))),
        }
    }
    found.sort_by(|one, other| (one.card.seed, &one.folder).cmp(&(other.card.seed, &other.folder)));
    Ok(found.into_iter().next())
}
