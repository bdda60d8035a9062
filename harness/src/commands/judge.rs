//! `zoo judge`.

use std::collections::BTreeMap;

use serde_json::json;
use zoo_recipes::{ClaimKind, ClaimSpec, Document, Resolved, Selection};
use zoo_results::exit::Exit;
use zoo_results::ledger::{HypothesesFile, Judgement, ScoreRecord};
use zoo_results::metrics::{Convention, Metric, Resampling, ScoreOptions, Scorer, score};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Evidence, Interval, RunScore, Verdict, judge, not_run};

use crate::cli::JudgeArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Format};
use crate::wording::{claim_line, verdict_text};
use crate::{lines, records, references, rescore};

/// One claim with its verdict.
struct Judged<'c> {
    /// From 1.
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
    let results = Results::gather(context, args, &resolved, &claims)?;
    let judged: Vec<Judged<'_>> = claims
        .into_iter()
        .map(|(number, claim)| {
            let (evidence, verdict) = match results.evidence(args, claim) {
                Ok(evidence) => {
                    let verdict = judge(claim, &evidence);
                    (evidence, verdict)
                }
                Err(reason) => (Evidence { external: true, ..Evidence::default() }, not_run(claim, &reason)),
            };
            Judged { number, claim, evidence, verdict }
        })
        .collect();
    if !args.no_record {
        let judgements = judged.iter().map(Judged::judgement).collect();
        let scores = results.score_records(context, &judged)?;
        let data = results.kept_references(context)?;
        let entry =
            records::record_external(context, &document, args.arm.as_deref(), data, scores, judgements)?;
        context.progress.note(&entry);
    }
    print(context, &judged)?;
    Ok(Exit::of_verdicts(judged.iter().map(|one| &one.verdict)))
}

/// The claims that were asked for, numbered from 1.
fn chosen<'c>(claims: &'c [ClaimSpec], numbers: &[usize]) -> Result<Vec<(usize, &'c ClaimSpec)>> {
    if claims.is_empty() {
        return Err(Failure::usage("nothing was published for this recipe: it has no claim to judge by"));
    }
    if let Some(number) = numbers.iter().find(|number| !(1..=claims.len()).contains(*number)) {
        return Err(Failure::usage(format!("there is no claim {number}"))
            .hint(format!("`zoo show` numbers them, 1 to {}", claims.len())));
    }
    let all = claims.iter().enumerate().map(|(at, claim)| (at + 1, claim));
    Ok(all.filter(|(number, _)| numbers.is_empty() || numbers.contains(number)).collect())
}

/// What was brought from outside.
struct Results {
    scores: Vec<f64>,
    baseline: Vec<f64>,
    /// Hypotheses by run.
    hypotheses: Vec<Vec<String>>,
    /// References by evaluation set; one entry without a name where they were given.
    references: Vec<(Option<String>, Vec<Vec<String>>)>,
    /// Evaluation sets of the claims that are scored from text.
    evals: Vec<String>,
}

impl Results {
    fn gather(
        context: &Context,
        args: &JudgeArgs,
        resolved: &Resolved,
        claims: &[(usize, &ClaimSpec)],
    ) -> Result<Self> {
        if let Some(bad) = args.scores.iter().chain(&args.baseline_scores).find(|score| !score.is_finite()) {
            return Err(Failure::usage(format!("{bad} is no score")));
        }
        let mut results = Self {
            scores: args.scores.clone(),
            baseline: args.baseline_scores.clone(),
            hypotheses: Vec::new(),
            references: Vec::new(),
            evals: Vec::new(),
        };
        if !args.scores.is_empty() {
            results.one_measure(claims)?;
        }
        for path in &args.hypotheses {
            results.hypotheses.push(lines::read(path)?);
        }
        if results.hypotheses.is_empty() {
            return Ok(results);
        }
        let scored = claims.iter().filter(|(_, claim)| scorer_of(claim).is_ok());
        results.evals = scored.filter_map(|(_, claim)| claim.eval.clone()).collect();
        results.evals.sort();
        results.evals.dedup();
        if !args.references.is_empty() {
            let streams = args.references.iter().map(|path| lines::read(path)).collect::<Result<_>>()?;
            results.references.push((None, streams));
            return Ok(results);
        }
        for set in &results.evals {
            results.references.push((Some(set.clone()), vec![references::of(context, resolved, set)?]));
        }
        Ok(results)
    }

    /// A bare score does not say what it is: claims on different things cannot be judged by the same numbers.
    fn one_measure(&self, claims: &[(usize, &ClaimSpec)]) -> Result<()> {
        let measured = claims.iter().filter(|(_, claim)| takes_scores(claim));
        let mut of: Vec<(usize, String)> = measured
            .map(|(number, claim)| {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                let what = [&claim.eval, &claim.decode, &claim.signature].map(part).join(" ");
                (*number, format!("{} {what}", claim.metric).trim().to_owned())
            })
            .collect();
        of.dedup_by(|one, other| one.1 == other.1);
        if of.len() <= 1 {
            return Ok(());
        }
        let all: Vec<String> = of.iter().map(|(number, what)| format!("{number}: {what}")).collect();
        Err(Failure::usage(format!("the claims are on different measures\n  {}", all.join("\n  ")))
            .hint("say which ones the scores are of: --claim N"))
    }

    /// What bears on a claim, or why nothing does.
    fn evidence(&self, args: &JudgeArgs, claim: &ClaimSpec) -> std::result::Result<Evidence, String> {
        let mut evidence = Evidence {
            arm: args.arm.clone(),
            signature: args.signature.clone(),
            external: true,
            ..Evidence::default()
        };
        if claim.kind == ClaimKind::Ratio {
            return Err("no timing was given".to_owned());
        }
        if !takes_scores(claim) {
            return Err("not judged from scores".to_owned());
        }
        if claim.kind == ClaimKind::Parity {
            if self.baseline.is_empty() {
                return Err("no scores of the baseline arm were given (--baseline-scores)".to_owned());
            }
            if self.baseline.len() != self.scores.len() {
                return Err(format!(
                    "{} scores and {} of the baseline arm cannot be paired",
                    self.scores.len(),
                    self.baseline.len()
                ));
            }
            // The scores stand in the order of their seeds, whatever these were.
            let paired = |scores: &[f64]| -> Vec<RunScore> {
                scores.iter().zip(1..).map(|(score, seed)| RunScore::scored(seed, *score)).collect()
            };
            evidence.baseline = Some(claim.baseline.clone().unwrap_or_else(|| "fp32".to_owned()));
            evidence.runs = paired(&self.scores);
            evidence.baseline_runs = paired(&self.baseline);
        } else if self.hypotheses.is_empty() {
            evidence.runs = self.scores.iter().map(|score| RunScore::external(*score)).collect();
        } else {
            self.score(claim, &mut evidence)?;
        }
        evidence.plan = LookPlan::fixed(u32::try_from(evidence.runs.len()).unwrap_or(u32::MAX));
        Ok(evidence)
    }

    fn score(&self, claim: &ClaimSpec, evidence: &mut Evidence) -> std::result::Result<(), String> {
        let scorer = scorer_of(claim)?;
        let given = self.references.iter().find(|(set, _)| set.is_none() || *set == claim.eval);
        let Some((_, references)) = given else {
            return Err("there are no references of its set".to_owned());
        };
        for hypotheses in &self.hypotheses {
            let options = ScoreOptions { scorer: scorer.clone(), resampling: Some(Resampling::default()) };
            let value = score(hypotheses, references, &options).map_err(|error| error.to_string())?;
            evidence.signature = Some(value.signature.to_string());
            evidence.runs.push(RunScore {
                score: Some(value.value),
                interval: value.interval.map(|interval| Interval {
                    low: interval.lower,
                    high: interval.upper,
                    level: interval.confidence,
                }),
                hypotheses: Some(records::digest_of(hypotheses)),
                ..RunScore::default()
            });
        }
        Ok(())
    }
}

impl Results {
    /// References that were used, by digest, for a recheck. Several streams have no place in a recheck and are not kept.
    fn kept_references(&self, context: &Context) -> Result<BTreeMap<String, String>> {
        let mut kept = BTreeMap::new();
        for (set, streams) in &self.references {
            if let [lines] = streams.as_slice() {
                let sets = match set {
                    Some(set) => vec![set.clone()],
                    None => self.evals.clone(),
                };
                let file = records::keep(context, lines)?;
                kept.extend(sets.iter().map(|set| (rescore::references_key(set), file.sha256.clone())));
            }
        }
        Ok(kept)
    }

    /// The scores as a ledger keeps them, with their hypotheses beside it. One of each run for claims that are scored alike.
    fn score_records(&self, context: &Context, judged: &[Judged<'_>]) -> Result<Vec<ScoreRecord>> {
        let mut kept: Vec<HypothesesFile> = Vec::new();
        for hypotheses in &self.hypotheses {
            kept.push(records::keep(context, hypotheses)?);
        }
        let mut scores: Vec<ScoreRecord> = Vec::new();
        for one in judged.iter().filter(|one| !one.evidence.runs.is_empty()) {
            let text = |part: &Option<String>| part.clone().unwrap_or_default();
            for (at, run) in one.evidence.runs.iter().enumerate() {
                let score = ScoreRecord {
                    eval: text(&one.claim.eval),
                    decode: text(&one.claim.decode),
                    arm: text(&one.evidence.arm),
                    // From outside: the runs are numbered in the order in which they were given.
                    seed: at as u64 + 1,
                    metric: one.claim.metric.clone(),
                    signature: text(&one.evidence.signature),
                    value: run.score.unwrap_or(f64::NAN),
                    interval: run.interval,
                    hypotheses: kept.get(at).cloned(),
                };
                if score.value.is_finite() && !scores.contains(&score) {
                    scores.push(score);
                }
            }
        }
        Ok(scores)
    }
}

/// Kinds that numbers from outside can be held against.
fn takes_scores(claim: &ClaimSpec) -> bool {
    matches!(claim.kind, ClaimKind::Value | ClaimKind::Bound | ClaimKind::Parity)
}

/// How a claim's metric is computed from text.
fn scorer_of(claim: &ClaimSpec) -> std::result::Result<Scorer, String> {
    let scorer = match &claim.signature {
        Some(signature) => Scorer::from_signature(signature),
        None => Metric::parse(&claim.metric).and_then(|metric| match metric {
            Metric::ExactMatch => Scorer::new(Convention::ExactMatch(Default::default())),
            other => Err(zoo_results::metrics::ScoreError::NotFromText { metric: other.name() }),
        }),
    };
    scorer.map_err(|error| error.to_string())
}

fn print(context: &Context, judged: &[Judged<'_>]) -> Result<()> {
    match context.format {
        Format::Human => {
            let texts: Vec<String> = judged
                .iter()
                .map(|one| verdict_text(one.number, &claim_line(one.claim), &one.verdict))
                .collect();
            output::write(&texts.join("\n"))
        }
        Format::Json => {
            let all: Vec<_> = judged
                .iter()
                .map(|one| json!({ "claim": one.number, "statement": claim_line(one.claim), "verdict": one.verdict }))
                .collect();
            output::write_json(&all)
        }
        Format::Csv | Format::Md => {
            let mut table =
                output::columns(["claim", "statement", "measured", "seeds", "verdict", "explanation"]);
            for one in judged {
                table.push(output::words([
                    one.number.to_string(),
                    claim_line(one.claim),
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
