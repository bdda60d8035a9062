//! The decision rule that the kinds share: which sigma, which bound, and how many seeds would settle it.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use zoo_recipes::ClaimSpec;

use super::evidence::{Interval, RunScore, RunStatus};
use super::outcome::{Outcome, SeedsNeeded, SigmaSource, Verdict};
use super::wording::{number, percent, seeds};
use crate::statistics::{
    ALPHA, Look, LookPlan, chi_squared_cdf, normal_quantile, standard_deviation, t_quantile,
};

/// More seeds than this are never suggested.
pub const SEED_LIMIT: u32 = 200;

/// Chance of a settled verdict for which seeds are suggested.
pub(super) const PROBABLY: f64 = 0.8;

/// The spread between seeds and the distribution that goes with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub sigma: f64,
    pub source: SigmaSource,
    /// Degrees of freedom where sigma is the sample's.
    freedom: Option<u32>,
}

impl Spread {
    /// The sample's own from `own_from` values on; before that the published one, else the assumed one, else the sample's own.
    /// `factor` turns the claim's sigma of one run into that of one value. A sample without any spread yields to a stated sigma.
    pub fn choose(claim: &ClaimSpec, values: &[f64], factor: f64, own_from: u32) -> Option<Self> {
        let own = (values.len() >= 2).then(|| Self {
            sigma: standard_deviation(values),
            source: SigmaSource::Sample,
            freedom: Some((values.len() - 1) as u32),
        });
        let stated = |sigma: Option<f64>, source| {
            sigma.map(|sigma| Self { sigma: factor * sigma, source, freedom: None })
        };
        let stated = stated(claim.sigma, SigmaSource::Published)
            .or_else(|| stated(claim.assumed_sigma, SigmaSource::Assumed));
        match own {
            Some(own) if values.len() >= own_from as usize && (own.sigma > 0.0 || stated.is_none()) => {
                Some(own)
            }
            _ => stated.or(own),
        }
    }

    /// The level of a look's bound with this spread.
    pub fn level(&self, look: &Look) -> f64 {
        if self.freedom.is_some() { look.own_alpha } else { look.alpha }
    }

    /// Distance of the one-sided bound from a mean of `n` values.
    pub fn half_width(&self, n: u32, alpha: f64) -> f64 {
        let critical = match self.freedom {
            Some(freedom) => t_critical(alpha, freedom),
            None => normal_quantile(1.0 - alpha),
        };
        // A sample without spread has no width, whatever the quantile.
        if self.sigma == 0.0 { 0.0 } else { critical * self.sigma / f64::from(n).sqrt() }
    }
}

/// Upper `alpha` point of Student's t. The search for a number of seeds asks for the same few hundred again and again, so they are kept.
fn t_critical(alpha: f64, freedom: u32) -> f64 {
    static KNOWN: OnceLock<Mutex<HashMap<(u64, u32), f64>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *known.entry((alpha.to_bits(), freedom)).or_insert_with(|| t_quantile(1.0 - alpha, f64::from(freedom)))
}

/// How far the limits of an interval lie from `centre` at one-sided level `alpha`, each side by itself.
pub(super) fn sides(interval: &Interval, centre: f64, alpha: f64) -> (f64, f64) {
    let scale = normal_quantile(1.0 - alpha) / normal_quantile(0.5 + 0.5 * interval.level);
    ((centre - interval.low).max(0.0) * scale, (interval.high - centre).max(0.0) * scale)
}

/// Inside the margin, wholly outside, or neither. Exactly on the margin is inside, up to rounding of the arithmetic.
pub(super) fn decide(low: f64, high: f64, margin: f64) -> Outcome {
    let rounding = 1e-9 * (1.0 + margin.abs());
    if high <= margin + rounding {
        Outcome::Reproduced
    } else if low > margin + rounding {
        Outcome::NotReproduced
    } else {
        Outcome::Inconclusive
    }
}

/// The runs up to the first that is not there: with a score, or diverged.
pub(super) fn leading(runs: &[RunScore]) -> &[RunScore] {
    let usable = |run: &RunScore| match run.status {
        RunStatus::Scored => run.score.is_some(),
        RunStatus::Diverged => true,
        RunStatus::Missing => false,
    };
    let length = runs.iter().position(|run| !usable(run)).unwrap_or(runs.len());
    &runs[..length]
}

/// Replays the planned looks on `available` seeds; the first conclusive one settles it. `step` fills the verdict in at a look and says
/// whether it is conclusive.
pub(super) fn replay(
    plan: &LookPlan,
    available: usize,
    verdict: &mut Verdict,
    mut step: impl FnMut(&Look, &mut Verdict),
) {
    let looks = plan.looks();
    let reached: Vec<&Look> = looks.iter().filter(|look| look.seeds as usize <= available).collect();
    if reached.is_empty() {
        verdict.not_run(&format!(
            "{available} of the {} of the first planned look are there",
            seeds(plan.seeds()[0])
        ));
        return;
    }
    verdict.looks = plan.seeds().to_vec();
    let start = verdict.clone();
    let mut used = 0;
    for look in reached {
        *verdict = start.clone();
        verdict.seeds = look.seeds;
        verdict.alpha = Some(look.alpha);
        used = look.seeds as usize;
        step(look, verdict);
        if verdict.outcome != Outcome::Inconclusive {
            break;
        }
    }
    if available > used {
        let why = if verdict.outcome != Outcome::Inconclusive {
            "the verdict was settled before".to_owned()
        } else {
            match plan.seeds().iter().find(|n| **n as usize > used) {
                Some(next) => format!("the next look is at {next}"),
                None => "the plan ended before".to_owned(),
            }
        };
        verdict.notes.push(format!("{} more not looked at: {why}", seeds((available - used) as u32)));
    }
}

/// A note where the scores spread more than the stated sigma makes likely (chi-squared, 1 %).
pub(super) fn spread_note(spread: &Spread, values: &[f64]) -> Option<String> {
    if spread.source == SigmaSource::Sample || values.len() < 2 || spread.sigma == 0.0 {
        return None;
    }
    let freedom = (values.len() - 1) as f64;
    let own = standard_deviation(values);
    let wide = chi_squared_cdf(freedom * (own / spread.sigma).powi(2), freedom) > 0.99;
    wide.then(|| {
        format!("the scores spread by {}, more than {} makes likely", number(own), spread.source.phrase())
    })
}

/// Seeds that would settle the matter with a chance of 80 %, should the shortfall stay `gap` away from the margin. `test` is the
/// part of the half width that seeds do not shrink.
pub(super) fn seeds_needed(
    gap: f64,
    sigma: f64,
    test: f64,
    plan: &LookPlan,
    seen: u32,
    own_from: u32,
) -> SeedsNeeded {
    let probably = normal_quantile(PROBABLY);
    let settles = |n: u32, alpha: f64, kept: u32| {
        let critical =
            if n >= own_from.max(2) { t_critical(alpha, n - 1) } else { normal_quantile(1.0 - alpha) };
        let half = test.hypot(critical * sigma / f64::from(n).sqrt());
        gap.abs() - half >= probably * sigma * f64::from(n - kept).sqrt() / f64::from(n)
    };
    let looks = plan.looks();
    let level = |look: &Look| if look.seeds >= own_from.max(2) { look.own_alpha } else { look.alpha };
    let later = looks.iter().find(|look| look.seeds > seen && settles(look.seeds, level(look), seen));
    if let Some(look) = later {
        return SeedsNeeded::InPlan(look.seeds);
    }
    (seen + 1..=SEED_LIMIT).find(|n| settles(*n, ALPHA, 0)).map_or(SeedsNeeded::None, SeedsNeeded::NewPlan)
}

/// The sentence for [`SeedsNeeded`].
pub(super) fn needed(seeds_needed: SeedsNeeded) -> String {
    match seeds_needed {
        SeedsNeeded::InPlan(n) => format!("The planned look at {} would probably settle it.", seeds(n)),
        SeedsNeeded::NewPlan(n) => format!("About {} (--seeds {n}) would probably settle it.", seeds(n)),
        SeedsNeeded::None => {
            format!("No number of seeds up to {SEED_LIMIT} would settle it: too close to the margin.")
        }
    }
}

/// "one-sided 95 % bound" or, where the looks share the 5 %, that with its own level. `word` is "bound" or "bounds".
pub(super) fn bound_name(word: &str, alpha: f64) -> String {
    if (alpha - ALPHA).abs() < 1e-9 {
        format!("one-sided 95 % {word}")
    } else {
        format!("one-sided {word} (this look's level {}, 5 % over all looks)", percent(1.0 - alpha))
    }
}

/// Fills a verdict in from a shortfall and its bounds, and words it. `what` is the subject: "mean of 3 seeds 26.35".
pub(super) fn conclude(
    verdict: &mut Verdict,
    what: &str,
    goal: &str,
    shortfall: f64,
    low: f64,
    high: f64,
    margin: f64,
) {
    let alpha = verdict.alpha.unwrap_or(ALPHA);
    (verdict.shortfall, verdict.shortfall_low, verdict.shortfall_high) =
        (Some(shortfall), Some(low), Some(high));
    verdict.outcome = decide(low, high, margin);
    let edge = |side: f64| super::wording::standing(side).replace(" than", "");
    let margin = number(margin);
    let tail = match verdict.outcome {
        Outcome::Reproduced => {
            format!("its {}, {}, lies inside the margin {margin}", bound_name("bound", alpha), edge(high))
        }
        Outcome::NotReproduced => {
            format!(
                "even its {}, {}, lies outside the margin {margin}",
                bound_name("bound", alpha),
                edge(low)
            )
        }
        _ => format!(
            "its {}, {} to {}, lie on both sides of the margin {margin}",
            bound_name("bounds", alpha),
            edge(low),
            edge(high)
        ),
    };
    let sigma = match (verdict.sigma, verdict.sigma_source) {
        (Some(sigma), Some(source)) => format!(" ({} {})", source.phrase(), number(sigma)),
        _ => String::new(),
    };
    verdict.explanation = format!("{what} is {} {goal}; {tail}{sigma}.", super::wording::standing(shortfall));
}
