//! `bound`: a threshold that the source promises.

use zoo_recipes::{ClaimSpec, Direction};

use super::collapse::{Arm, name_collapsed};
use super::conditions::direction_of;
use super::evidence::{ErrorCount, Evidence, Interval, RunScore};
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::rule::{PROBABLY, Spread, conclude, needed, replay, seeds_needed, sides, spread_note};
use super::value::{OWN_SIGMA_FROM, diverged, measured_words, prepare};
use super::wording::number;
use crate::statistics::{TRIAL_LIMIT, clopper_pearson, mean, trials_needed};

pub(super) fn judge(claim: &ClaimSpec, evidence: &Evidence, verdict: &mut Verdict) {
    let Some(bound) = claim.value else { return verdict.not_run("the claim has no value") };
    let Some(direction) = direction_of(claim) else {
        return verdict.not_run("the claim does not say which way is better");
    };
    let margin = claim.margin.unwrap_or(0.0);
    verdict.margin = Some(margin);
    let Some(runs) = prepare(claim, evidence, verdict) else { return };
    let higher = direction == Direction::Higher;
    let sign = if higher { 1.0 } else { -1.0 };
    verdict.target = Some(bound);
    replay(&evidence.plan, runs.len(), verdict, |look, verdict| {
        let seen = &runs[..look.seeds as usize];
        if diverged(seen, verdict) {
            return;
        }
        let scores: Vec<f64> = seen.iter().filter_map(|run| run.score).collect();
        let average = mean(&scores);
        verdict.measured = Some(average);
        let shortfall = sign * (bound - average);
        verdict.shortfall = Some(shortfall);
        let what = measured_words(&scores, average);
        let goal = format!("the bound {}", number(bound));
        let spread = Spread::choose(claim, &scores, 1.0, OWN_SIGMA_FROM);
        let alpha = spread.map_or(look.alpha, |s| s.level(look));
        verdict.alpha = Some(alpha);
        let test = TestSet::of(claim, seen, average, alpha, verdict);
        if let Some(spread) = spread {
            (verdict.sigma, verdict.sigma_source) = (Some(spread.sigma), Some(spread.source));
            verdict.notes.extend(spread_note(&spread, &scores));
        } else {
            verdict
                .notes
                .push("one seed and no sigma: the spread between seeds is not in the bound".to_owned());
        }
        if spread.is_none() && test.is_none() {
            verdict.outcome = Outcome::Inconclusive;
            verdict.seeds_needed = Some(SeedsNeeded::NewPlan(OWN_SIGMA_FROM));
            verdict.explanation = format!(
                "{what} is {} {goal}, but neither a sigma nor an interval from the test set is known; give hypotheses, or \
                 {OWN_SIGMA_FROM} seeds.",
                super::wording::standing(shortfall)
            );
            return;
        }
        let between = spread.map_or(0.0, |s| s.half_width(look.seeds, alpha));
        // Downward on the score is upward on the shortfall where more is better.
        let (down, up) = test.as_ref().map_or((0.0, 0.0), |test| (test.down, test.up));
        let (worse, better) = if higher { (down, up) } else { (up, down) };
        let (low, high) = (shortfall - better.hypot(between), shortfall + worse.hypot(between));
        conclude(verdict, &what, &goal, shortfall, low, high, margin);
        if verdict.outcome == Outcome::Inconclusive {
            let gap = margin - shortfall;
            let fixed = if gap > 0.0 { worse } else { better };
            let sigma = spread.map_or(0.0, |s| s.sigma);
            let more = if gap.abs() <= fixed {
                SeedsNeeded::None
            } else {
                seeds_needed(gap, sigma, fixed, &evidence.plan, look.seeds, OWN_SIGMA_FROM)
            };
            verdict.seeds_needed = Some(more);
            let words = if gap.abs() <= fixed {
                "No number of seeds would settle it: the test set is too small.".to_owned()
            } else {
                needed(more)
            };
            verdict.explanation = format!("{} {words}", verdict.explanation);
            if let Some(test) = test.as_ref().filter(|_| more == SeedsNeeded::None && gap.abs() > between)
                && let Some(counted) = &test.counted
            {
                // What the test set may take of the gap, beside the seeds; less of an error rate is better.
                let rest = gap.signum() * (gap * gap - between * between).sqrt();
                verdict.units_needed = counted.needed(-sign * rest, test, alpha);
                let units = counted.units;
                let words = match verdict.units_needed {
                    Some(n) => format!("About {n} {units} with this rate would probably settle it."),
                    None => format!("No {TRIAL_LIMIT} {units} would settle it: too close to the margin."),
                };
                verdict.explanation = format!("{} {words}", verdict.explanation);
            }
        }
        let arm = verdict.arm.clone().unwrap_or_else(|| "the arm".to_owned());
        let arm = Arm { name: &arm, runs: &seen.iter().collect::<Vec<_>>() };
        name_collapsed(verdict, &[arm], sign, &[claim.margin, claim.sigma.or(claim.assumed_sigma)]);
    });
}

/// How far the test set lets the mean score move.
struct TestSet {
    down: f64,
    up: f64,
    counted: Option<Counted>,
}

/// Errors that were counted on the same test set by every run.
struct Counted {
    /// Share of wrong ones, the mean over the runs.
    rate: f64,
    total: u64,
    scale: f64,
    /// Exact limits, as distances from the mean score.
    down: f64,
    up: f64,
    units: &'static str,
}

impl TestSet {
    /// At level `alpha`: the mean distances of the runs' intervals and the exact binomial limits of the mean error count, the wider of
    /// both where both are known. The binomial holds where a bootstrap of few errors, or of none, has no width; the bootstrap holds where
    /// errors come in bunches. `None` where neither is known of every run.
    fn of(
        claim: &ClaimSpec,
        seen: &[RunScore],
        average: f64,
        alpha: f64,
        verdict: &mut Verdict,
    ) -> Option<Self> {
        let per_run: Option<Vec<(f64, f64)>> = seen
            .iter()
            .map(|run| {
                let interval: Interval = run.interval?;
                Some(sides(&interval, run.score?, alpha))
            })
            .collect();
        let part = |runs: &[(f64, f64)], side: fn(&(f64, f64)) -> f64| {
            mean(&runs.iter().map(side).collect::<Vec<_>>())
        };
        let resampled = per_run.map(|runs| (part(&runs, |s| s.0), part(&runs, |s| s.1)));
        let counted = Counted::of(claim, seen, average, alpha, verdict);
        if resampled.is_none() && counted.is_none() {
            return None;
        }
        let (down, up) = resampled.unwrap_or((0.0, 0.0));
        let wider = |side: f64, exact: fn(&Counted) -> f64| side.max(counted.as_ref().map_or(0.0, exact));
        Some(TestSet { down: wider(down, |c| c.down), up: wider(up, |c| c.up), counted })
    }
}

impl Counted {
    fn of(
        claim: &ClaimSpec,
        seen: &[RunScore],
        average: f64,
        alpha: f64,
        verdict: &mut Verdict,
    ) -> Option<Self> {
        let counts: Vec<ErrorCount> = seen.iter().map(|run| run.counts).collect::<Option<_>>()?;
        let first = *counts.first()?;
        if counts.iter().any(|c| c.total != first.total || c.scale != first.scale) {
            return None;
        }
        let units = match claim.metric.as_str() {
            "wer" => "words",
            "cer" => "characters",
            _ => "cases",
        };
        // All runs are tested on the same words, so more runs do not make them more words.
        let errors = mean(&counts.iter().map(|c| c.errors as f64).collect::<Vec<_>>());
        let (low, high) = clopper_pearson(errors, first.total as f64, alpha);
        let (low, high) = (first.scale * low, first.scale * high);
        verdict.notes.push(format!(
            "exact binomial limits of {} errors in {} {units}: {} to {}",
            number(errors),
            first.total,
            number(low),
            number(high)
        ));
        Some(Counted {
            rate: errors / first.total as f64,
            total: first.total,
            scale: first.scale,
            down: (average - low).max(0.0),
            up: (high - average).max(0.0),
            units,
        })
    }

    /// How many would probably put the limit of the score `distance` away from it. Where bunches widen the test set's limits, in
    /// proportion more.
    fn needed(&self, distance: f64, test: &TestSet, alpha: f64) -> Option<u64> {
        let limit = self.rate + distance / self.scale;
        let alone = trials_needed(self.rate, limit, alpha, PROBABLY, self.total)?;
        let (wide, exact) = if distance > 0.0 { (test.up, self.up) } else { (test.down, self.down) };
        let bunched = if exact > 0.0 { (wide / exact).powi(2) } else { 1.0 };
        let all = (alone as f64 * bunched).ceil();
        (all <= TRIAL_LIMIT as f64).then_some(all as u64)
    }
}
