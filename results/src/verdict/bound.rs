//! `bound`: a threshold that the source promises.

use zoo_recipes::{ClaimSpec, Direction};

use super::collapse::{Arm, name_collapsed};
use super::conditions::direction_of;
use super::evidence::{ErrorCount, Evidence, Interval, RunScore};
use super::looking::replay;
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::rule::{Bounds, PROBABLY, conclude, sides};
use super::rules::Rules;
use super::spread::{Spread, seeds_needed};
use super::value::{OWN_SIGMA_FROM, diverged, margin_at, measured_words, prepare, without_spread};
use super::wording::{number, standing};
use crate::statistics::{TRIAL_LIMIT, clopper_pearson, mean, normal_quantile, trials_needed};

pub(super) fn judge(claim: &ClaimSpec, evidence: &Evidence, verdict: &mut Verdict) {
    let Some(bound) = claim.value else { return verdict.not_run("the claim has no value") };
    let Some(direction) = direction_of(claim) else {
        return verdict.not_run("the claim does not say which way is better");
    };
    let margin = margin_at(claim, direction, bound);
    verdict.margin = Some(margin);
    let Some(runs) = prepare(claim, evidence, verdict) else { return };
    let higher = direction == Direction::Higher;
    let sign = if higher { 1.0 } else { -1.0 };
    verdict.target = Some(bound);
    replay(evidence, runs.len(), verdict, |look, verdict| {
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
        let spread = Spread::choose(claim, evidence, &scores, 1.0, OWN_SIGMA_FROM);
        let alpha = spread.as_ref().map_or(look.alpha, |s| s.level(look));
        verdict.alpha = Some(alpha);
        let test = TestSet::of(claim, evidence.rules, seen, average, alpha, verdict);
        if let Some(spread) = &spread {
            spread.name_in(verdict, &scores, alpha);
        } else if evidence.rules == Rules::First {
            verdict
                .notes
                .push("one seed and no sigma: the spread between seeds is not in the bound".to_owned());
        }
        if let Some(missing) = missing(evidence.rules, spread.is_some(), test.is_some()) {
            verdict.outcome = Outcome::Inconclusive;
            without_spread(verdict, evidence);
            verdict.explanation = format!("{what} is {} {goal}, but {missing}.", standing(shortfall));
            return;
        }
        let between = spread.as_ref().map_or(0.0, |s| s.half_width(look.seeds, alpha));
        // The test gives distances of the score. Where a higher score is better, the shortfall
        // moves the other way.
        let (down, up) = test.as_ref().map_or((0.0, 0.0), |test| (test.down, test.up));
        let (worse, better) = if higher { (down, up) } else { (up, down) };
        let (low, high) = (shortfall - better.hypot(between), shortfall + worse.hypot(between));
        let words = spread.as_ref().map(|s| s.words(look.seeds, alpha)).unwrap_or_default();
        conclude(verdict, &what, &goal, Bounds { shortfall, low, high }, margin, &words);
        if let Some(spread) = &spread {
            spread.temper(verdict);
        }
        if verdict.outcome == Outcome::Inconclusive {
            let gap = margin - shortfall;
            let fixed = if gap > 0.0 { worse } else { better };
            let (more, words) = if gap.abs() <= fixed {
                let words = "No number of seeds would settle it: the test set is too small.";
                (SeedsNeeded::None, words.to_owned())
            } else {
                seeds_needed(spread.as_ref(), gap, fixed, evidence, look.seeds, OWN_SIGMA_FROM)
            };
            verdict.seeds_needed = Some(more);
            verdict.explanation = format!("{} {words}", verdict.explanation);
            if let Some(test) = test.as_ref().filter(|_| more == SeedsNeeded::None && gap.abs() > between)
                && let Some(counted) = &test.counted
            {
                // The part of the gap left to the test set, beside the seeds, with the sign of the
                // gap. For an error rate, lower is better.
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

/// Which intervals are missing, and how to supply them. The first rules need only one of the two.
fn missing(rules: Rules, spread: bool, test: bool) -> Option<String> {
    match (rules, spread, test) {
        (_, true, true) | (Rules::First, true, false) | (Rules::First, false, true) => None,
        (Rules::First, false, false) => Some(format!(
            "neither a sigma nor an interval from the test set is known; give hypotheses, or {OWN_SIGMA_FROM} seeds"
        )),
        (Rules::Second, false, _) => Some(format!(
            "one score shows no spread between seeds and none was measured; {OWN_SIGMA_FROM} seeds would show their own"
        )),
        (Rules::Second, true, false) => Some(
            "the test set was not resampled, and errors may come in bunches: give the hypotheses".to_owned(),
        ),
    }
}

/// Distances by which sampling of the test set may move the mean score.
struct TestSet {
    down: f64,
    up: f64,
    counted: Option<Counted>,
}

/// Error counts of runs that were all scored on the same test set.
struct Counted {
    /// Error rate, the mean over the runs.
    rate: f64,
    total: u64,
    scale: f64,
    /// Exact limits, as distances from the mean score.
    down: f64,
    up: f64,
    units: &'static str,
}

impl TestSet {
    /// Distances at level `alpha`: the mean distances of the runs' intervals and those of the exact
    /// binomial limits of the mean error count; the wider of the two where both are known.
    /// The bootstrap has no width for zero or few errors, and there the binomial holds. Where
    /// errors are correlated (come in bunches), the bootstrap holds. `None` if neither is known for
    /// every run or, under the second rules, if the test set was not resampled.
    fn of(
        claim: &ClaimSpec,
        rules: Rules,
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
        let bunch = match rules {
            Rules::First => 1.0,
            Rules::Second => {
                resampled?;
                bunch(seen)
            }
        };
        let counted = Counted::of(claim, seen, average, alpha, bunch, verdict);
        if resampled.is_none() && counted.is_none() {
            return None;
        }
        let (down, up) = resampled.unwrap_or((0.0, 0.0));
        let wider = |side: f64, exact: fn(&Counted) -> f64| side.max(counted.as_ref().map_or(0.0, exact));
        Some(TestSet { down: wider(down, |c| c.down), up: wider(up, |c| c.up), counted })
    }
}

/// Factor on the excess variance from bunched errors. A test set has few utterances, so the
/// estimate of this excess is itself uncertain. Without the factor, the simulation gives REPRODUCED
/// in up to 5.5 of 100 studies at the margin.
const BUNCHES_TOO_FEW: f64 = 1.25;

/// Number of errors that count as one (the design effect): the variance of the resampled score over
/// that of independent errors, the mean over the runs, at least 1. Dividing the errors and the
/// words by this number makes the exact limits valid for bunched errors too (Korn and Graubard
/// 1998). The percentile interval of few utterances ends too low in this case.
fn bunch(seen: &[RunScore]) -> f64 {
    let of = |run: &RunScore| {
        let (interval, counts) = (run.interval?, run.counts?);
        let rate = counts.errors as f64 / counts.total as f64;
        let independent = rate * (1.0 - rate) / counts.total as f64;
        let deviation = 0.5 * (interval.high - interval.low)
            / (counts.scale * normal_quantile(0.5 + 0.5 * interval.level));
        (independent > 0.0).then(|| deviation * deviation / independent)
    };
    let ratios: Vec<f64> = seen.iter().filter_map(of).collect();
    let added = if ratios.is_empty() { 0.0 } else { mean(&ratios) - 1.0 };
    1.0 + BUNCHES_TOO_FEW * added.max(0.0)
}

impl Counted {
    fn of(
        claim: &ClaimSpec,
        seen: &[RunScore],
        average: f64,
        alpha: f64,
        bunch: f64,
        verdict: &mut Verdict,
    ) -> Option<Self> {
        let counts: Vec<ErrorCount> = seen.iter().map(|run| run.counts).collect::<Option<_>>()?;
        let first = *counts.first()?;
        if counts.iter().any(|c| c.total != first.total || c.scale != first.scale) {
            return None;
        }
        let (counted, units) = match claim.metric.as_str() {
            "wer" => ("errors", "words"),
            "cer" => ("errors", "characters"),
            "accuracy" | "top1" | "top5" => ("right answers", "records"),
            "error" => ("errors", "records"),
            _ => ("errors", "cases"),
        };
        // All runs are tested on the same words, so more runs do not add words.
        let errors = mean(&counts.iter().map(|c| c.errors as f64).collect::<Vec<_>>());
        let (low, high) = clopper_pearson(errors / bunch, first.total as f64 / bunch, alpha);
        let (low, high) = (first.scale * low, first.scale * high);
        let together = match bunch > 1.0 {
            true => format!(", of which {} count as one since errors come in bunches", number(bunch)),
            false => String::new(),
        };
        verdict.notes.push(format!(
            "exact binomial limits of {} {counted} in {} {units}{together}: {} to {}",
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

    /// Number of words that would probably put the limit of the score at `distance` from the score.
    /// If bunched errors widen the test set's limits, the number grows in proportion.
    fn needed(&self, distance: f64, test: &TestSet, alpha: f64) -> Option<u64> {
        let limit = self.rate + distance / self.scale;
        let alone = trials_needed(self.rate, limit, alpha, PROBABLY, self.total)?;
        let (wide, exact) = if distance > 0.0 { (test.up, self.up) } else { (test.down, self.down) };
        let bunched = if exact > 0.0 { (wide / exact).powi(2) } else { 1.0 };
        let all = (alone as f64 * bunched).ceil();
        (all <= TRIAL_LIMIT as f64).then_some(all as u64)
    }
}
