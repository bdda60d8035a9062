//! Decomposes the difference between two scores into a sum of parts.

use serde::Serialize;

use super::grid::Grid;
use super::point::{Cause, Point};
use crate::metrics::Entry;

/// Cost of a change, as a share of the gap. A change counts as a cause only if it brings the number
/// closer by more than its cost.
const WORTH: f64 = 0.1;
/// Minimum cost of a change, because published numbers are rounded.
const ROUNDING: f64 = 0.05;
/// Maximum cost of a change.
const ENOUGH: f64 = 0.2;

/// One part of the difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What differs; several causes if the numbers cannot separate them.
    pub causes: Vec<Cause>,
    /// The condition under which the published number would have been computed.
    pub published: String,
    /// The condition of the measured score.
    pub ours: String,
    /// Contribution to the difference, on the way from claimed to measured.
    pub contribution: f64,
}

impl Part {
    /// The causes in words.
    #[must_use]
    pub fn name(&self) -> String {
        self.causes.iter().map(|cause| cause.name()).collect::<Vec<_>>().join(" and ")
    }
}

/// Another point that explains the gap equally well.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rival {
    /// The point in words.
    pub name: String,
    /// Score of the point.
    pub score: f64,
}

/// The difference between a claimed and a measured score: claimed + contributions + unexplained =
/// measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The metric of both scores.
    pub metric: &'static Entry,
    /// The published number.
    pub claimed: f64,
    /// The measured score.
    pub measured: f64,
    /// The conditions of the measured score.
    pub measured_as: String,
    /// The parts, largest first.
    pub parts: Vec<Part>,
    /// The remaining difference.
    pub unexplained: f64,
    /// Other points that explain as much, up to the rounding of the claimed value.
    pub rivals: Vec<Rival>,
    /// If the gap is no larger than the difference of two seeds in 95 of 100 cases: that
    /// difference.
    pub within_noise: Option<f64>,
    /// Scores of all points.
    pub grid: Grid,
}

/// See [`super::explain`]. Selects the point with the least distance from the claimed value plus a
/// cost for every change. The measured point, without any change, is one of the candidates.
pub(super) fn explanation(grid: &Grid, claimed: f64, sigma: Option<f64>) -> Explanation {
    let start = grid.measured;
    let measured = grid.at(&start).unwrap_or(f64::NAN);
    let gap = (measured - claimed).abs();
    let price = (WORTH * gap).clamp(ROUNDING, ENOUGH);
    let mut ranked: Vec<(f64, usize, Point, f64)> = (grid.scores.iter())
        .map(|(point, score)| {
            let changes = grid.causes(point, &start).len();
            ((claimed - score).abs() + price * changes as f64, changes, *point, *score)
        })
        .collect();
    // Ties are broken by fewer changes, then by the order of the grid.
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (best, _, point, score) = ranked.first().copied().unwrap_or((gap, 0, start, measured));
    let as_good = |one: &&(f64, usize, Point, f64)| {
        one.1 > 0 && one.2 != point && (one.0 <= best + ROUNDING || (claimed - one.3).abs() <= ROUNDING)
    };
    let rivals = ranked.iter().filter(as_good);
    let rivals = rivals.map(|one| Rival { name: grid.name(&one.2), score: one.3 }).collect();
    let noise = sigma.map(|sigma| 1.96 * std::f64::consts::SQRT_2 * sigma);
    Explanation {
        metric: grid.metric,
        claimed,
        measured,
        measured_as: grid.name(&start),
        parts: shared_out(grid, &point, &start),
        unexplained: score - claimed,
        rivals,
        within_noise: noise.filter(|noise| gap <= *noise),
        grid: grid.clone(),
    }
}

/// The contribution of each cause between two points: its mean over all orders in which the causes
/// can be changed one by one (the Shapley value), so that the sum of the parts does not depend on
/// an order. Causes for which no order is complete stay together.
fn shared_out(grid: &Grid, from: &Point, to: &Point) -> Vec<Part> {
    let causes = grid.causes(from, to);
    if causes.is_empty() {
        return Vec::new();
    }
    let mut sums = vec![0.0; causes.len()];
    let mut orders = 0u32;
    each_order(&causes, &mut Vec::new(), &mut |order| {
        let mut scores = Vec::with_capacity(order.len() + 1);
        for changed in 0..=order.len() {
            let point = grid.between(from, to, &order[..changed]);
            let Some(score) = point.and_then(|point| grid.at(&point)) else { return };
            scores.push(score);
        }
        orders += 1;
        for (step, cause) in order.iter().enumerate() {
            let place = causes.iter().position(|known| known == cause).unwrap_or_default();
            sums[place] += scores[step + 1] - scores[step];
        }
    });
    let words = |point: &Point, causes: &[Cause]| {
        causes.iter().map(|cause| grid.level(*cause, point)).collect::<Vec<_>>().join(", ")
    };
    let part = |causes: Vec<Cause>, contribution| Part {
        published: words(from, &causes),
        ours: words(to, &causes),
        causes,
        contribution,
    };
    if orders == 0 {
        let whole = grid.at(to).unwrap_or(f64::NAN) - grid.at(from).unwrap_or(f64::NAN);
        return vec![part(causes, whole)];
    }
    let mut parts: Vec<Part> =
        (causes.iter().zip(&sums)).map(|(cause, sum)| part(vec![*cause], sum / f64::from(orders))).collect();
    parts.sort_by(|one, other| other.contribution.abs().total_cmp(&one.contribution.abs()));
    parts
}

/// Calls `visit` with every order of `left` appended to `order`.
fn each_order(left: &[Cause], order: &mut Vec<Cause>, visit: &mut dyn FnMut(&[Cause])) {
    if left.is_empty() {
        return visit(order);
    }
    for (at, cause) in left.iter().enumerate() {
        let rest: Vec<Cause> = [&left[..at], &left[at + 1..]].concat();
        order.push(*cause);
        each_order(&rest, order, visit);
        order.pop();
    }
}
