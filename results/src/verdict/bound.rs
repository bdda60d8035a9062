//! `bound`: a threshold that the source promises.

use zoo_recipes::{ClaimSpec, Direction};

use super::conditions::direction_of;
use super::evidence::{Evidence, Interval, RunScore};
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::rule::{Spread, conclude, needed, replay, seeds_needed, sides, spread_note};
use super::value::{OWN_SIGMA_FROM, diverged, measured_words, prepare};
use super::wording::number;
use crate::statistics::{clopper_pearson, mean};

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
        let test = test_set(seen, average, alpha, verdict);
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
        let (down, up) = test.unwrap_or((0.0, 0.0));
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
        }
    });
}

/// How far the test set lets the mean score move, down and up, at level `alpha`: exact binomial limits of the mean error count where
/// every run has counts of the same set, else the mean distances of the runs' intervals. `None` where a run has neither.
fn test_set(seen: &[RunScore], average: f64, alpha: f64, verdict: &mut Verdict) -> Option<(f64, f64)> {
    let counts: Vec<_> = seen.iter().filter_map(|run| run.counts).collect();
    if let Some(first) = counts.first()
        && counts.len() == seen.len()
        && counts.iter().all(|c| c.total == first.total && c.scale == first.scale)
    {
        // All runs are tested on the same words, so more runs do not make them more words.
        let errors = mean(&counts.iter().map(|c| c.errors as f64).collect::<Vec<_>>());
        let (low, high) = clopper_pearson(errors, first.total as f64, alpha);
        let (low, high) = (first.scale * low, first.scale * high);
        verdict.notes.push(format!(
            "exact binomial limits of {} errors in {} words: {} to {}",
            number(errors),
            first.total,
            number(low),
            number(high)
        ));
        return Some(((average - low).max(0.0), (high - average).max(0.0)));
    }
    let per_run: Option<Vec<(f64, f64)>> = seen
        .iter()
        .map(|run| {
            let interval: Interval = run.interval?;
            Some(sides(&interval, run.score?, alpha))
        })
        .collect();
    let per_run = per_run?;
    let part = |side: fn(&(f64, f64)) -> f64| mean(&per_run.iter().map(side).collect::<Vec<_>>());
    Some((part(|s| s.0), part(|s| s.1)))
}
