//! `zoo reproduce`: every stage for every seed and arm, then a verdict on each claim.

use serde::Serialize;
use zoo_models::ops::bf16_instruction;
use zoo_models::precision::{Compute, Products, probe};
use zoo_results::exit::Exit;
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Evidence, Precision, Verdict};
use zoo_training::state::Ending;

use super::evaluate::{decode_all, evaluated_weights, stored, wanted};
use super::judge::{Measured, cases, evidence, verdict};
use super::prepare::{fingerprints, prepare};
use super::run::Run;
use super::train::train;
use super::{Request, plan, record};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::Result;

/// A claim and what came out.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedClaim {
    /// Number of the claim in the recipe, from 1.
    pub number: usize,
    /// Arm that was held against it.
    pub arm: String,
    /// What it was judged on.
    pub evidence: Evidence,
    /// The verdict.
    pub verdict: Verdict,
}

/// What `zoo reproduce` ends with.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Folders of the runs.
    pub runs: Vec<std::path::PathBuf>,
    /// Verdicts in the order of the claims.
    pub judged: Vec<JudgedClaim>,
    /// The code to end with.
    #[serde(skip)]
    pub exit: Exit,
}

/// Runs what is not there yet and judges all of it.
pub fn reproduce(ctx: &Context, request: &Request) -> Result<Outcome> {
    let arms = request.resolve_all()?;
    let mut measured = Vec::new();
    if !all_there(ctx, request, &arms)? {
        let plan = plan(ctx, request)?;
        ctx.progress.note(&plan.to_string());
        plan.gate(ctx)?;
    }
    for &seed in &request.seeds {
        for resolved in &arms {
            ctx.check_stop()?;
            let recipe = &resolved.recipe;
            let mut run = Run::locate(ctx, resolved, seed);
            let wanted = all_wanted(request, recipe)?;
            let folder = run.folder.join("eval");
            let mut evaluations = Vec::new();
            for (eval, decode) in &wanted {
                evaluations.extend(stored(&folder, eval, decode)?);
            }
            if !(run.is_trained() && evaluations.len() == wanted.len()) {
                let prepared = prepare(ctx, recipe, &resolved.folder)?;
                if !run.exists() {
                    record::started(ctx, request, &run.card, fingerprints(&prepared))?;
                }
                let trained = train(ctx, recipe, &prepared, &mut run)?;
                if !matches!(trained.ending, Ending::Diverged { .. }) {
                    let weights = evaluated_weights(&run, recipe)?;
                    evaluations = decode_all(ctx, recipe, &prepared, &folder, weights, &wanted)?;
                }
            }
            let trained = run.trained()?;
            let precision = proved(ctx, &Compute::of(&recipe.precision, ctx.device.is_cpu()), recipe)?;
            let data = trained.data.clone();
            measured.push(Measured { run, trained, evaluations, precision, data });
        }
    }
    let looks = LookPlan::fixed(request.seeds.len() as u32);
    let environment = Environment::current(&ctx.device.settled().to_string(), ctx.threads);
    let claims = arms.first().map(|arm| arm.recipe.claim.clone()).unwrap_or_default();
    let overrides = arms.first().map(|arm| arm.binding_overrides.clone()).unwrap_or_default();
    let mut judged = Vec::new();
    for case in cases(&claims, &request.arms) {
        let evidence =
            evidence(&case, &measured, &looks, &environment.processor, request.tier.as_deref(), &overrides)?;
        let number = claims.iter().position(|claim| std::ptr::eq(claim, case.claim)).map_or(0, |i| i + 1);
        judged.push(JudgedClaim {
            number,
            arm: case.arm.clone(),
            verdict: verdict(&case, &evidence),
            evidence,
        });
    }
    record::judged(ctx, request, &arms, &environment, &measured, &judged)?;
    let exit = Exit::of_verdicts(judged.iter().map(|judged| &judged.verdict));
    Ok(Outcome { runs: measured.into_iter().map(|m| m.run.folder).collect(), judged, exit })
}

fn all_wanted(request: &Request, recipe: &zoo_recipes::Recipe) -> Result<Vec<(String, String)>> {
    let mut pairs = wanted(recipe, None, None)?;
    for eval in &request.evals {
        pairs.extend(
            wanted(recipe, Some(eval), None)?
                .into_iter()
                .filter(|pair| !pairs.contains(pair))
                .collect::<Vec<_>>(),
        );
    }
    Ok(pairs)
}

/// Is there nothing left to compute?
fn all_there(ctx: &Context, request: &Request, arms: &[zoo_recipes::Resolved]) -> Result<bool> {
    for &seed in &request.seeds {
        for resolved in arms {
            let run = Run::locate(ctx, resolved, seed);
            if !run.is_trained() {
                return Ok(false);
            }
            for (eval, decode) in all_wanted(request, &resolved.recipe)? {
                if stored(&run.folder.join("eval"), &eval, &decode)?.is_none() {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// The products of this device, as a probe on the run's own width finds them.
fn proved(ctx: &Context, compute: &Compute, recipe: &zoo_recipes::Recipe) -> Result<Precision> {
    let device = ctx.open_device()?;
    let found = probe(&device, *compute, recipe.model.width as usize);
    Ok(match found {
        Products::Fp32 => Precision::Fp32,
        Products::Tf32 => Precision::Tf32,
        Products::Fp16 => Precision::Fp16,
        // Without an instruction for it the CPU rounds to bf16 and multiplies as f32.
        Products::Bf16 if ctx.device.is_cpu() && bf16_instruction().is_none() => Precision::Bf16Emulated,
        Products::Bf16 => Precision::Bf16,
    })
}
