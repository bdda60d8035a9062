//! Verdict on each claim from the evaluations of all arms and seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use zoo_recipes::{ClaimKind, ClaimSpec, Direction, Moment};
use zoo_results::metrics::{
    MetricValue, Resampling, ScoreOptions, Scorer, SegmentStatistics, paired_gain, score,
};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{
    ErrorCount, Evidence, Interval, PointScores, Precision, RunScore, RunStatus, StatedSpread, Verdict,
    direction_of, judge, judgeable, signature_difference, trained_term,
};
use zoo_training::state::Ending;

use super::timing::Timing;
use super::trained_terms::{At, term};
use crate::error::Result;
use crate::run::evaluate::{Evaluation, lines};
use crate::run::folder::{Made, Run, Trained};

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

/// A run with everything that was measured on it.
#[derive(Debug, Clone)]
pub struct Measured {
    pub run: Run,
    /// Whether the run was reused, and which programs made it.
    pub made: Made,
    /// Result of training.
    pub trained: Trained,
    /// Evaluations; empty if the run diverged.
    pub evaluations: Vec<Evaluation>,
    /// Evaluations at the points of trajectory claims.
    pub on_the_way: BTreeMap<Moment, Vec<Evaluation>>,
    /// Precision of matrix products that a probe measured; `None` without a probe.
    pub precision: Option<Precision>,
    /// SHA-256 of each split's ids.
    pub data: BTreeMap<String, String>,
}

impl Measured {
    fn evaluation(&self, claim: &ClaimSpec) -> Option<&Evaluation> {
        self.evaluations.iter().find(|evaluation| evaluation.is_of(claim))
    }

    fn file(&self, name: &std::path::Path) -> PathBuf {
        self.run.folder.join("eval").join(name)
    }

    /// Score by the claim's convention, with the evaluation that it comes from.
    fn score(&self, claim: &ClaimSpec) -> Result<Option<(MetricValue, &Evaluation)>> {
        self.score_of(claim, self.evaluation(claim))
    }

    fn score_of<'e>(
        &self,
        claim: &ClaimSpec,
        evaluation: Option<&'e Evaluation>,
    ) -> Result<Option<(MetricValue, &'e Evaluation)>> {
        let (Some(evaluation), Some(signature)) = (evaluation, &claim.signature) else {
            return Ok(None);
        };
        if trained_term(claim).is_some() {
            return Ok(None);
        }
        let fits =
            |value: &&MetricValue| signature_difference(signature, &value.signature.to_string()).is_none();
        if let Some(value) = evaluation.scores.iter().find(fits) {
            return Ok(Some((value.clone(), evaluation)));
        }
        let scorer = Scorer::from_signature(signature)?;
        let options = ScoreOptions { scorer, resampling: Some(Resampling::default()) };
        let (hypotheses, references) =
            (lines(&self.file(&evaluation.hypotheses))?, lines(&self.file(&evaluation.references))?);
        Ok(Some((score(&hypotheses, &[references], &options)?, evaluation)))
    }

    /// Score at a point of a trajectory.
    fn score_at(&self, claim: &ClaimSpec, moment: Moment) -> Result<Option<(MetricValue, &Evaluation)>> {
        let there = self.on_the_way.get(&moment).into_iter().flatten();
        self.score_of(claim, there.into_iter().find(|evaluation| evaluation.is_of(claim)))
    }

    fn point_score(&self, claim: &ClaimSpec, moment: Moment) -> Result<RunScore> {
        if let Some(term) = term(&self.run, claim, At::Point(moment))? {
            return Ok(RunScore::trained(self.run.card.seed, term)?);
        }
        let mut found = RunScore { seed: Some(self.run.card.seed), ..RunScore::default() };
        match self.score_at(claim, moment)? {
            Some((value, evaluation)) => {
                found.score = Some(value.value);
                found.hypotheses = Some(evaluation.hypotheses_sha256.clone());
            }
            None if matches!(self.trained.ending, Ending::Diverged { .. }) => {
                found.status = RunStatus::Diverged;
            }
            None => found.status = RunStatus::Missing,
        }
        Ok(found)
    }

    fn statistics(&self, claim: &ClaimSpec) -> Result<Option<SegmentStatistics>> {
        let (Some(evaluation), Some(signature)) = (self.evaluation(claim), &claim.signature) else {
            return Ok(None);
        };
        let (hypotheses, references) =
            (lines(&self.file(&evaluation.hypotheses))?, lines(&self.file(&evaluation.references))?);
        Ok(Some(Scorer::from_signature(signature)?.statistics(&hypotheses, &[references])?))
    }

    fn run_score(&self, claim: &ClaimSpec, baseline: Option<&Self>) -> Result<RunScore> {
        let mut found = RunScore {
            seed: Some(self.run.card.seed),
            first_loss: self.trained.first_loss,
            last_loss: self.trained.last_loss,
            ..RunScore::default()
        };
        if matches!(self.trained.ending, Ending::Diverged { .. }) {
            found.status = RunStatus::Diverged;
            return Ok(found);
        }
        let end = At::End { updates: self.trained.updates };
        let read = self.trained.ending.is_scored() && judgeable(claim).is_ok();
        let of_end = if read { term(&self.run, claim, end)? } else { None };
        if let Some(term) = of_end {
            let of_term = RunScore::trained(self.run.card.seed, term)?;
            return Ok(RunScore { score: of_term.score, term: of_term.term, ..found });
        }
        let Some((value, evaluation)) = self.score(claim)? else {
            // `diverges` claims need no score. Claims of other kinds stay open until there is one.
            found.status =
                if claim.kind == ClaimKind::Diverges { RunStatus::Scored } else { RunStatus::Missing };
            return Ok(found);
        };
        found.score = Some(value.value);
        found.counts = ErrorCount::of(&value);
        found.interval =
            value.interval.as_ref().map(|i| Interval { low: i.lower, high: i.upper, level: i.confidence });
        found.hypotheses = Some(evaluation.hypotheses_sha256.clone());
        if let Some(baseline) = baseline {
            found.difference = difference(claim, baseline, self)?;
        }
        Ok(found)
    }
}

/// 95 % interval of score minus baseline score, by paired resampling of the test set.
fn difference(claim: &ClaimSpec, baseline: &Measured, arm: &Measured) -> Result<Option<Interval>> {
    let (Some(of_baseline), Some(of_arm)) = (baseline.statistics(claim)?, arm.statistics(claim)?) else {
        return Ok(None);
    };
    let gain = paired_gain(&[(&of_baseline, &of_arm)], Resampling::default())?;
    let (worst, best) = (gain.lower_bound(0.975)?, gain.upper_bound(0.975)?);
    // A gain is positive if the arm is better. A difference is arm minus baseline.
    let (low, high) =
        if direction_of(claim) == Some(Direction::Lower) { (-best, -worst) } else { (worst, best) };
    Ok(Some(Interval { low, high, level: 0.95 }))
}

/// A claim with the arm that it is judged for.
pub struct Case<'a> {
    pub claim: &'a ClaimSpec,
    /// Name of the judged arm.
    pub arm: String,
}

/// Pairs of each claim with each arm that it concerns.
pub fn cases<'a>(claims: &'a [ClaimSpec], arms: &[String]) -> Vec<Case<'a>> {
    let mut found = Vec::new();
    for claim in claims {
        match claim.arm.as_deref() {
            Some("any") | None if claim.kind != ClaimKind::Parity => {
                found.extend(arms.iter().map(|arm| Case { claim, arm: arm.clone() }));
            }
            arm => found.push(Case { claim, arm: arm.unwrap_or("mixed").to_string() }),
        }
    }
    found
}

/// Conditions that all runs of a request share.
pub struct Conditions<'a> {
    /// Name of the recipe.
    pub recipe: &'a str,
    /// Numbers of seeds at which claims are judged.
    pub plan: &'a LookPlan,
    /// Description of the hardware.
    pub hardware: &'a str,
    /// Tier; `None` is the published size.
    pub tier: Option<&'a str>,
    /// Changed keys that the recipe does not list as free.
    pub overrides: &'a [String],
}

/// Evidence for a case from all runs and timings.
pub fn evidence(
    case: &Case,
    measured: &[Measured],
    timings: &[Timing],
    conditions: &Conditions,
) -> Result<Evidence> {
    let claim = case.claim;
    let of = |arm: &str| measured.iter().filter(|m| m.run.card.arm == arm).collect::<Vec<_>>();
    let compared = matches!(claim.kind, ClaimKind::Parity | ClaimKind::Ratio);
    let baseline_arm = claim.baseline.clone().unwrap_or_else(|| "fp32".into());
    let arm_runs = of(&case.arm);
    let baseline_runs = if compared { of(&baseline_arm) } else { Vec::new() };
    let paired =
        |run: &Measured| baseline_runs.iter().find(|b| b.run.card.seed == run.run.card.seed).copied();
    let mut points = Vec::new();
    for moment in claim.moments() {
        let runs: Vec<RunScore> =
            arm_runs.iter().map(|run| run.point_score(claim, moment)).collect::<Result<_>>()?;
        if runs.iter().any(|run| run.status != RunStatus::Missing) {
            points.push(PointScores { at: moment.at, runs });
        }
    }
    let on_the_way = || {
        let mut all = arm_runs.iter().flat_map(|run| claim.moments().map(move |moment| (run, moment)));
        all.find_map(|(run, moment)| run.score_at(claim, moment).ok().flatten())
    };
    let signature = arm_runs.iter().find_map(|run| run.score(claim).ok().flatten()).or_else(on_the_way);
    let scores: Vec<RunScore> =
        arm_runs.iter().map(|run| run.run_score(claim, paired(run))).collect::<Result<_>>()?;
    let of_term =
        points.iter().flat_map(|point| &point.runs).chain(&scores).find_map(|run| run.term.as_ref());
    let of_term = of_term.map(|term| term.signature.to_string());
    Ok(Evidence {
        arm: Some(case.arm.clone()),
        baseline: compared.then_some(baseline_arm),
        eval: claim.eval.clone(),
        decode: claim.decode.clone(),
        signature: signature.map(|(value, _)| value.signature.to_string()).or(of_term),
        runs: scores,
        baseline_runs: baseline_runs.iter().map(|run| run.run_score(claim, None)).collect::<Result<_>>()?,
        points,
        plan: conditions.plan.clone(),
        speed: timings.iter().find_map(|timing| timing.evidence(claim)),
        precision: arm_runs.first().and_then(|run| run.precision),
        baseline_precision: baseline_runs.first().and_then(|run| run.precision),
        hardware: Some(conditions.hardware.to_string()),
        tier: conditions.tier.map(str::to_string),
        overrides: conditions.overrides.to_vec(),
        external: false,
        spread: StatedSpread::named(claim, conditions.recipe),
        ..Evidence::default()
    })
}

/// Judges a case.
pub fn verdict(case: &Case, evidence: &Evidence) -> Verdict {
    judge(case.claim, evidence)
}

/// A stored run.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub run: &'a Run,
    /// Result of training.
    pub trained: &'a Trained,
    pub evaluations: &'a [Evaluation],
    /// Evaluations at the points of trajectory claims.
    pub on_the_way: &'a BTreeMap<Moment, Vec<Evaluation>>,
}

/// Verdicts on stored runs. Speeds are not timed, and the precision is the one that the run's card
/// names.
///
/// # Errors
/// Hypotheses cannot be read, or cannot be scored by the convention of a claim.
pub fn judge_found(found: &[Found<'_>], claims: &[ClaimSpec]) -> Result<Vec<JudgedClaim>> {
    let measured: Vec<Measured> = (found.iter())
        .map(|one| Measured {
            run: one.run.clone(),
            made: Made::default(),
            trained: one.trained.clone(),
            evaluations: one.evaluations.to_vec(),
            on_the_way: one.on_the_way.clone(),
            precision: Precision::named(&one.run.card.compute),
            data: one.trained.data.clone(),
        })
        .collect();
    let (mut arms, mut seeds): (Vec<String>, BTreeSet<u64>) = Default::default();
    for card in found.iter().map(|one| &one.run.card) {
        seeds.insert(card.seed);
        if !arms.contains(&card.arm) {
            arms.push(card.arm.clone());
        }
    }
    let card = found.first().map(|one| &one.run.card);
    let conditions = Conditions {
        recipe: card.map_or("", |card| &card.recipe),
        plan: &LookPlan::fixed(u32::try_from(seeds.len()).unwrap_or(u32::MAX).max(1)),
        hardware: &card.map_or_else(String::new, |card| card.environment.hardware()),
        tier: card.and_then(|card| card.tier.as_deref()),
        overrides: card.map_or(&[], |card| &card.overrides),
    };
    let mut judged = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        if found.is_empty() {
            let verdict = zoo_results::verdict::not_run(claim, "no run has ended");
            let arm = claim.arm.clone().unwrap_or_default();
            judged.push(JudgedClaim { number: at + 1, arm, evidence: Evidence::default(), verdict });
            continue;
        }
        for case in cases(std::slice::from_ref(claim), &arms) {
            let evidence = evidence(&case, &measured, &[], &conditions)?;
            let verdict = verdict(&case, &evidence);
            judged.push(JudgedClaim { number: at + 1, arm: case.arm, evidence, verdict });
        }
    }
    Ok(judged)
}
