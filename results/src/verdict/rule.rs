//! The decision rule that all kinds share: bounds, the margin, and their wording.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use super::evidence::{Interval, RunScore, RunStatus};
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::wording::{number, percent, seeds};
use crate::statistics::{ALPHA, normal_quantile, t_quantile};

/// Largest number of seeds that is ever suggested.
pub const SEED_LIMIT: u32 = 200;

/// Probability of a settled verdict for which the number of seeds is computed.
pub(super) const PROBABLY: f64 = 0.8;

/// Upper `alpha` point of Student's t. The values are cached, because the search for a number of
/// seeds asks for the same few hundred repeatedly.
pub(super) fn t_critical(alpha: f64, freedom: f64) -> f64 {
    static KNOWN: OnceLock<Mutex<HashMap<(u64, u64), f64>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *known.entry((alpha.to_bits(), freedom.to_bits())).or_insert_with(|| t_quantile(1.0 - alpha, freedom))
}

/// Distances of an interval's limits from `centre` at one-sided level `alpha`, each side
/// separately.
pub(super) fn sides(interval: &Interval, centre: f64, alpha: f64) -> (f64, f64) {
    let scale = normal_quantile(1.0 - alpha) / normal_quantile(0.5 + 0.5 * interval.level);
    ((centre - interval.low).max(0.0) * scale, (interval.high - centre).max(0.0) * scale)
}

/// Inside the margin, wholly outside, or neither. A bound exactly on the margin is inside, up to
/// rounding of the arithmetic.
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

/// The runs before the first missing one, each with a score or diverged.
pub(super) fn leading(runs: &[RunScore]) -> &[RunScore] {
    let usable = |run: &RunScore| match run.status {
        RunStatus::Scored => run.score.is_some(),
        RunStatus::Diverged => true,
        RunStatus::Missing => false,
    };
    let length = runs.iter().position(|run| !usable(run)).unwrap_or(runs.len());
    &runs[..length]
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

/// "one-sided 95 % bound" or, if the looks share the 5 %, the name with this look's level. `word`
/// is "bound" or "bounds".
pub(super) fn bound_name(word: &str, alpha: f64) -> String {
    if (alpha - ALPHA).abs() < 1e-9 {
        format!("one-sided 95 % {word}")
    } else {
        format!("one-sided {word} (this look's level {}, 5 % over all looks)", percent(1.0 - alpha))
    }
}

/// A shortfall and its one-sided bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub shortfall: f64,
    pub low: f64,
    pub high: f64,
}

impl Bounds {
    /// Bounds at equal distances on both sides.
    pub fn around(shortfall: f64, half: f64) -> Self {
        Self { shortfall, low: shortfall - half, high: shortfall + half }
    }
}

/// Fills in a verdict from a shortfall and its bounds, and writes the explanation. `what` is the
/// subject: "mean of 3 seeds 26.35". `spread` describes the spread behind the bounds; it may be
/// empty.
pub(super) fn conclude(
    verdict: &mut Verdict,
    what: &str,
    goal: &str,
    Bounds { shortfall, low, high }: Bounds,
    margin: f64,
    spread: &str,
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
    let spread = if spread.is_empty() { String::new() } else { format!(" ({spread})") };
    verdict.explanation =
        format!("{what} is {} {goal}; {tail}{spread}.", super::wording::standing(shortfall));
}
