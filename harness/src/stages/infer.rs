//! Translates lines with a trained run.

use std::path::PathBuf;

use zoo_models::precision::Compute;
use zoo_recipes::Recipe;

use super::evaluate::{Translator, evaluated_weights, load_model};
use super::prepare::prepare;
use super::run::Run;
use crate::context::Context;
use crate::error::{Failure, Result};

/// Lines that are translated together.
const SENTENCES: usize = 64;

/// What `zoo infer` was asked for.
#[derive(Debug, Clone)]
pub struct InferRequest {
    /// Folder of a run.
    pub run: PathBuf,
    /// Target language; absent: the recipe's first.
    pub target: Option<String>,
    /// Search; absent: that of the first claim, or the recipe's first.
    pub decode: Option<String>,
}

/// `input` is what messages call the lines. Gives a translation for every line to `write`, in order, as soon as it is there.
pub fn infer(
    ctx: &Context,
    request: &InferRequest,
    input: &str,
    lines: impl Iterator<Item = std::io::Result<String>>,
    mut write: impl FnMut(&str) -> std::io::Result<()>,
) -> Result<()> {
    let (run, recipe) = Run::open(&request.run)?;
    let ctx = &ctx.for_run(&run.card.compute)?;
    let of_claims = recipe.claim.iter().find_map(|claim| claim.decode.clone());
    let name = request.decode.clone().or(of_claims).or_else(|| recipe.decode.keys().next().cloned());
    let name = name.ok_or_else(|| Failure::usage("the recipe has no search"))?;
    let spec = recipe.decode.get(&name).ok_or_else(|| {
        let known: Vec<&str> = recipe.decode.keys().map(String::as_str).collect();
        Failure::usage(format!("the recipe has no search `{name}`"))
            .hint(format!("it has {}", known.join(", ")))
    })?;
    let language = language(&recipe, request.target.as_deref())?;
    let prepared = prepare(ctx, &recipe, &run.card.base)?;
    let (weights, _) = evaluated_weights(&run, &recipe)?;
    let model = load_model(&recipe, &prepared, weights, &ctx.open_device()?)?;
    let compute = Compute::of(&recipe.precision, ctx.device.is_cpu());
    let translator = Translator { model: &model, prepared: &prepared, language, spec, compute };
    let mut number = 0;
    let mut read = |line: std::io::Result<String>| {
        number += 1;
        line.map_err(|e| {
            let failure = Failure::new(zoo_results::exit::Exit::Data, format!("{input}:{number}: {e}"));
            failure.hint("lines are UTF-8; convert the file, e.g. with iconv")
        })
    };
    let mut lines = lines.peekable();
    while lines.peek().is_some() {
        ctx.check_stop()?;
        let batch: Vec<String> = lines.by_ref().take(SENTENCES).map(&mut read).collect::<Result<_>>()?;
        let sources: Vec<Vec<u32>> = batch.iter().map(|line| prepared.pipeline.encode_source(line)).collect();
        let sources: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
        for line in translator.translate(&sources) {
            write(&line).map_err(|e| {
                Failure::new(zoo_results::exit::Exit::Internal, format!("cannot write to stdout: {e}"))
            })?;
        }
    }
    Ok(())
}

/// The index of a target language.
fn language(recipe: &Recipe, name: Option<&str>) -> Result<usize> {
    let targets = recipe.data.reader.targets();
    let Some(name) = name else { return Ok(0) };
    targets.iter().position(|target| *target == name).ok_or_else(|| {
        Failure::usage(format!("the model does not write `{name}`"))
            .hint(format!("it writes {}", targets.join(", ")))
    })
}
