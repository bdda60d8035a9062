//! `value`: a published result.

use zoo_recipes::{ClaimSpec, Direction, Statistic};

use super::collapse::{Arm, name_collapsed};
use super::conditions::{direction_of, met};
use super::evidence::{Evidence, RunScore, RunStatus};
use super::looking::replay;
use super::outcome::{EqualSystem, Outcome, SeedsNeeded, Verdict};
use super::rule::{Bounds, conclude, leading};
use super::rules::Rules;
use super::spread::{Spread, seeds_needed};
use super::wording::{number, percent, seeds};
use crate::statistics::{maximum_of_normals, mean, normal_cdf};

/// Number of seeds from which the sample's own spread is used.
pub(super) const OWN_SIGMA_FROM: u32 = 5;

pub(super) fn judge(claim: &ClaimSpec, evidence: &Evidence, verdict: &mut Verdict) {
    let Some(published) = claim.value else { return verdict.not_run("the claim has no value") };
    if claim.margin.is_none() && claim.margin_of_error.is_none() {
        return verdict.not_run("the claim states no margin");
    }
    let Some(direction) = direction_of(claim) else {
        return verdict.not_run("the claim does not say which way is better");
    };
    let Some(runs) = prepare(claim, evidence, verdict) else { return };
    // +1 if higher is better: shortfall = sign * (target - mean).
    let sign = if direction == Direction::Higher { 1.0 } else { -1.0 };
    replay(evidence, runs.len(), verdict, |look, verdict| {
        let seen = &runs[..look.seeds as usize];
        if diverged(seen, verdict) {
            return;
        }
        let scores: Vec<f64> = seen.iter().filter_map(|run| run.score).collect();
        let average = mean(&scores);
        let spread = Spread::choose(claim, evidence, &scores, 1.0, OWN_SIGMA_FROM);
        let of_row = evidence.spread.as_ref().map(|row| row.sd);
        let one_run = claim.sigma.or(of_row).or(claim.assumed_sigma).or(spread.as_ref().map(Spread::sigma));
        let target = target(claim, published, sign, one_run, verdict);
        verdict.measured = Some(average);
        verdict.target = Some(target);
        let margin = margin_at(claim, direction, target);
        verdict.margin = Some(margin);
        let shortfall = sign * (target - average);
        verdict.shortfall = Some(shortfall);
        let what = measured_words(&scores, average);
        let Some(spread) = spread else {
            verdict.outcome = Outcome::Inconclusive;
            without_spread(verdict, evidence);
            verdict.explanation = format!(
                "{what} is {} the target {}, but no spread between seeds was published or assumed; {OWN_SIGMA_FROM} seeds \
                 would show their own.",
                super::wording::standing(shortfall),
                number(target)
            );
            return;
        };
        let alpha = spread.level(look);
        spread.name_in(verdict, &scores, alpha);
        verdict.alpha = Some(alpha);
        let half = spread.half_width(look.seeds, alpha);
        let goal = format!("the target {}", number(target));
        let words = spread.words(look.seeds, alpha);
        conclude(verdict, &what, &goal, Bounds::around(shortfall, half), margin, &words);
        spread.temper(verdict);
        if verdict.outcome == Outcome::Inconclusive {
            let gap = margin - shortfall;
            let (more, words) = seeds_needed(Some(&spread), gap, 0.0, evidence, look.seeds, OWN_SIGMA_FROM);
            verdict.seeds_needed = Some(more);
            verdict.explanation = format!("{} {words}", verdict.explanation);
        }
        let arm = verdict.arm.clone().unwrap_or_else(|| "the arm".to_owned());
        let arm = Arm { name: &arm, runs: &seen.iter().collect::<Vec<_>>() };
        name_collapsed(verdict, &[arm], sign, &[claim.margin, claim.sigma.or(claim.assumed_sigma)]);
        let noise = published_noise(claim, one_run.unwrap_or(spread.sigma()))
            .hypot(spread.sigma() / f64::from(look.seeds).sqrt());
        if noise > 0.0 && spread.weakness().is_none() {
            let equal = EqualSystem {
                low: target - 1.959_963_984_540_054 * noise,
                high: target + 1.959_963_984_540_054 * noise,
                reproduced: normal_cdf((margin - half) / noise),
            };
            verdict.notes.push(format!(
                "an equal system's mean of {} would lie between {} and {} 95 times in 100, given the claim's own noise, and be \
                 called REPRODUCED with a chance of {}",
                seeds(look.seeds),
                number(equal.low),
                number(equal.high),
                percent(equal.reproduced)
            ));
            verdict.equal_system = Some(equal);
        }
    });
}

/// The margin in the score's unit. `of` is the score for a relative margin.
pub(super) fn margin_at(claim: &ClaimSpec, direction: Direction, of: f64) -> f64 {
    // The metric may supply a direction that the claim does not give.
    let claim = ClaimSpec { direction: Some(direction), ..claim.clone() };
    claim.margin_at(of).unwrap_or(0.0)
}

/// For a look without any known spread: suggests the number of seeds that would show one. Such a
/// look could not conclude, so it spends no level.
pub(super) fn without_spread(verdict: &mut Verdict, evidence: &Evidence) {
    verdict.seeds_needed = Some(SeedsNeeded::NewPlan(OWN_SIGMA_FROM));
    if evidence.rules == Rules::Second {
        verdict.alpha = None;
    }
}

/// Checks shared by `value` and `bound`: runs exist and meet the claim's conditions. Returns the
/// usable runs.
pub(super) fn prepare<'a>(
    claim: &ClaimSpec,
    evidence: &'a Evidence,
    verdict: &mut Verdict,
) -> Option<&'a [RunScore]> {
    let runs = leading(&evidence.runs);
    if runs.is_empty() {
        verdict.not_run(if evidence.runs.is_empty() { "no run" } else { "no run ended with a score" });
        return None;
    }
    let scores: Vec<f64> = runs.iter().filter_map(|run| run.score).collect();
    if !scores.is_empty() {
        verdict.measured = Some(mean(&scores));
        verdict.seeds = scores.len() as u32;
    }
    match met(claim, evidence) {
        Ok(notes) => verdict.notes.extend(notes),
        Err(reason) => {
            verdict.not_comparable(&reason);
            return None;
        }
    }
    Some(runs)
}

/// Concludes if a run diverged: divergence is worse than any margin.
pub(super) fn diverged(seen: &[RunScore], verdict: &mut Verdict) -> bool {
    let lost: Vec<String> = seen
        .iter()
        .filter(|run| run.status == RunStatus::Diverged)
        .map(|run| run.seed.map_or("unknown".to_owned(), |seed| seed.to_string()))
        .collect();
    if lost.is_empty() {
        return false;
    }
    verdict.outcome = Outcome::NotReproduced;
    verdict.explanation =
        format!("{} of {} diverged (seed {}).", lost.len(), seeds(seen.len() as u32), lost.join(", "));
    true
}

/// "mean of 3 seeds 26.35" or "score 26.35".
pub(super) fn measured_words(scores: &[f64], average: f64) -> String {
    match scores.len() {
        1 => format!("score {} of one seed", number(average)),
        n => format!("mean {} of {n} seeds", number(average)),
    }
}

/// The mean that the published number stands for: the number itself, unless it is the best of n.
fn target(claim: &ClaimSpec, published: f64, sign: f64, sigma: Option<f64>, verdict: &mut Verdict) -> f64 {
    if claim.statistic != Statistic::Best {
        return published;
    }
    let (Some(n), Some(sigma)) = (claim.n.filter(|n| *n > 1), sigma) else {
        verdict
            .notes
            .push("the best of several runs, of unknown number or spread: taken as it stands".to_owned());
        return published;
    };
    let target = published - sign * maximum_of_normals(n).mean * sigma;
    verdict.notes.push(format!(
        "the published {} is the best of {n} runs; with sigma {} their mean was about {}",
        number(published),
        number(sigma),
        number(target)
    ));
    target
}

/// Standard deviation of the published number as an estimate of its system's mean.
fn published_noise(claim: &ClaimSpec, sigma: f64) -> f64 {
    let n = claim.n.unwrap_or(1).max(1);
    match claim.statistic {
        Statistic::Unstated | Statistic::Single => sigma,
        Statistic::Mean => sigma / f64::from(n).sqrt(),
        Statistic::Best => sigma * maximum_of_normals(n).deviation,
    }
}
