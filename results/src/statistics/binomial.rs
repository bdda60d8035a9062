//! Exact limits of a rate, and the number of trials that would place the rate on one side of a
//! limit.

use super::distributions::{beta_cdf, beta_quantile, normal_quantile};

/// Largest number of trials that is ever suggested.
pub const TRIAL_LIMIT: u64 = 10_000_000;

/// Clopper and Pearson's limits of a rate after `errors` in `total` trials; each limit is wrong
/// with probability at most `alpha`.
///
/// `errors` does not have to be a whole number (it may be a mean over runs). Word errors are not
/// independent and can exceed the number of words, so for a word error rate this is only a binomial
/// model. It matters near zero, where a bootstrap without errors has no width. Returns `(0, 1)` if
/// `total` is 0.
#[must_use]
pub fn clopper_pearson(errors: f64, total: f64, alpha: f64) -> (f64, f64) {
    if total <= 0.0 || errors.is_nan() || total.is_nan() {
        return (0.0, 1.0);
    }
    let errors = errors.clamp(0.0, total);
    let low = if errors == 0.0 { 0.0 } else { beta_quantile(alpha, errors, total - errors + 1.0) };
    let high = if errors == total { 1.0 } else { beta_quantile(1.0 - alpha, errors + 1.0, total - errors) };
    (low, high)
}

/// Number of trials, more than `seen`, for which [`clopper_pearson`]'s limit at level `alpha` lies
/// on the other side of `limit` with probability `chance` if the true rate is `rate`. `None` if
/// more than [`TRIAL_LIMIT`] are needed, or if the two rates are equal.
///
/// Exact if few errors are expected; from 500 expected errors on, by the normal approximation.
#[must_use]
pub fn trials_needed(rate: f64, limit: f64, alpha: f64, chance: f64, seen: u64) -> Option<u64> {
    if !(0.0..=1.0).contains(&rate) || !(0.0..=1.0).contains(&limit) || rate == limit {
        return None;
    }
    let deviation = |p: f64| (p * (1.0 - p)).sqrt();
    let (z, probably) = (normal_quantile(1.0 - alpha), normal_quantile(chance));
    let normal = ((z * deviation(limit) + probably * deviation(rate)) / (limit - rate)).powi(2).ceil();
    let within = |n: f64| (n <= TRIAL_LIMIT as f64).then_some((n as u64).max(seen + 1));
    if normal.is_nan() || normal * rate.min(limit) > 500.0 {
        return within(normal);
    }
    let more = seen + 1;
    if rate < limit {
        // The more errors there are, the more trials are needed before so few errors are too rare
        // at the limit.
        let with = |k| Some((k, least(k, TRIAL_LIMIT, |n| at_most(k, n, limit) <= alpha)?.max(more)));
        return (0..).map_while(with).find(|(k, n)| at_most(*k, *n, rate) >= chance).map(|(_, n)| n);
    }
    // The number of trials up to which `k` errors are too many at the limit; among these, the first
    // at which `k` errors are probably reached.
    let mut from = more;
    for k in 1..=TRIAL_LIMIT {
        let end = least(k, TRIAL_LIMIT, |n| 1.0 - at_most(k - 1, n, limit) >= alpha);
        let to = end.map_or(TRIAL_LIMIT, |n| n - 1);
        let found = least(from, to, |n| 1.0 - at_most(k - 1, n, rate) >= chance);
        if found.is_some() || end.is_none() {
            return found;
        }
        from = from.max(to + 1);
    }
    None
}

/// The smallest number of a range from which on `holds` is true.
fn least(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !holds(high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// P(at most `k` errors in `n` trials at `rate`).
fn at_most(k: u64, n: u64, rate: f64) -> f64 {
    if k >= n { 1.0 } else { beta_cdf(1.0 - rate, (n - k) as f64, k as f64 + 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_limits() {
        // No errors in n trials: the upper limit is 1 - alpha^(1/n), in closed form.
        for n in [1.0, 10.0, 773.0] {
            let (low, high) = clopper_pearson(0.0, n, 0.05);
            assert_eq!(low, 0.0);
            assert!((high - (1.0 - 0.05f64.powf(1.0 / n))).abs() < 1e-12);
        }
        // 3 of 20 at two-sided 95 %: 0.0321 to 0.3789 (Clopper and Pearson's chart, printed in many
        // textbooks).
        let (low, high) = clopper_pearson(3.0, 20.0, 0.025);
        assert!((low - 0.032_070_937).abs() < 1e-8 && (high - 0.378_926_83).abs() < 1e-8, "{low} {high}");
        assert_eq!(clopper_pearson(5.0, 5.0, 0.05).1, 1.0);
        assert_eq!(clopper_pearson(0.0, 0.0, 0.05), (0.0, 1.0));
    }

    #[test]
    fn trials_that_would_settle_it() {
        let needed = |rate, limit, seen| trials_needed(rate, limit, 0.05, 0.8, seen);
        // Without errors, 0.05 = (1 - limit)^n, in closed form: 711.8 and 298.07.
        assert_eq!(needed(0.0, 0.0042, 240), Some(712));
        assert_eq!(needed(0.0, 0.01, 10), Some(299));
        assert_eq!(needed(0.0, 0.01, 500), Some(501));
        // By the normal approximation, ((1.645 sqrt(0.1 * 0.9) + 0.842 sqrt(0.095 * 0.905)) /
        // 0.005)^2.
        assert_eq!(needed(0.095, 0.1, 100), Some(21918));
        assert_eq!(needed(1.0 / 240.0, 0.0042, 240), None);
        assert_eq!((needed(0.1, 0.1, 1), needed(f64::NAN, 0.1, 1), needed(0.1, 1.1, 1)), (None, None, None));
        // Few errors are counted exactly, on both sides: the first number for which the limit
        // passes 80 times in 100.
        for (rate, limit) in [(0.01, 0.05), (0.08, 0.02), (0.0, 0.3), (1.0, 0.5), (0.1, 0.0)] {
            let chance = |n: u64| -> f64 {
                let passes = |k: &u64| {
                    let (low, high) = clopper_pearson(*k as f64, n as f64, 0.05);
                    if rate < limit { high <= limit } else { low > limit }
                };
                let below = |k: u64| if k == 0 { 0.0 } else { at_most(k - 1, n, rate) };
                (0..=n).filter(passes).map(|k| at_most(k, n, rate) - below(k)).sum()
            };
            let first = (6..).find(|n| chance(*n) >= 0.8);
            assert_eq!(needed(rate, limit, 5), first, "{rate} {limit}");
        }
    }

    #[test]
    fn covers_at_least_as_often_as_it_says() {
        // Exact coverage from the sum of the binomial probabilities, without sampling.
        let n = 40u32;
        for rate in [0.005, 0.02, 0.1, 0.37] {
            let (mut above, mut below, mut probability) = (0.0, 0.0, (1.0f64 - rate).powi(n as i32));
            for k in 0..=n {
                let (low, high) = clopper_pearson(f64::from(k), f64::from(n), 0.05);
                if low > rate {
                    above += probability;
                }
                if high < rate {
                    below += probability;
                }
                probability *= f64::from(n - k) / f64::from(k + 1) * rate / (1.0 - rate);
            }
            assert!(above <= 0.05 && below <= 0.05, "rate {rate}: {above} {below}");
        }
    }
}
