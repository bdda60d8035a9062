//! `trajectory`: published numbers at intermediate points. Each point is judged as a value; all
//! must hold.

use zoo_recipes::{ClaimSpec, Clock, Direction, TrajectoryPoint};

use super::conditions::{direction_of, met};
use super::evidence::{Evidence, PointScores, RunScore};
use super::looking::replay;
use super::outcome::{Outcome, SeedsNeeded, Verdict};
use super::rule::{Bounds, conclude, decide, leading};
use super::spread::{Spread, seeds_needed};
use super::value::{OWN_SIGMA_FROM, diverged, measured_words, without_spread};
use super::wording::number;
use crate::statistics::{Look, mean};

/// Multiple of a point's published standard deviation that is its margin if the claim has none.
const SIGMAS: f64 = 2.0;

pub(super) fn judge(claim: &ClaimSpec, evidence: &Evidence, verdict: &mut Verdict) {
    let Some(direction) = direction_of(claim) else {
        return verdict.not_run("the claim does not say which way is better");
    };
    let pairs: Vec<(&TrajectoryPoint, &[RunScore])> =
        claim.points.iter().map(|point| (point, runs_at(&evidence.points, point.at))).collect();
    let available = pairs.first().map_or(0, |(_, runs)| runs.len());
    if available == 0 {
        return verdict.not_run("no run was scored at the first point");
    }
    if let Some((point, _)) = pairs.iter().find(|(point, _)| margin(claim, point).is_none()) {
        let reason = format!("the claim has neither a margin nor a sigma at {}", point.at);
        return verdict.not_run(&reason);
    }
    verdict.seeds = available as u32;
    match met(claim, evidence) {
        Ok(notes) => verdict.notes.extend(notes),
        Err(reason) => return verdict.not_comparable(&reason),
    }
    let sign = if direction == Direction::Higher { 1.0 } else { -1.0 };
    let one = claim.clock.map_or("point", Clock::one);
    replay(evidence, available, verdict, |look, verdict| {
        let seen: Vec<(&TrajectoryPoint, &[RunScore])> = pairs
            .iter()
            .map_while(|(point, runs)| Some((*point, runs.get(..look.seeds as usize)?)))
            .collect();
        if seen.iter().any(|(_, runs)| diverged(runs, verdict)) {
            return;
        }
        let judged: Vec<AtPoint> = seen
            .iter()
            .filter_map(|(point, runs)| AtPoint::of(claim, evidence, point, runs, sign, look))
            .collect();
        if let Some(without) =
            seen.iter().map(|(point, _)| point.at).find(|at| judged.iter().all(|j| j.point.at != *at))
        {
            verdict.outcome = Outcome::Inconclusive;
            without_spread(verdict, evidence);
            verdict.explanation = format!(
                "no spread between seeds was published or assumed at {one} {without}; {OWN_SIGMA_FROM} seeds would show their own."
            );
            return;
        }
        let failed: Vec<&AtPoint> =
            judged.iter().filter(|at| at.outcome() == Outcome::NotReproduced).collect();
        let open = judged.iter().filter(|at| at.outcome() == Outcome::Inconclusive).count();
        let decides = |of: &AtPoint| if failed.is_empty() { of.high - of.margin } else { of.low - of.margin };
        let Some(worst) = judged.iter().max_by(|a, b| decides(a).total_cmp(&decides(b))) else { return };
        worst.fill(verdict, one, judged.len());
        let of_points = format!("{} of {} points", judged.len() - failed.len() - open, claim.points.len());
        verdict.explanation = match verdict.outcome {
            Outcome::Reproduced => {
                format!("All of {of_points} lie inside; nearest to the edge: {}", verdict.explanation)
            }
            Outcome::NotReproduced => {
                format!(
                    "{} of {} points lie outside; farthest: {}",
                    failed.len(),
                    claim.points.len(),
                    verdict.explanation
                )
            }
            _ => format!("{of_points} lie inside; least sure: {}", verdict.explanation),
        };
        let missing: Vec<String> =
            claim.points[judged.len()..].iter().map(|point| point.at.to_string()).collect();
        if !missing.is_empty() {
            verdict.notes.push(format!("not scored at {one} {}", missing.join(", ")));
            if verdict.outcome == Outcome::Reproduced {
                verdict.outcome = Outcome::Inconclusive;
                verdict.explanation =
                    format!("{of_points} were scored, and lie inside; the others are wanted too.");
                return;
            }
        }
        if verdict.outcome == Outcome::Inconclusive {
            let more = judged
                .iter()
                .filter(|at| at.outcome() == Outcome::Inconclusive)
                .map(|at| {
                    let gap = at.margin - at.shortfall;
                    seeds_needed(Some(&at.spread), gap, 0.0, evidence, look.seeds, OWN_SIGMA_FROM)
                })
                .max_by_key(|(more, _)| match more {
                    SeedsNeeded::InPlan(n) | SeedsNeeded::NewPlan(n) => *n,
                    SeedsNeeded::None => u32::MAX,
                });
            if let Some((more, words)) = more {
                verdict.seeds_needed = Some(more);
                verdict.explanation = format!("{} {words}", verdict.explanation);
            }
        }
    });
}

/// The runs scored at a point, up to the first missing one.
fn runs_at(points: &[PointScores], at: u64) -> &[RunScore] {
    points.iter().find(|point| point.at == at).map_or(&[], |point| leading(&point.runs))
}

/// The claim's margin, or two of the point's published standard deviations.
fn margin(claim: &ClaimSpec, point: &TrajectoryPoint) -> Option<f64> {
    claim.margin.or(point.sigma.map(|sigma| SIGMAS * sigma))
}

/// A point at a look.
struct AtPoint<'a> {
    point: &'a TrajectoryPoint,
    scores: Vec<f64>,
    spread: Spread,
    margin: f64,
    shortfall: f64,
    /// Bounds of the shortfall. REPRODUCED requires all points to hold, so each uses the whole
    /// level upward. A single failing point gives NOT REPRODUCED, so the points share the level
    /// downward.
    low: f64,
    high: f64,
    alphas: (f64, f64),
}

impl<'a> AtPoint<'a> {
    fn of(
        claim: &ClaimSpec,
        evidence: &Evidence,
        point: &'a TrajectoryPoint,
        runs: &[RunScore],
        sign: f64,
        look: &Look,
    ) -> Option<Self> {
        let scores: Vec<f64> = runs.iter().filter_map(|run| run.score).collect();
        let of_point = ClaimSpec { sigma: point.sigma.or(claim.sigma), ..claim.clone() };
        let spread = Spread::choose(&of_point, evidence, &scores, 1.0, OWN_SIGMA_FROM)?;
        let shortfall = sign * (point.value - mean(&scores));
        let alpha = spread.level(look);
        let shared = alpha / claim.points.len() as f64;
        Some(Self {
            point,
            margin: margin(claim, point)?,
            shortfall,
            low: shortfall - spread.half_width(look.seeds, shared),
            high: shortfall + spread.half_width(look.seeds, alpha),
            spread,
            alphas: (shared, alpha),
            scores,
        })
    }

    fn outcome(&self) -> Outcome {
        if self.spread.weakness().is_some() {
            return Outcome::Inconclusive;
        }
        decide(self.low, self.high, self.margin)
    }

    fn fill(&self, verdict: &mut Verdict, one: &str, points: usize) {
        let average = mean(&self.scores);
        let outcome = self.outcome();
        verdict.at = Some(self.point.at);
        verdict.published = Some(self.point.value);
        verdict.target = Some(self.point.value);
        verdict.margin = Some(self.margin);
        verdict.measured = Some(average);
        let alpha = if outcome == Outcome::NotReproduced { self.alphas.0 } else { self.alphas.1 };
        self.spread.name_in(verdict, &self.scores, alpha);
        verdict.alpha = Some(alpha);
        if outcome == Outcome::NotReproduced && points > 1 {
            verdict
                .notes
                .push("that a point lies outside is said at a level which all points share".to_owned());
        }
        let what = format!("at {one} {} the {}", self.point.at, measured_words(&self.scores, average));
        let goal = format!("the published {}", number(self.point.value));
        let words = self.spread.words(self.scores.len() as u32, alpha);
        let bounds = Bounds { shortfall: self.shortfall, low: self.low, high: self.high };
        conclude(verdict, &what, &goal, bounds, self.margin, &words);
        self.spread.temper(verdict);
    }
}
