//! `zoo judge`: judges results of any framework.

use serde_json::json;
use zoo_recipes::{ClaimSpec, Document, Recipe, Selection};
use zoo_results::exit::Exit;
use zoo_results::ledger::Judgement;
use zoo_results::metrics::Signature;
use zoo_results::report::ByStatement;
use zoo_results::verdict::{Evidence, StatedSpread, Verdict, judge, listed, not_run};

use crate::cli::JudgeArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::external::tracked::{Source, Taken, TakenScores};
use crate::external::{Given, Results};
use crate::output::{self, Cell, Format};
use crate::records::{self, External};
use crate::run::conventions::name_of;
use crate::wording::{by_statement, claim_line, verdict_text};

/// A claim with its verdict.
struct Judged<'c> {
    /// Number of the claim, from 1.
    number: usize,
    claim: &'c ClaimSpec,
    evidence: Evidence,
    verdict: Verdict,
}

impl Judged<'_> {
    fn judgement(&self) -> Judgement {
        Judgement {
            claim: self.claim.clone(),
            evidence: self.evidence.clone(),
            verdict: self.verdict.clone(),
        }
    }
}

pub fn run(context: &Context, args: &JudgeArgs) -> Result<Exit> {
    let document = Document::load(&args.recipe)?;
    if let Some(arm) = args.arm.as_deref().filter(|arm| !document.arms().contains(arm)) {
        return Err(Failure::usage(format!("{} has no arm {arm}", document.name()))
            .hint(format!("its arms are {}", document.arms().join(", "))));
    }
    let resolved = document.resolve(&Selection { arm: args.arm.clone(), ..Selection::default() })?;
    let claims = chosen(&resolved.recipe.claim, &args.claim)?;
    let source = source(args)?;
    let taken = if source.is_empty() { TakenScores::default() } else { source.scores(&claims)? };
    for note in &taken.notes {
        context.progress.note(note);
    }
    let scores: Vec<f64> =
        args.scores.iter().copied().chain(taken.scores.iter().map(|one| one.score)).collect();
    let given = Given {
        scores: &scores,
        baseline_scores: &args.baseline_scores,
        hypotheses: &args.hypotheses,
        baseline_hypotheses: &args.baseline_hypotheses,
        references: &args.references,
        points: &args.points,
        as_given: args.as_given,
        tracked: !source.is_empty(),
    };
    let signature = args.signature.as_deref().map(Signature::parse).transpose()?;
    let results = Results::gather(context, &given, &resolved, &claims)?;
    let judged: Vec<Judged<'_>> = claims
        .into_iter()
        .map(|(number, claim)| {
            let (evidence, verdict) =
                match results.evidence(args.arm.as_deref(), args.signature.as_deref(), claim) {
                    Ok(mut evidence) => {
                        evidence.spread = StatedSpread::named(claim, document.name());
                        evidence.eval = named_set(signature.as_ref(), &resolved.recipe, claim);
                        let verdict = judge(claim, &evidence);
                        (evidence, verdict)
                    }
                    Err(reason) => {
                        (Evidence { external: true, ..Evidence::default() }, not_run(claim, &reason))
                    }
                };
            Judged { number, claim, evidence, verdict }
        })
        .collect();
    if args.record {
        let judgements: Vec<Judgement> = judged.iter().map(Judged::judgement).collect();
        let scores = results.score_records(context, &judgements)?;
        let data = results.kept_references(context)?;
        let entry = records::record_external(
            context,
            &document,
            args.arm.as_deref(),
            External { data, scores, judgements, notes: notes(&source, &taken) },
        )?;
        context.progress.note(&entry);
    } else {
        context.progress.note("not recorded; --record writes these verdicts to the ledger");
    }
    print(context, document.name(), &judged, &taken)?;
    Ok(Exit::of_verdicts(judged.iter().map(|one| &one.verdict)))
}

/// The evaluation set that a signature names. Returns the claim's name for it if both are one set.
fn named_set(signature: Option<&Signature>, recipe: &Recipe, claim: &ClaimSpec) -> Option<String> {
    let named = signature?.test_set.clone()?;
    let own = claim.eval.as_ref().is_some_and(|eval| {
        let split = recipe.data().eval_set(eval).map(|set| set.split);
        *eval == named || split == Some(&named) || name_of(recipe, eval) == named
    });
    if own { claim.eval.clone() } else { Some(named) }
}

/// The requested claims with their numbers, from 1.
fn chosen<'c>(claims: &'c [ClaimSpec], numbers: &[usize]) -> Result<Vec<(usize, &'c ClaimSpec)>> {
    if claims.is_empty() {
        return Err(Failure::usage("this recipe has no claims to judge against"));
    }
    if let Some(number) = numbers.iter().find(|number| !(1..=claims.len()).contains(*number)) {
        return Err(Failure::usage(format!("there is no claim {number}"))
            .hint(format!("`zoo show` numbers them, 1 to {}", claims.len())));
    }
    let all = claims.iter().enumerate().map(|(at, claim)| (at + 1, claim));
    Ok(all.filter(|(number, _)| numbers.is_empty() || numbers.contains(number)).collect())
}

/// The trackers that the options name.
fn source(args: &JudgeArgs) -> Result<Source<'_>> {
    let times = args.times.unwrap_or(1.0);
    if !times.is_finite() || times == 0.0 {
        return Err(Failure::usage(format!("--times {times} is not a valid factor")).hint("--times 100"));
    }
    Ok(Source {
        tensorboard: &args.tensorboard,
        tag: args.tag.as_deref(),
        mlflow: &args.mlflow,
        metric: args.metric.as_deref(),
        at: args.at.unwrap_or_default(),
        times,
    })
}

/// Where the scores of a tracker were taken from, for the record.
fn notes(source: &Source<'_>, taken: &TakenScores) -> Vec<String> {
    if source.is_empty() {
        return Vec::new();
    }
    let scores =
        taken.scores.iter().map(|Taken { run, step, score }| format!("{run}: {score} at step {step}"));
    std::iter::once(source.words()).chain(scores).chain(taken.notes.iter().cloned()).collect()
}

fn print(context: &Context, recipe: &str, judged: &[Judged<'_>], taken: &TakenScores) -> Result<()> {
    let shown: Vec<(&Judged<'_>, Verdict)> =
        judged.iter().map(|one| (one, listed(one.claim, &one.verdict))).collect();
    match context.format {
        Format::Human => {
            let texts = shown.iter().map(|(one, verdict)| {
                (verdict.statement(), verdict_text(one.number, &claim_line(one.claim), verdict))
            });
            let summary = ByStatement::of_verdicts(shown.iter().map(|(_, verdict)| verdict)).lines();
            let mut text = format!("{}\n{}\n", by_statement(texts, "\n"), summary.join("\n"));
            if !taken.scores.is_empty() {
                let mut table = output::columns(["run", "#step", "#score"]);
                for one in &taken.scores {
                    let step = Cell::of(one.step.to_string(), one.step);
                    table.push(vec![Cell::words(one.run.clone()), step, Cell::number(Some(one.score))]);
                }
                text.push_str(&format!("\nSCORES\n{}", table.render(Format::Human)));
            }
            output::write_painted(&text)
        }
        Format::Json => {
            let all: Vec<_> = (shown.iter())
                .map(|(one, verdict)| {
                    json!({
                        "claim": one.number,
                        "statement": verdict.statement(),
                        "text": claim_line(one.claim),
                        "verdict": verdict,
                    })
                })
                .collect();
            let summary = ByStatement::of_verdicts(shown.iter().map(|(_, verdict)| verdict)).json();
            output::write_document(
                "judge",
                &json!({ "recipe": recipe, "claims": all, "summary": summary, "scores": taken.scores, "notes": taken.notes }),
            )
        }
        Format::Csv | Format::Md => {
            let mut table = output::columns([
                "#claim",
                "statement",
                "text",
                "#measured",
                "#seeds",
                "verdict",
                "explanation",
            ]);
            for (one, verdict) in &shown {
                table.push(vec![
                    Cell::count(one.number as u64),
                    Cell::words(verdict.statement().name()),
                    Cell::words(claim_line(one.claim)),
                    verdict
                        .measured
                        .map_or_else(|| Cell::words(""), |value| Cell::of(value.to_string(), value)),
                    Cell::count(verdict.seeds.into()),
                    Cell::outcome(verdict.outcome),
                    Cell::words(verdict.explanation.clone()),
                ]);
            }
            output::write(&table.render(context.format))
        }
    }
}
