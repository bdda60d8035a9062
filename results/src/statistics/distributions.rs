//! Normal, Student t, chi-squared and beta distribution functions with their quantiles.
//!
//! The incomplete beta and gamma functions come from `statrs`, and erfc from `libm` (that of
//! `statrs` is only exact to 1e-9). Quantiles are found by bracketing these functions, so they are
//! as exact as the functions and never diverge.

use libm::erfc;
use statrs::function::{beta::checked_beta_reg, gamma::checked_gamma_lr};

/// P(Z <= z) of the standard normal distribution.
#[must_use]
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// z with P(Z <= z) = p; infinite at 0 and 1, NaN outside [0, 1].
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    quantile(p, normal_cdf)
}

/// P(T <= t) of Student's t distribution with `freedom` > 0 degrees of freedom.
#[must_use]
pub fn t_cdf(t: f64, freedom: f64) -> f64 {
    if freedom <= 0.0 || freedom.is_nan() {
        return f64::NAN;
    }
    // This close to the normal distribution, the error of the incomplete beta function exceeds the
    // difference.
    if freedom > 1e6 {
        return normal_cdf(t);
    }
    let tail = 0.5 * beta_cdf(freedom / (freedom + t * t), 0.5 * freedom, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// t with P(T <= t) = p; infinite at 0 and 1, NaN outside [0, 1].
#[must_use]
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    quantile(p, |t| t_cdf(t, freedom))
}

/// P(X <= x) of the chi-squared distribution with `freedom` degrees of freedom.
#[must_use]
pub fn chi_squared_cdf(x: f64, freedom: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { checked_gamma_lr(0.5 * freedom, 0.5 * x).unwrap_or(f64::NAN) }
}

/// x with P(X <= x) = p of the chi-squared distribution; infinite at 1, NaN outside [0, 1].
#[must_use]
pub fn chi_squared_quantile(p: f64, freedom: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    let mut high = freedom.max(1.0);
    while chi_squared_cdf(high, freedom) < p {
        high *= 2.0;
    }
    root(0.0, high, |x| chi_squared_cdf(x, freedom) - p)
}

/// P(X <= x) of the beta distribution; the shapes do not have to be whole numbers.
pub(super) fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    checked_beta_reg(a, b, x.clamp(0.0, 1.0)).unwrap_or(f64::NAN)
}

/// x with P(X <= x) = p of the beta distribution.
pub(super) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    root(0.0, 1.0, |x| beta_cdf(x, a, b) - p)
}

/// Quantile of a distribution that is symmetric around 0. The lower half is searched, because the
/// function keeps its relative precision there.
fn quantile(p: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.5 {
        return 0.0;
    }
    if p > 0.5 {
        return -quantile(1.0 - p, cdf);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    let mut low = -1.0;
    while cdf(low) > p && low > -1e300 {
        low *= 2.0;
    }
    root(low, 0.0, |x| cdf(x) - p)
}

/// The zero of a rising function between `low` and `high`, to the last bits. Uses regula falsi
/// after Anderson and Björck, with a bisection whenever three of its steps did not halve the
/// bracket.
pub(super) fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut at_low, mut at_high) = (f(low), f(high));
    let mut target = 0.5 * (high - low);
    for step in 1..=400 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        let crossing = low - at_low * (high - low) / (at_high - at_low);
        let halve = step % 4 == 0 && high - low > target;
        if step % 4 == 0 {
            target = 0.5 * (high - low);
        }
        let x =
            if halve || crossing.is_nan() || crossing <= low || crossing >= high { middle } else { crossing };
        let value = f(x);
        if value == 0.0 {
            return x;
        }
        // The end that stays gets less weight, so that the next crossing falls on its side.
        let weight = |old: f64| if 1.0 - value / old > 0.0 { 1.0 - value / old } else { 0.5 };
        if value < 0.0 {
            at_high *= if at_low < 0.0 { weight(at_low) } else { 1.0 };
            (low, at_low) = (x, value);
        } else {
            at_low *= if at_high > 0.0 { weight(at_high) } else { 1.0 };
            (high, at_high) = (x, value);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance * expected.abs().max(1.0), "{got} is not {expected}");
    }

    #[test]
    fn normal_values_of_the_tables() {
        // Values of Abramowitz and Stegun, table 26; scipy 1.x agrees to all printed digits.
        near(normal_quantile(0.95), 1.644_853_626_951_472_7, 1e-12);
        near(normal_quantile(0.975), 1.959_963_984_540_054, 1e-12);
        near(normal_quantile(0.8), 0.841_621_233_572_914_3, 1e-12);
        near(normal_quantile(1e-10), -6.361_340_902_404_056, 1e-10);
        near(normal_cdf(-3.0), 0.001_349_898_031_630_094_6, 1e-14);
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert!(normal_quantile(1.5).is_nan());
    }

    #[test]
    fn t_values_of_the_tables() {
        near(t_quantile(0.95, 1.0), 6.313_751_514_675_043, 1e-11);
        near(t_quantile(0.95, 2.0), 2.919_985_580_353_725_6, 1e-11);
        near(t_quantile(0.95, 4.0), 2.131_846_786_326_649, 1e-11);
        near(t_quantile(0.99, 9.0), 2.821_437_925_025_808, 1e-11);
        near(t_quantile(0.95, 24.0), 1.710_882_079_909_427_8, 1e-11);
        near(t_quantile(0.05, 4.0), -2.131_846_786_326_649, 1e-11);
        near(t_quantile(0.95, 1e9), normal_quantile(0.95), 1e-6);
    }

    #[test]
    fn chi_squared_values_of_the_tables() {
        near(chi_squared_cdf(3.841_458_820_694_124, 1.0), 0.95, 1e-12);
        near(chi_squared_cdf(11.344_866_730_144_373, 3.0), 0.99, 1e-12);
        assert_eq!(chi_squared_cdf(0.0, 3.0), 0.0);
        near(chi_squared_quantile(0.95, 1.0), 3.841_458_820_694_124, 1e-10);
        near(chi_squared_quantile(0.1, 2.0), 0.210_721_031_315_653, 1e-10);
        assert!(chi_squared_quantile(1.5, 2.0).is_nan() && chi_squared_quantile(0.5, 0.0).is_nan());
    }

    #[test]
    fn beta_quantile_inverts() {
        for (a, b) in [(1.0, 30.0), (2.5, 0.7), (300.0, 52_000.0)] {
            for p in [0.001, 0.05, 0.5, 0.95] {
                near(beta_cdf(beta_quantile(p, a, b), a, b), p, 1e-9);
            }
        }
    }
}
