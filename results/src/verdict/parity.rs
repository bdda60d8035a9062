//! `parity`: the mixed arm is no worse than the baseline arm.

use zoo_recipes::{ClaimSpec, Direction};

use super::collapse::{Arm, name_collapsed};
use super::conditions::{direction_of, met};
use super::evidence::{Evidence, Interval, RunScore, RunStatus};
use super::looking::replay;
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::rule::{Bounds, bound_name, conclude, decide, leading, sides};
use super::spread::{Spread, seeds_needed};
use super::value::{margin_at, without_spread};
use super::wording::{number, seeds};
use crate::statistics::mean;

/// From two pairs on, the differences' own spread is used.
const OWN_SIGMA_FROM: u32 = 2;

struct Pair<'a> {
    ours: &'a RunScore,
    baseline: &'a RunScore,
}

pub(super) fn judge<'a>(claim: &ClaimSpec, evidence: &'a Evidence, verdict: &mut Verdict) {
    if claim.margin.is_none() && claim.margin_of_error.is_none() {
        return verdict.not_run("the claim states no margin");
    }
    let Some(direction) = direction_of(claim) else {
        return verdict.not_run("the claim does not say which way is better");
    };
    let baseline = claim.baseline.as_deref().unwrap_or("fp32");
    let arm = claim.arm.as_deref().unwrap_or("mixed");
    verdict.arm = Some(arm.to_owned());
    let pairs = pairs(evidence);
    if pairs.is_empty() {
        return verdict.not_run(&format!("no seed was run to its end in both arms, {arm} and {baseline}"));
    }
    let raw: Vec<f64> = pairs.iter().filter_map(|p| Some(p.ours.score? - p.baseline.score?)).collect();
    if !raw.is_empty() {
        (verdict.measured, verdict.seeds) = (Some(mean(&raw)), raw.len() as u32);
    }
    for (what, claimed, ours) in [("arm", arm, &evidence.arm), ("baseline", baseline, &evidence.baseline)] {
        if let Some(ours) = ours.as_deref().filter(|ours| *ours != claimed) {
            return verdict.not_comparable(&format!("the claim's {what} is {claimed}, ours is {ours}"));
        }
    }
    match met(claim, evidence) {
        Ok(notes) => verdict.notes.extend(notes),
        Err(reason) => return verdict.not_comparable(&reason),
    }
    verdict.target = Some(0.0);
    let sign = if direction == Direction::Higher { 1.0 } else { -1.0 };
    replay(evidence, pairs.len(), verdict, |look, verdict| {
        let seen = &pairs[..look.seeds as usize];
        if let Some(outcome) = diverged(seen, baseline) {
            (verdict.outcome, verdict.explanation) = outcome;
            return;
        }
        // Shortfall of each pair; above 0 the judged arm is worse.
        let shortfalls: Vec<f64> =
            seen.iter().filter_map(|p| Some(sign * (p.baseline.score? - p.ours.score?))).collect();
        let shortfall = mean(&shortfalls);
        // A margin that is a share of the baseline's error varies with that error, so the spread is
        // that of the remaining margin.
        let margins: Vec<f64> =
            seen.iter().filter_map(|p| Some(margin_at(claim, direction, p.baseline.score?))).collect();
        let margin = mean(&margins);
        verdict.margin = Some(margin);
        let share = if claim.margin.is_some() { 0.0 } else { claim.margin_of_error.unwrap_or(0.0) };
        let values: Vec<f64> = match share {
            0.0 => shortfalls.clone(),
            _ => shortfalls.iter().zip(&margins).map(|(shortfall, margin)| shortfall - margin).collect(),
        };
        (verdict.measured, verdict.shortfall) = (Some(-sign * shortfall), Some(shortfall));
        // The score of the arm counts once. The score of the baseline counts once in the difference
        // and `share` times in the margin.
        let factor = (1.0 + (1.0 + share).powi(2)).sqrt();
        let what = format!("{arm}, over {} in pairs,", seeds(look.seeds));
        let spread = Spread::choose(claim, evidence, &values, factor, OWN_SIGMA_FROM);
        let Some(spread) = spread else {
            verdict.outcome = Outcome::Inconclusive;
            without_spread(verdict, evidence);
            verdict.explanation = format!(
                "{what} is {} {baseline}, but one pair shows no spread and none was published or assumed; 5 seeds would show \
                 their own.",
                super::wording::standing(shortfall)
            );
            return;
        };
        let alpha = spread.level(look);
        spread.name_in(verdict, &values, alpha);
        verdict.alpha = Some(alpha);
        let half = spread.half_width(look.seeds, alpha);
        let words = spread.words(look.seeds, alpha);
        conclude(verdict, &what, baseline, Bounds::around(shortfall, half), margin, &words);
        spread.temper(verdict);
        let by_seed = verdict.outcome;
        match test_set(seen, sign, shortfall, share, alpha) {
            Some((low, high)) => {
                let by_test = decide(low, high, margin);
                let limits = format!("{} to {}", number(low), number(high));
                verdict.notes.push(format!(
                    "shortfall from resampling the test set in pairs: {limits} ({})",
                    bound_name("bounds", alpha)
                ));
                if by_seed != by_test {
                    verdict.outcome = Outcome::Inconclusive;
                }
                if by_test == Outcome::Inconclusive {
                    verdict.explanation = format!(
                        "{} Resampling the test set in pairs gives a shortfall of {limits}, on both sides of the margin; more \
                         seeds hardly change that.",
                        verdict.explanation
                    );
                } else if by_seed != by_test && by_seed != Outcome::Inconclusive {
                    verdict.explanation = format!(
                        "{} Resampling the test set in pairs says the opposite ({limits}): intervals and scores do not belong \
                         together.",
                        verdict.explanation
                    );
                }
            }
            None if by_seed == Outcome::Reproduced => {
                verdict.outcome = Outcome::Inconclusive;
                verdict.explanation = format!(
                    "{} The test set was not resampled, and REPRODUCED needs both: give the hypotheses of both arms.",
                    verdict.explanation
                );
            }
            None => verdict.notes.push("the test set was not resampled: no hypotheses".to_owned()),
        }
        if by_seed == Outcome::Inconclusive {
            let gap = margin - shortfall;
            let (more, words) = seeds_needed(Some(&spread), gap, 0.0, evidence, look.seeds, OWN_SIGMA_FROM);
            verdict.seeds_needed = Some(more);
            verdict.explanation = format!("{} {words}", verdict.explanation);
        } else if verdict.outcome == Outcome::Inconclusive {
            verdict.seeds_needed = Some(SeedsNeeded::None);
        }
        let of = |side: fn(&Pair<'a>) -> &'a RunScore| seen.iter().map(side).collect::<Vec<_>>();
        let (ours, theirs) = (of(|pair| pair.ours), of(|pair| pair.baseline));
        let arms = [Arm { name: arm, runs: &ours }, Arm { name: baseline, runs: &theirs }];
        name_collapsed(verdict, &arms, sign, &[claim.margin, claim.sigma.or(claim.assumed_sigma)]);
    });
}

/// Runs of both arms with the same seed, in the order of the arm's runs. External scores, which
/// have no seeds, are paired by position. Stops at the first seed that is missing in either arm.
fn pairs(evidence: &Evidence) -> Vec<Pair<'_>> {
    let baselines = &evidence.baseline_runs;
    let mut found = Vec::new();
    for (place, ours) in leading(&evidence.runs).iter().enumerate() {
        let baseline = match ours.seed {
            Some(seed) => baselines.iter().find(|run| run.seed == Some(seed)),
            None => baselines.get(place),
        };
        match baseline {
            Some(baseline) if leading(std::slice::from_ref(baseline)).len() == 1 => {
                found.push(Pair { ours, baseline });
            }
            _ => break,
        }
    }
    found
}

/// The verdict if an arm diverged.
fn diverged(seen: &[Pair<'_>], baseline: &str) -> Option<(Outcome, String)> {
    let count = |side: for<'a> fn(&'a Pair<'_>) -> &'a RunScore| {
        seen.iter().filter(|pair| side(pair).status == RunStatus::Diverged).count()
    };
    let (ours, theirs) = (count(|p| p.ours), count(|p| p.baseline));
    let all = seeds(seen.len() as u32);
    if theirs > 0 {
        let words = format!(
            "{theirs} of {all} diverged in the baseline arm {baseline}: there is nothing to be no worse than"
        );
        return Some((Outcome::NotComparable, words));
    }
    (ours > 0).then(|| (Outcome::NotReproduced, format!("{ours} of {all} diverged, and none in {baseline}.")))
}

/// Bounds of the mean shortfall from resampling the test set: the mean of the pairs' limits. This
/// treats the pairs' test-set errors as fully dependent, so it never underestimates them. `None` if
/// a pair has no interval.
fn test_set(seen: &[Pair<'_>], sign: f64, shortfall: f64, share: f64, alpha: f64) -> Option<(f64, f64)> {
    let mut distances = (0.0, 0.0);
    for pair in seen {
        let interval: Interval = pair.ours.difference?;
        let centre = pair.ours.score? - pair.baseline.score?;
        let (down, up) = sides(&interval, centre, alpha);
        let (better, worse) = if sign > 0.0 { (up, down) } else { (down, up) };
        // If the margin is a share of the baseline's error, sampling of the test set moves the
        // margin too, and this movement is added.
        let margin = match share {
            0.0 => 0.0,
            share => {
                let (down, up) = sides(&pair.baseline.interval?, pair.baseline.score?, alpha);
                share * down.max(up)
            }
        };
        distances = (distances.0 + better + margin, distances.1 + worse + margin);
    }
    let n = seen.len() as f64;
    Some((shortfall - distances.0 / n, shortfall + distances.1 / n))
}
