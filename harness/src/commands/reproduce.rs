//! `zoo reproduce`.

use serde_json::json;
use zoo_recipes::{ClaimSpec, Document, Selection};
use zoo_results::exit::Exit;
use zoo_results::statistics::LookPlan;

use crate::cli::ReproduceArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Format};
use crate::stages::{InitialWeights, Made, Outcome, Request, RunScores, chosen_arms, plan, reproduce};
use crate::wording::{claim_line, claim_line_in, verdict_text};

pub fn run(context: &Context, args: &ReproduceArgs) -> Result<Exit> {
    let request = request(args)?;
    if args.plan {
        let plan = plan(context, &request)?;
        match context.format {
            Format::Json => output::write_json(&plan)?,
            _ => output::write(&format!("{plan}\n"))?,
        }
        return Ok(Exit::Ok);
    }
    let claims = claims(&request)?;
    let outcome = reproduce(context, &request)?;
    print(context, &claims, &outcome)?;
    Ok(outcome.exit)
}

/// What the options ask for, checked before anything is done.
fn request(args: &ReproduceArgs) -> Result<Request> {
    let document = Document::load(&args.recipe)?;
    let arms = chosen_arms(&document, &args.arms)?;
    let body = document.resolve(&Selection {
        arm: None,
        tier: args.overlay.tier.clone(),
        overrides: args.overlay.overrides.clone(),
    })?;
    let looks = LookPlan::try_from(args.seeds.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    let first = args.seed.unwrap_or(body.recipe.train.seed);
    let last = first.checked_add(u64::from(looks.last() - 1)).ok_or_else(|| {
        Failure::usage(format!("{} seeds from {first} on are too large", looks.last())).hint("--seed 1")
    })?;
    Ok(Request {
        document,
        arms,
        tier: args.overlay.tier.clone(),
        overrides: args.overlay.overrides.clone(),
        seeds: (first..=last).collect(),
        looks,
        evals: args.evals.clone(),
        initial: args.init_from.as_deref().map(InitialWeights::load).transpose()?,
        stop_early: args.stop_early,
        own_runs: false,
    })
}

fn claims(request: &Request) -> Result<Vec<ClaimSpec>> {
    Ok(request.document.resolve(&Selection::default())?.recipe.claim)
}

fn print(context: &Context, claims: &[ClaimSpec], outcome: &Outcome) -> Result<()> {
    let statement = |number: usize, arm: &str| {
        let claim = number.checked_sub(1).and_then(|at| claims.get(at));
        claim.map(|claim| claim_line_in(claim, arm)).unwrap_or_default()
    };
    match context.format {
        Format::Human => {
            let mut texts: Vec<String> = (outcome.judged.iter())
                .map(|one| verdict_text(one.number, &statement(one.number, &one.arm), &one.verdict))
                .collect();
            if texts.is_empty() {
                texts.push("nothing was published for this recipe: no claim to judge\n".to_owned());
                texts.extend(outcome.scores.iter().flat_map(score_lines));
            }
            let made = |made: &Made| match made.reused || !made.other_programs.is_empty() {
                true => format!(" ({made})"),
                false => String::new(),
            };
            let runs: Vec<String> = (outcome.runs.iter().zip(&outcome.made))
                .map(|(run, how)| format!("run {}{}\n", context.shown(run), made(how)))
                .collect();
            output::write(&format!("{}\n{}", texts.join("\n"), runs.concat()))
        }
        Format::Json => {
            let judged: Vec<_> = (outcome.judged.iter())
                .map(|one| {
                    json!({
                        "claim": one.number,
                        "arm": one.arm,
                        "statement": statement(one.number, &one.arm),
                        "evidence": one.evidence,
                        "verdict": one.verdict,
                    })
                })
                .collect();
            output::write_json(&json!({
                "runs": outcome.runs, "made": outcome.made, "judged": judged, "scores": outcome.scores,
                "ledger_head": outcome.head,
            }))
        }
        Format::Csv | Format::Md => {
            let mut table =
                output::columns(["claim", "arm", "statement", "measured", "seeds", "verdict", "explanation"]);
            for one in &outcome.judged {
                table.push(output::words([
                    one.number.to_string(),
                    one.arm.clone(),
                    claims.get(one.number.wrapping_sub(1)).map(claim_line).unwrap_or_default(),
                    one.verdict.measured.map_or_else(String::new, |value| value.to_string()),
                    one.verdict.seeds.to_string(),
                    one.verdict.outcome.to_string(),
                    one.verdict.explanation.clone(),
                ]));
            }
            output::write(&table.render(context.format))
        }
    }
}

/// `fp32, seed 1, test, beam4: BLEU 27.31 (nrefs:1|...)`.
fn score_lines(run: &RunScores) -> impl Iterator<Item = String> + '_ {
    run.scores.iter().map(|score| {
        format!(
            "{}, seed {}, {}, {}: {} {:.2} ({})\n",
            run.arm, run.seed, run.eval, run.decode, score.metric, score.value, score.signature
        )
    })
}
