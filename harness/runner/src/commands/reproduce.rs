//! `zoo reproduce`: runs a recipe and judges its claims.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use zoo_recipes::{ClaimSpec, Document, Selection};
use zoo_results::exit::Exit;
use zoo_results::report::{ByStatement, Earlier, uncounted};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Verdict, listed};

use crate::cli::ReproduceArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell, Format};
use crate::records;
use crate::run::folder::Made;
use crate::run::initial::InitialWeights;
use crate::runs::folder_of;
use crate::stages::{JudgedClaim, Outcome, Request, RunScores, chosen_arms, one_run, plan, reproduce};
use crate::wording::{by_statement, claim_line, claim_line_in, verdict_text};

pub fn run(context: &Context, args: &ReproduceArgs) -> Result<Exit> {
    let request = request(context, args)?;
    if args.plan {
        let mut plan = plan(context, &request)?;
        if let Some(gpu) = &args.gpu {
            plan.on(context, &request, gpu)?;
        }
        match context.format {
            Format::Json => output::write_document("reproduce", &BTreeMap::from([("plan", &plan)]))?,
            Format::Human => output::write(&format!("{plan}\n"))?,
            format => output::write(&plan.table().render(format))?,
        }
        return Ok(Exit::Ok);
    }
    if let Some(job) = &args.job {
        let seed = job.split_once(':').and_then(|(arm, seed)| Some((arm, seed.parse().ok()?)));
        let (arm, seed) = seed.ok_or_else(|| Failure::usage(format!("--job {job} is not ARM:SEED")))?;
        one_run(context, &request, arm, seed)?;
        return Ok(Exit::Ok);
    }
    let claims = claims(&request)?;
    let outcome = reproduce(context, &request)?;
    print(context, &shown(context, &request, &claims, &outcome), &outcome)?;
    Ok(outcome.exit)
}

/// Converts the options to a request, and validates them before anything runs.
fn request(context: &Context, args: &ReproduceArgs) -> Result<Request> {
    let document = Document::load(&args.recipe)?;
    let arms = chosen_arms(&document, &args.arms)?;
    let of_first = document.resolve(&Selection {
        arm: arms.first().cloned(),
        tier: args.overlay.tier.clone(),
        overrides: args.overlay.overrides.clone(),
    })?;
    let looks = LookPlan::try_from(args.seeds.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    let first = args.seed.unwrap_or(of_first.recipe.train.seed);
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
        initial: args.init_from.as_deref().map(|place| initial_weights(context, place)).transpose()?,
        sources: BTreeMap::new(),
        stop_early: args.stop_early,
        own_runs: false,
        jobs: args.jobs,
        track: args.track.folders(),
    })
}

/// The weights of a file, or of a run by its folder or name.
fn initial_weights(context: &Context, place: &Path) -> Result<InitialWeights> {
    let ending = place.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("safetensors" | "pt" | "pth") => InitialWeights::load(place),
        _ => InitialWeights::load(&folder_of(context, place)?),
    }
}

fn claims(request: &Request) -> Result<Vec<ClaimSpec>> {
    Ok(request.document.resolve(&Selection::default())?.recipe.claim.clone())
}

/// A verdict with its text.
struct Shown<'o> {
    one: &'o JudgedClaim,
    /// The claim's text for the judged arm. `line` is the text with the arm that the claim names.
    statement: String,
    line: String,
    verdict: Verdict,
    earlier: Earlier,
}

/// The listed verdicts, each with the earlier verdicts on the same claim in this home's ledger.
fn shown<'o>(
    context: &Context,
    request: &Request,
    claims: &[ClaimSpec],
    outcome: &'o Outcome,
) -> Vec<Shown<'o>> {
    // A damaged ledger was already reported when the run was recorded. Verdicts on a tier do not
    // count as repeated ones.
    let entries = match request.tier {
        None => records::ledger(context, None).entries().unwrap_or_default(),
        Some(_) => Vec::new(),
    };
    // The record of this judgement may be an older one, because an identical record is not written
    // twice. Only records before it are earlier.
    let this = entries.iter().rposition(|entry| {
        entry.record.recipe == outcome.record.recipe && entry.record.judgements == outcome.record.judgements
    });
    let before = &entries[..this.unwrap_or(entries.len())];
    let one = |one: &'o JudgedClaim| {
        let claim = one.number.checked_sub(1).and_then(|at| claims.get(at));
        let records = before.iter().map(|entry| &entry.record);
        Shown {
            one,
            statement: claim.map(|claim| claim_line_in(claim, &one.arm)).unwrap_or_default(),
            line: claim.map(claim_line).unwrap_or_default(),
            verdict: claim.map_or_else(|| one.verdict.clone(), |claim| listed(claim, &one.verdict)),
            earlier: claim
                .map(|claim| Earlier::of(records, request.document.name(), claim, &one.arm))
                .unwrap_or_default(),
        }
    };
    outcome.judged.iter().map(one).collect()
}

fn print(context: &Context, shown: &[Shown<'_>], outcome: &Outcome) -> Result<()> {
    let tallies = ByStatement::of_verdicts(shown.iter().map(|one| &one.verdict));
    match context.format {
        Format::Human => {
            let verdicts = shown.iter().map(|one| {
                let mut text = verdict_text(one.one.number, &one.statement, &one.verdict);
                if let Some(earlier) = one.earlier.text() {
                    text.push_str(&format!("  {earlier}\n"));
                }
                (one.verdict.statement(), text)
            });
            let mut texts = vec![by_statement(verdicts, "\n")];
            if shown.is_empty() {
                texts = vec!["this recipe has no claims: nothing to judge\n".to_owned()];
                texts.extend(outcome.scores.iter().flat_map(score_lines));
            }
            let mut summary: Vec<String> =
                tallies.lines().into_iter().map(|line| format!("{line}\n")).collect();
            if let Some(why) = uncounted(&outcome.record).filter(|_| !shown.is_empty()) {
                summary.push(format!("`zoo report` does not count these verdicts: {why}\n"));
            }
            if !summary.is_empty() {
                texts.push(summary.concat());
            }
            let made = |made: &Made| match made.reused || !made.other_programs.is_empty() {
                true => format!(" ({made})"),
                false => String::new(),
            };
            let runs: Vec<String> = (outcome.runs.iter())
                .map(|run| format!("run {}{}\n", context.shown(&run.folder), made(&run.made)))
                .collect();
            output::write_painted(&format!("{}\n{}", texts.join("\n"), runs.concat()))
        }
        Format::Json => {
            let judged: Vec<_> = (shown.iter())
                .map(|one| {
                    json!({
                        "claim": one.one.number,
                        "arm": one.one.arm,
                        "statement": one.verdict.statement(),
                        "text": one.statement,
                        "evidence": one.one.evidence,
                        "verdict": one.verdict,
                        "earlier": one.earlier.0.iter().map(|outcome| outcome.word()).collect::<Vec<_>>(),
                    })
                })
                .collect();
            output::write_document(
                "reproduce",
                &json!({
                    "recipe": outcome.record.recipe, "tier": outcome.record.tier,
                    "runs": outcome.runs, "claims": judged, "summary": tallies.json(),
                    "uncounted": uncounted(&outcome.record),
                    "scores": outcome.scores, "ledger_head": outcome.head,
                }),
            )
        }
        Format::Csv | Format::Md => {
            let mut table = output::columns([
                "#claim",
                "statement",
                "arm",
                "text",
                "#measured",
                "#seeds",
                "verdict",
                "earlier verdicts",
                "explanation",
            ]);
            for one in shown {
                let measured = one.verdict.measured;
                table.push(vec![
                    Cell::count(one.one.number as u64),
                    Cell::words(one.verdict.statement().name()),
                    Cell::words(&one.one.arm),
                    Cell::words(&one.line),
                    measured.map_or_else(|| Cell::words(""), |value| Cell::of(value.to_string(), value)),
                    Cell::count(one.verdict.seeds.into()),
                    Cell::outcome(one.verdict.outcome),
                    Cell::words(one.earlier.text().unwrap_or_default()),
                    Cell::words(&one.verdict.explanation),
                ]);
            }
            output::write(&table.render(context.format))
        }
    }
}

/// Lines like `fp32, seed 1, test, beam4: BLEU 27.31 (nrefs:1|...)`.
fn score_lines(run: &RunScores) -> impl Iterator<Item = String> + '_ {
    run.scores.iter().map(|score| {
        format!(
            "{}, seed {}, {}, {}: {} {:.2} ({})\n",
            run.arm, run.seed, run.eval, run.decode, score.metric, score.value, score.signature
        )
    })
}
