//! Replays the planned looks on the available runs, at the level that earlier plans left.

use super::evidence::{Evidence, Spent, SpentLook};
use super::outcome::{Outcome, Verdict};
use super::rules::Rules;
use super::wording::{number, percent, seeds};
use crate::statistics::{ALPHA, Look};

/// A smaller remaining level counts as zero: it is rounding in the sum of the spent levels.
const NOTHING: f64 = 1e-9;

impl Spent {
    /// The part of the 5 % that is left for the present plan.
    #[must_use]
    pub fn left(spent: Option<&Self>) -> f64 {
        let left = ALPHA - spent.map_or(0.0, |spent| spent.alpha);
        if left < NOTHING { 0.0 } else { left }
    }

    /// The spent and the remaining level in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let left = Self::left(Some(self));
        format!(
            "earlier plans spent {} of the 5 % of this claim, {} is left: {}",
            percent(self.alpha),
            if left <= 0.0 { "nothing".to_owned() } else { percent(left) },
            self.words()
        )
    }

    /// One plan and its looks: "plan 1 (1 seed on 2026-01-31T23:59:59Z: 5.0 %)".
    fn words(&self) -> String {
        let one = |look: &SpentLook| {
            let plan: Vec<String> = look.plan.seeds().iter().map(u32::to_string).collect();
            let level = percent(look.alpha);
            format!("plan {} ({} on {}: {level})", plan.join(","), seeds(look.seeds), look.time)
        };
        self.looks.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The looks of the evidence. Under the second rules each look gets its share of the level that
/// earlier plans left. The sum of the shares bounds the total error rate, whichever spread a look's
/// bound uses.
pub(super) fn looks_of(evidence: &Evidence) -> Vec<Look> {
    let looks = evidence.plan.looks();
    if evidence.rules == Rules::First {
        return looks.to_vec();
    }
    let share = Spent::left(evidence.spent.as_ref()) / ALPHA;
    let scaled = |look: &Look| {
        let alpha = share * look.own_alpha;
        Look { alpha, own_alpha: alpha, spent: share * look.spent, ..*look }
    };
    looks.iter().map(scaled).collect()
}

/// The level spent by the evidence's looks at up to `seen` seeds, under the second rules.
pub(crate) fn level_spent(evidence: &Evidence, seen: u32) -> f64 {
    looks_of(evidence).iter().filter(|look| look.seeds <= seen).map(|look| look.alpha).sum()
}

/// The level left for a new plan after the looks at up to `seen` seeds.
pub(super) fn left_after(evidence: &Evidence, seen: u32) -> f64 {
    let left = Spent::left(evidence.spent.as_ref()) - level_spent(evidence, seen);
    if left < NOTHING { 0.0 } else { left }
}

/// Replays the planned looks on `available` seeds; the first conclusive one decides. `step` fills
/// in the verdict at a look and returns whether it is conclusive.
pub(super) fn replay(
    evidence: &Evidence,
    available: usize,
    verdict: &mut Verdict,
    mut step: impl FnMut(&Look, &mut Verdict),
) {
    let plan = &evidence.plan;
    let left = Spent::left(evidence.spent.as_ref());
    let nothing_left = evidence.rules == Rules::Second && left <= 0.0;
    // If no level is left, the texts still need bounds. Those of the plan on its own are used.
    let looks = if nothing_left { plan.looks().to_vec() } else { looks_of(evidence) };
    let reached: Vec<&Look> = looks.iter().filter(|look| look.seeds as usize <= available).collect();
    if reached.is_empty() {
        verdict.not_run(&format!(
            "{available} of the {} of the first planned look are there",
            seeds(plan.seeds()[0])
        ));
        return;
    }
    verdict.looks = plan.seeds().to_vec();
    if let Some(spent) = evidence.spent.as_ref().filter(|_| evidence.rules == Rules::Second) {
        verdict.notes.push(spent.sentence());
    }
    let start = verdict.clone();
    let mut used = 0;
    for look in reached {
        *verdict = start.clone();
        verdict.seeds = look.seeds;
        verdict.alpha = Some(look.alpha);
        used = look.seeds as usize;
        step(look, verdict);
        if nothing_left {
            without_level(evidence, verdict);
        }
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

/// Makes the verdict inconclusive if earlier plans spent the whole level. A diverged run needs no
/// level.
fn without_level(evidence: &Evidence, verdict: &mut Verdict) {
    let Some(shortfall) = verdict.shortfall else { return };
    let words = evidence.spent.as_ref().map(Spent::words).unwrap_or_default();
    let measured = verdict.measured.map(|value| format!("measured {}, ", number(value))).unwrap_or_default();
    (verdict.outcome, verdict.alpha) = (Outcome::Inconclusive, None);
    (verdict.shortfall_low, verdict.shortfall_high) = (None, None);
    verdict.equal_system = None;
    verdict.seeds_needed = Some(super::outcome::SeedsNeeded::None);
    verdict.explanation = format!(
        "{measured}{} the target; nothing is concluded, since the 5 % of this claim were spent: {words}.",
        super::wording::standing(shortfall)
    );
}
