//! The second rules' spread between seeds: the larger of the sample's own and every stated one,
//! each with its degrees of freedom.

use zoo_recipes::ClaimSpec;

use super::evidence::StatedSpread;
use super::outcome::{SeedsNeeded, SigmaSource};
use super::rule::{PROBABLY, SEED_LIMIT, t_critical};
use super::wording::number;
use crate::statistics::{ALPHA, Look, chi_squared_quantile, normal_quantile, standard_deviation};

/// Factor on a stated spread when there is only one score, which shows no spread of its own. With
/// it, the stated error rate holds even if the true standard deviation is three times the stated
/// one. Standard deviations of one system on two machines differ by this much (Jasper on dev-other:
/// 0.03 and 0.29). Those of systems of one size on one corpus do too.
pub const STATED_TOO_SMALL: f64 = 3.0;

/// Level of the upper limit that is used for a spread carried over from another system.
const CARRIED_LIMIT: f64 = 0.9;

/// A standard deviation from the claim or the table of spreads.
#[derive(Debug, Clone, PartialEq)]
struct Stated {
    /// The value used in the bound: the upper limit if the spread is carried over.
    sd: f64,
    /// The value as stated.
    plain: f64,
    /// Degrees of freedom of Student's t. If `None`, the normal quantile is used.
    freedom: Option<f64>,
    source: SigmaSource,
    /// Row of the table of spreads.
    row: Option<String>,
    /// Why it cannot support a conclusion by itself.
    unsound: Option<&'static str>,
}

impl Stated {
    fn published(sigma: f64, runs: Option<u32>) -> Self {
        let freedom = runs.filter(|n| *n >= 2).map(|n| f64::from(n - 1));
        let unsound = freedom.is_none().then_some("the published sigma is of an unknown number of runs");
        Self { sd: sigma, plain: sigma, freedom, source: SigmaSource::Published, row: None, unsound }
    }

    fn assumed(sigma: f64) -> Self {
        let unsound = Some("an assumed sigma was measured nowhere");
        Self { sd: sigma, plain: sigma, freedom: None, source: SigmaSource::Assumed, row: None, unsound }
    }

    fn of_row(row: &StatedSpread) -> Self {
        let freedom = row.freedom.map(f64::from).filter(|freedom| *freedom > 0.0);
        let unsound = freedom.is_none().then_some("the row's number of runs is not known");
        let (sd, source, freedom) = match (row.carried, freedom) {
            (false, freedom) => (row.sd, SigmaSource::Measured, freedom),
            (true, Some(freedom)) => (row.sd * upper_factor(freedom), SigmaSource::Carried, None),
            (true, None) => (row.sd, SigmaSource::Carried, None),
        };
        Self { sd, plain: row.sd, freedom, source, row: Some(row.row.clone()), unsound }
    }

    fn half_width(&self, n: u32, alpha: f64, times: f64) -> f64 {
        // Without degrees of freedom, use the normal distribution.
        let critical = t_critical(alpha, self.freedom.unwrap_or(f64::INFINITY));
        times * critical * self.sd / f64::from(n).sqrt()
    }

    /// The spread in words: "sd 0.731 of the row multi30k-validation, carried over, upper limit
    /// 0.966".
    fn words(&self, factor: f64) -> String {
        let plain = number(self.plain);
        let pairs = if factor == 1.0 { "" } else { ", as that of a difference" };
        match (&self.row, self.source) {
            (Some(row), SigmaSource::Carried) => format!(
                "sd {plain} of the row {row}, carried over from another system, upper limit {}{pairs}",
                number(self.sd)
            ),
            (Some(row), _) => format!("sd {plain} of the row {row}, of this very system{pairs}"),
            (None, source) => format!("{} {plain}{pairs}", source.phrase()),
        }
    }
}

/// Factor from a standard deviation with `freedom` degrees of freedom to its upper limit.
fn upper_factor(freedom: f64) -> f64 {
    (freedom / chi_squared_quantile(1.0 - CARRIED_LIMIT, freedom)).sqrt()
}

/// The spread of some values, from everything known about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    values: u32,
    /// The sample's own; 0 for a single value and for equal values.
    own: f64,
    stated: Vec<Stated>,
    /// Factor from the sigma of one run to that of one value.
    factor: f64,
}

impl Spread {
    /// The known spread of `values`; `None` if nothing is known.
    pub fn choose(
        claim: &ClaimSpec,
        row: Option<&StatedSpread>,
        values: &[f64],
        factor: f64,
    ) -> Option<Self> {
        let mut stated = Vec::new();
        stated.extend(claim.sigma.map(|sigma| Stated::published(sigma, claim.n)));
        stated.extend(row.map(Stated::of_row));
        stated.extend(claim.assumed_sigma.map(Stated::assumed));
        let own = if values.len() >= 2 { standard_deviation(values) } else { 0.0 };
        let known = values.len() >= 2 || !stated.is_empty();
        known.then_some(Self { values: values.len() as u32, own, stated, factor })
    }

    /// Whether the sample has a spread of its own.
    fn has_own(&self) -> bool {
        self.values >= 2 && self.own > 0.0
    }

    /// Factor on the stated spreads.
    fn times(&self) -> f64 {
        if self.has_own() { 1.0 } else { STATED_TOO_SMALL }
    }

    fn own_half_width(&self, n: u32, alpha: f64) -> f64 {
        if !self.has_own() {
            return 0.0;
        }
        t_critical(alpha, f64::from(self.values - 1)) * self.own / f64::from(n).sqrt()
    }

    /// The stated spread that gives the widest bound.
    fn widest(&self, n: u32, alpha: f64) -> Option<(&Stated, f64)> {
        let widths =
            self.stated.iter().map(|one| (one, one.half_width(n, alpha, self.factor * self.times())));
        widths.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Distance of the one-sided bound from a mean of `n` values: the largest from the sample's own
    /// and the stated spreads.
    pub fn half_width(&self, n: u32, alpha: f64) -> f64 {
        self.own_half_width(n, alpha).max(self.widest(n, alpha).map_or(0.0, |(_, width)| width))
    }

    /// The stated spread that decides; `None` if the sample's own decides.
    fn deciding(&self, n: u32, alpha: f64) -> Option<&Stated> {
        let own = self.own_half_width(n, alpha);
        self.widest(n, alpha).filter(|(_, width)| !self.has_own() || *width > own).map(|(one, _)| one)
    }

    /// Sigma and its source, as the verdict names them.
    pub fn named(&self, n: u32, alpha: f64) -> (f64, SigmaSource, Option<&str>) {
        match self.deciding(n, alpha) {
            Some(stated) => (self.factor * stated.sd, stated.source, stated.row.as_deref()),
            None => (self.own, SigmaSource::Sample, None),
        }
    }

    /// The spread in words.
    pub fn words(&self, n: u32, alpha: f64) -> String {
        match self.deciding(n, alpha) {
            Some(stated) if self.has_own() => stated.words(self.factor),
            Some(stated) => format!(
                "{}; {STATED_TOO_SMALL} times that, since one score shows no spread",
                stated.words(self.factor)
            ),
            None => format!("{} {}", SigmaSource::Sample.phrase(), number(self.own)),
        }
    }

    /// The spread of one value as far as it is known, to predict the result of further seeds.
    pub fn expected(&self) -> f64 {
        if self.has_own() {
            return self.own;
        }
        let sound = self.stated.iter().find(|one| one.unsound.is_none());
        sound.or(self.stated.first()).map_or(0.0, |one| self.factor * one.plain)
    }

    /// Why nothing can be concluded from it: there is no own spread, and no stated one with a
    /// source and a number of runs.
    pub fn weakness(&self) -> Option<String> {
        if self.has_own() || self.stated.iter().any(|one| one.unsound.is_none()) {
            return None;
        }
        let why = self.stated.first().and_then(|one| one.unsound).unwrap_or("none is stated");
        Some(match self.values {
            0 | 1 => format!("{why}, and one score shows no spread"),
            n => format!("{why}, and {n} equal scores show no spread"),
        })
    }

    /// Number of seeds that would settle the verdict with probability 80 % if the shortfall stays
    /// `gap` away from the margin. `test` is the part of the half width that does not shrink with
    /// seeds. `left` is the level that a new plan would have.
    pub fn needed(
        spread: Option<&Self>,
        gap: f64,
        test: f64,
        looks: &[Look],
        seen: u32,
        left: f64,
    ) -> SeedsNeeded {
        let sigma = spread.map_or(0.0, Self::expected);
        let probably = normal_quantile(PROBABLY);
        let settles = |n: u32, alpha: f64, kept: u32| {
            let own = match n {
                0 | 1 => 0.0,
                n => t_critical(alpha, f64::from(n - 1)) * sigma / f64::from(n).sqrt(),
            };
            // From two scores on, the stated spreads count once.
            let times = if n >= 2 { 1.0 } else { STATED_TOO_SMALL };
            let stated = spread.iter().flat_map(|spread| &spread.stated);
            let factor = spread.map_or(1.0, |spread| spread.factor);
            let stated = stated.map(|one| one.half_width(n, alpha, times * factor)).fold(0.0, f64::max);
            let half = test.hypot(own.max(stated));
            gap.abs() - half >= probably * sigma * f64::from(n - kept).sqrt() / f64::from(n)
        };
        let later = looks.iter().find(|look| look.seeds > seen && settles(look.seeds, look.alpha, seen));
        if let Some(look) = later {
            return SeedsNeeded::InPlan(look.seeds);
        }
        // If no level is left, the number is that of an independent study, planned before its first
        // result.
        let alpha = if left > 0.0 { left.min(ALPHA) } else { ALPHA };
        (seen.max(1) + 1..=SEED_LIMIT)
            .find(|n| settles(*n, alpha, 0))
            .map_or(SeedsNeeded::None, SeedsNeeded::NewPlan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carried_spread_grows_with_few_degrees_of_freedom() {
        // sqrt(df / chi2_0.10(df)): 2 and 0.2107; 12 and 6.304; 31 and 21.434 (Abramowitz and
        // Stegun, table 26.8).
        for (freedom, factor) in [(2.0, 3.080), (12.0, 1.3797), (31.0, 1.2026)] {
            assert!((upper_factor(freedom) - factor).abs() < 1e-3, "{freedom}: {}", upper_factor(freedom));
        }
    }
}
