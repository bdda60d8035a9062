//! The first rules' spread between seeds: one stated sigma, unadjusted, up to a number of seeds,
//! then the sample's own. This code does not change, because `zoo ledger recheck` derives the
//! records judged by these rules again.

use zoo_recipes::ClaimSpec;

use super::outcome::{SeedsNeeded, SigmaSource};
use super::rule::{PROBABLY, SEED_LIMIT, t_critical};
use crate::statistics::{ALPHA, Look, LookPlan, normal_quantile, standard_deviation};

/// The spread between seeds and its distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub sigma: f64,
    pub source: SigmaSource,
    /// Degrees of freedom, if sigma is the sample's.
    freedom: Option<u32>,
    /// Number of seeds from which the sample's own sigma is used.
    own_from: u32,
}

impl Spread {
    /// Chooses the sigma: the sample's own from `own_from` values on; before that the published
    /// one, else the assumed one, else the sample's own. `factor` converts the claim's sigma of one
    /// run to that of one value. If the sample has no spread, a stated sigma is used.
    pub fn choose(claim: &ClaimSpec, values: &[f64], factor: f64, own_from: u32) -> Option<Self> {
        let own = (values.len() >= 2).then(|| Self {
            sigma: standard_deviation(values),
            source: SigmaSource::Sample,
            freedom: Some((values.len() - 1) as u32),
            own_from,
        });
        let stated = |sigma: Option<f64>, source| {
            sigma.map(|sigma| Self { sigma: factor * sigma, source, freedom: None, own_from })
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
            Some(freedom) => t_critical(alpha, f64::from(freedom)),
            None => normal_quantile(1.0 - alpha),
        };
        // A sample without spread has zero width at every quantile.
        if self.sigma == 0.0 { 0.0 } else { critical * self.sigma / f64::from(n).sqrt() }
    }

    /// Number of seeds that would settle the verdict if the shortfall stays `gap` away from the
    /// margin; also defined without a spread. `test` is the part of the half width that does not
    /// shrink with seeds.
    pub fn needed(
        spread: Option<&Self>,
        gap: f64,
        test: f64,
        plan: &LookPlan,
        seen: u32,
        own_from: u32,
    ) -> SeedsNeeded {
        let sigma = spread.map_or(0.0, |spread| spread.sigma);
        let own_from = spread.map_or(own_from, |spread| spread.own_from).max(2);
        let probably = normal_quantile(PROBABLY);
        let settles = |n: u32, alpha: f64, kept: u32| {
            let critical = if n >= own_from {
                t_critical(alpha, f64::from(n - 1))
            } else {
                normal_quantile(1.0 - alpha)
            };
            let half = test.hypot(critical * sigma / f64::from(n).sqrt());
            gap.abs() - half >= probably * sigma * f64::from(n - kept).sqrt() / f64::from(n)
        };
        let looks = plan.looks();
        let level = |look: &Look| if look.seeds >= own_from { look.own_alpha } else { look.alpha };
        let later = looks.iter().find(|look| look.seeds > seen && settles(look.seeds, level(look), seen));
        if let Some(look) = later {
            return SeedsNeeded::InPlan(look.seeds);
        }
        (seen + 1..=SEED_LIMIT)
            .find(|n| settles(*n, ALPHA, 0))
            .map_or(SeedsNeeded::None, SeedsNeeded::NewPlan)
    }
}
