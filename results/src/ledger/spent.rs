//! The part of a claim's 5 % level that earlier plans spent, according to the ledger.

use zoo_recipes::ClaimSpec;

use super::record::{Judgement, Record, RunEnd};
use crate::statistics::LookPlan;
use crate::verdict::{Evidence, Outcome, Rules, Spent, SpentLook, level_spent};

/// The system that a claim is judged on.
#[derive(Debug, Clone, Copy)]
pub struct System<'a> {
    /// Name of the recipe.
    pub recipe: &'a str,
    /// SHA-256 of the resolved recipe, hexadecimal.
    pub recipe_hash: &'a str,
    /// SHA-256 of the recipe without its claims and words, [`Record::system`].
    pub without_claims: &'a str,
    /// SHA-256 of the recipe without its claims only, [`Record::system_with_words`].
    pub with_words: Option<&'a str>,
}

impl System<'_> {
    /// Whether a record is of this system. Records of earlier programs have the hash that includes
    /// the words, or neither hash.
    fn is_of(&self, record: &Record) -> bool {
        let same = match &record.system {
            Some(system) => system == self.without_claims || Some(system.as_str()) == self.with_words,
            None => record.recipe_hash == self.recipe_hash,
        };
        same && record.recipe == self.recipe && record.end != RunEnd::External
    }
}

/// One plan for one statement on some seeds. Taking its next look does not spend its level again.
struct Study<'a> {
    claim: ClaimSpec,
    evidence: &'a Evidence,
    look: SpentLook,
}

impl<'a> Study<'a> {
    fn of(judgement: &'a Judgement, record: &Record) -> Self {
        let Judgement { claim, evidence, verdict } = judgement;
        let alpha = match (evidence.rules, verdict.alpha) {
            (Rules::First, _) => {
                LookPlan::spent(f64::from(verdict.seeds) / f64::from(evidence.plan.last().max(1)))
            }
            // A look that could not conclude.
            (Rules::Second, None) => 0.0,
            (Rules::Second, Some(_)) => level_spent(evidence, verdict.seeds),
        };
        let look =
            SpentLook { time: record.time.clone(), plan: evidence.plan.clone(), seeds: verdict.seeds, alpha };
        Self { claim: statement(claim), evidence, look }
    }

    /// Whether the present plan continues this one: the same looks at the same seeds for the same
    /// statement.
    fn goes_on_in(&self, claim: &ClaimSpec, evidence: &Evidence) -> bool {
        let same_row = self.evidence.rules != evidence.rules || self.evidence.spread == evidence.spread;
        let seeds = || seeds(self.evidence).zip(seeds(evidence));
        self.look.plan == evidence.plan && self.claim == *claim && same_row && seeds().all(|(a, b)| a == b)
    }
}

/// The statement of a claim, without its descriptive texts.
fn statement(claim: &ClaimSpec) -> ClaimSpec {
    ClaimSpec {
        source: String::new(),
        note: None,
        extends: None,
        own: None,
        margin_reason: None,
        sigma_reason: None,
        ..claim.clone()
    }
}

/// Seeds in the order in which they were run.
fn seeds(evidence: &Evidence) -> impl Iterator<Item = Option<u64>> {
    let of_points = evidence.points.first().map(|point| point.runs.as_slice()).unwrap_or_default();
    let runs = if evidence.runs.is_empty() { of_points } else { &evidence.runs };
    runs.iter().map(|run| run.seed)
}

/// Whether a judgement is on the present claim, with the same arm in the same precision. Margin,
/// spread and text are ignored.
fn is_on(judgement: &Judgement, claim: &ClaimSpec, evidence: &Evidence) -> bool {
    let other = &judgement.claim;
    let points = |claim: &ClaimSpec| -> Vec<(u64, u64)> {
        claim.points.iter().map(|point| (point.at, point.value.to_bits())).collect()
    };
    let alike = |a, b| a == b || Option::is_none(&a) || Option::is_none(&b);
    (other.kind, &other.metric, &other.eval, &other.decode, other.value, other.direction)
        == (claim.kind, &claim.metric, &claim.eval, &claim.decode, claim.value, claim.direction)
        && (&other.baseline, &other.other, other.clock) == (&claim.baseline, &claim.other, claim.clock)
        && points(other) == points(claim)
        && judgement.evidence.arm == evidence.arm
        && alike(judgement.evidence.precision, evidence.precision)
        && alike(judgement.evidence.baseline_precision, evidence.baseline_precision)
}

/// The level of this claim that the plans in `records` (oldest first) spent, except the plan that
/// the present one continues. `None` if nothing was spent.
pub fn spent<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    system: &System<'_>,
    claim: &ClaimSpec,
    evidence: &Evidence,
) -> Option<Spent> {
    let present = statement(claim);
    let mut studies: Vec<Study<'_>> = Vec::new();
    for record in records.into_iter().filter(|record| system.is_of(record)) {
        for judgement in record.judgements.iter().filter(|judgement| is_on(judgement, claim, evidence)) {
            let judged = matches!(
                judgement.verdict.outcome,
                Outcome::Reproduced | Outcome::NotReproduced | Outcome::Inconclusive
            );
            let next = Study::of(judgement, record);
            if !judged || next.look.alpha <= 0.0 {
                continue;
            }
            // The latest plan is last: a continued plan is moved to the end.
            let known = studies.iter().position(|study| study.goes_on_in(&next.claim, next.evidence));
            let before = known.map(|at| studies.remove(at));
            let further = before.filter(|before| before.look.alpha > next.look.alpha);
            studies.push(further.unwrap_or(next));
        }
    }
    // A plan that was abandoned for another one cannot use its remaining level: it counts as fully
    // spent.
    if studies.last().is_some_and(|last| last.goes_on_in(&present, evidence)) {
        studies.pop();
    }
    let looks: Vec<SpentLook> = studies.into_iter().map(|study| study.look).collect();
    let alpha = looks.iter().map(|look| look.alpha).sum();
    (!looks.is_empty()).then_some(Spent { alpha, looks })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::statistics::ALPHA;
    use crate::verdict::RunScore;

    const SYSTEM: System<'_> =
        System { recipe: "toy", recipe_hash: "new", without_claims: "same", with_words: Some("as before") };

    fn claim(margin: f64) -> ClaimSpec {
        serde_json::from_value(json!({"kind": "value", "metric": "bleu", "value": 41.0, "margin": margin,
            "sigma": 0.2, "n": 8, "source": "a test"}))
        .unwrap()
    }

    fn evidence(plan: &[u32], seeds: &[u64]) -> Evidence {
        Evidence {
            arm: Some("fp32".into()),
            plan: LookPlan::try_from(plan.to_vec()).unwrap(),
            runs: seeds.iter().map(|seed| RunScore::scored(*seed, 40.9 + *seed as f64 / 100.0)).collect(),
            ..Evidence::default()
        }
    }

    fn record(claim: ClaimSpec, evidence: Evidence) -> Record {
        Record {
            time: "2026-01-31T23:59:59Z".into(),
            recipe: "toy".into(),
            recipe_hash: "old".into(),
            system: Some("same".into()),
            judgements: vec![Judgement::of(claim, evidence)],
            ..Record::default()
        }
    }

    fn alpha(records: &[Record], margin: f64, plan: &[u32], seeds: &[u64]) -> f64 {
        let found = spent(records, &SYSTEM, &claim(margin), &evidence(plan, seeds));
        found.map_or(0.0, |spent| spent.alpha)
    }

    #[test]
    fn a_plan_cannot_be_replaced_for_nothing() {
        let first = record(claim(0.5), evidence(&[1, 4], &[1]));
        let spent_there = LookPlan::spent(0.25);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        let one = std::slice::from_ref(&first);
        near(alpha(one, 0.5, &[1, 4], &[1, 2, 3, 4]), 0.0);
        // Descriptive texts do not make another statement.
        let own = ClaimSpec { own: Some("a check".into()), note: Some("reworded".into()), ..claim(0.5) };
        near(alpha(&[record(own, evidence(&[1, 4], &[1]))], 0.5, &[1, 4], &[1, 2, 3, 4]), 0.0);
        near(alpha(one, 0.5, &[1, 3], &[1]), spent_there);
        // Another margin makes another statement, and new seeds make a new trial.
        near(alpha(one, 0.7, &[1, 4], &[1]), spent_there);
        near(alpha(one, 0.5, &[1, 4], &[2]), spent_there);
        // A look that could not conclude because no spread is known spends nothing.
        let blind = ClaimSpec { sigma: None, n: None, ..claim(0.5) };
        near(alpha(&[record(blind, evidence(&[1], &[1]))], 0.5, &[3], &[1, 2, 3]), 0.0);
        // The whole level is spent.
        near(alpha(&[record(claim(0.5), evidence(&[1], &[1]))], 0.5, &[3], &[1, 2, 3]), ALPHA);
    }

    #[test]
    fn a_plan_that_was_left_has_lost_the_rest() {
        let first = record(claim(0.5), evidence(&[1, 4], &[1]));
        let carried = spent([&first], &SYSTEM, &claim(0.5), &evidence(&[2, 3], &[1, 2]));
        let second = record(claim(0.5), Evidence { spent: carried, ..evidence(&[2, 3], &[1, 2]) });
        let both = [first, second];
        let back = alpha(&both, 0.5, &[1, 4], &[1]);
        let first_share = LookPlan::spent(0.25);
        let second_share = LookPlan::spent(2.0 / 3.0) * (1.0 - first_share / ALPHA);
        assert!((back - first_share - second_share).abs() < 1e-12, "{back}");
        assert!((alpha(&both, 0.5, &[2, 3], &[1, 2, 3]) - first_share).abs() < 1e-12);
    }

    #[test]
    fn other_systems_and_other_precisions_spend_nothing() {
        let first = record(claim(0.5), evidence(&[1], &[1]));
        for other in [
            Record { recipe: "another".into(), ..first.clone() },
            Record { system: Some("changed".into()), ..first.clone() },
            Record { system: None, ..first.clone() },
            Record { end: RunEnd::External, ..first.clone() },
        ] {
            assert_eq!(alpha(&[other], 0.5, &[3], &[1, 2, 3]), 0.0);
        }
        // The hash of an earlier program includes the recipe's words.
        let before = Record { system: Some("as before".into()), ..first.clone() };
        assert_eq!(alpha(&[before], 0.5, &[3], &[1, 2, 3]), ALPHA);
        // An old record has no hash without claims, so the full hash decides.
        let old = Record { system: None, recipe_hash: "new".into(), ..first };
        assert_eq!(alpha(&[old], 0.5, &[3], &[1, 2, 3]), ALPHA);
    }
}
