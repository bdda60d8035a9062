//! Planned looks at a growing number of seeds, and the share of the error rate that each look may
//! use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};

use super::distributions::{normal_cdf, normal_quantile, root};

/// Error rate of each of the two statements over all looks together, one-sided.
pub const ALPHA: f64 = 0.05;

/// The numbers of seeds at which a verdict is attempted, fixed before the first run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct LookPlan(Vec<u32>);

/// One look of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Number of seeds at this look.
    pub seeds: u32,
    /// Error rate spent up to and including this look.
    pub spent: f64,
    /// One-sided level of this look's bound if sigma is stated, from the recursion.
    pub alpha: f64,
    /// One-sided level if sigma is the sample's own: the error rate newly spent at this look. Each
    /// t bound is exact on its own, and the sum of the looks' levels bounds the total. The
    /// recursion assumes a normal mean and would exceed the total (5.6 % measured for 5 %).
    pub own_alpha: f64,
}

/// Error for a list of numbers that is not a valid plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "looks {given:?} are not a plan\nhint: give one to 20 increasing numbers of seeds from 1 to 10000, e.g. 1, 3, 5, 10"
)]
pub struct LookError {
    given: Vec<u32>,
}

impl TryFrom<Vec<u32>> for LookPlan {
    type Error = LookError;
    fn try_from(looks: Vec<u32>) -> Result<Self, LookError> {
        let fits = (1..=20).contains(&looks.len())
            && looks.iter().all(|n| (1..=10_000).contains(n))
            && looks.windows(2).all(|w| w[0] < w[1]);
        if fits { Ok(Self(looks)) } else { Err(LookError { given: looks }) }
    }
}

impl From<LookPlan> for Vec<u32> {
    fn from(plan: LookPlan) -> Self {
        plan.0
    }
}

impl Default for LookPlan {
    /// Looks at 1, 3, 5 and 10 seeds.
    fn default() -> Self {
        Self(vec![1, 3, 5, 10])
    }
}

impl LookPlan {
    /// A single look at `seeds` seeds (`--seeds N`; 0 is read as 1).
    #[must_use]
    pub fn fixed(seeds: u32) -> Self {
        Self(vec![seeds.clamp(1, 10_000)])
    }

    /// Numbers of seeds, increasing.
    #[must_use]
    pub fn seeds(&self) -> &[u32] {
        &self.0
    }

    /// Number of seeds of the last look.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.0.last().copied().unwrap_or(1)
    }

    /// The part of [`ALPHA`] that may be spent once a share `information` in [0, 1] of the seeds
    /// has been seen. Lan and DeMets' spending function of Pocock's type: ALPHA ln(1 + (e - 1) t).
    #[must_use]
    pub fn spent(information: f64) -> f64 {
        ALPHA * (1.0 + (std::f64::consts::E - 1.0) * information.clamp(0.0, 1.0)).ln()
    }

    /// The looks with their levels. Computed once per plan and cached.
    #[must_use]
    pub fn looks(&self) -> Arc<[Look]> {
        static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.entry(self.0.clone()).or_insert_with(|| boundaries(&self.0).into()).clone()
    }
}

/// Plans and their looks.
type Known = HashMap<Vec<u32>, Arc<[Look]>>;

/// Armitage, McPherson and Rowe's recursion. `density` is the density of the sum of standardised
/// scores at a look, restricted to the paths that have not crossed a bound before.
fn boundaries(seeds: &[u32]) -> Vec<Look> {
    const POINTS: usize = 801;
    let total = f64::from(seeds[seeds.len() - 1]);
    let mut looks = Vec::with_capacity(seeds.len());
    let mut state: Option<Grid> = None;
    let (mut spent_before, mut seeds_before) = (0.0, 0.0);
    for &n in seeds {
        let n = f64::from(n);
        let spent = LookPlan::spent(n / total);
        let step = (n - seeds_before).sqrt();
        let share = spent - spent_before;
        // z is the bound in standard errors: the sum crosses it when it exceeds z sqrt(n).
        let z = match &state {
            None => normal_quantile(1.0 - share),
            Some(grid) => root(-2.0, 12.0, |z| share - grid.sum(|s| normal_cdf((s - z * n.sqrt()) / step))),
        };
        looks.push(Look { seeds: n as u32, spent, alpha: normal_cdf(-z), own_alpha: share });
        let (low, high) = (-9.0 * n.sqrt(), z * n.sqrt());
        let width = (high - low) / (POINTS - 1) as f64;
        let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt() / step;
        let density = (0..POINTS)
            .map(|i| {
                let x = low + width * i as f64;
                match &state {
                    None => normal(x / step),
                    Some(grid) => grid.sum(|s| normal((x - s) / step)),
                }
            })
            .collect();
        state = Some(Grid { low, width, density });
        (spent_before, seeds_before) = (spent, n);
    }
    looks
}

struct Grid {
    low: f64,
    width: f64,
    density: Vec<f64>,
}

impl Grid {
    /// Integral of `f` times the density, by Simpson's rule.
    fn sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        let last = self.density.len() - 1;
        let weighted = self.density.iter().enumerate().map(|(i, d)| {
            let weight = if i == 0 || i == last { 1.0 } else { (2 + 2 * (i % 2)) as f64 };
            weight * d * f(self.low + self.width * i as f64)
        });
        weighted.sum::<f64>() * self.width / 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_uses_all_of_alpha() {
        for n in [1, 3, 32] {
            let looks = LookPlan::fixed(n).looks();
            assert_eq!(looks.len(), 1);
            assert!((looks[0].alpha - ALPHA).abs() < 1e-12 && (looks[0].spent - ALPHA).abs() < 1e-12);
        }
    }

    #[test]
    fn published_bounds_of_five_equal_looks() {
        // Pocock-type spending, five equal looks, one-sided 0.025: textbooks print 2.438, 2.427,
        // 2.410, 2.397, 2.386. At 0.05, an independent recursion (numpy, 4,001 points) gives the
        // numbers below.
        let z: Vec<f64> =
            LookPlan(vec![1, 2, 3, 4, 5]).looks().iter().map(|l| -normal_quantile(l.alpha)).collect();
        for (got, expected) in z.iter().zip(PUBLISHED) {
            assert!((got - expected).abs() < 3e-5, "{z:?}");
        }
    }
    const PUBLISHED: [f64; 5] = [2.176_21, 2.143_75, 2.113_28, 2.089_60, 2.071_00];

    #[test]
    fn plans_are_checked() {
        assert!(LookPlan::try_from(vec![1, 3, 5, 10]).is_ok());
        for bad in [vec![], vec![0, 1], vec![3, 3], vec![5, 1], (1..=21).collect(), vec![10_001]] {
            assert!(LookPlan::try_from(bad).is_err());
        }
        let read: LookPlan = serde_json::from_str("[2,4]").unwrap();
        assert_eq!(read.seeds(), [2, 4]);
        assert!(serde_json::from_str::<LookPlan>("[4,2]").is_err());
    }
}
