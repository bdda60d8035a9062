//! Exact limits of a rate.

use super::distributions::beta_quantile;

/// Clopper and Pearson's limits of a rate after `errors` in `total` trials; each limit is wrong with probability at most `alpha`.
///
/// `errors` need not be whole (a mean over runs). Word errors are not independent of each other and can exceed the words, so for a
/// word error rate this is the binomial model, used where it matters: near zero, where a bootstrap of no errors has no width.
/// Returns `(0, 1)` where `total` is 0.
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
        // 3 of 20 at two-sided 95 %: 0.0321 to 0.3789 (Clopper and Pearson's chart, printed in many textbooks).
        let (low, high) = clopper_pearson(3.0, 20.0, 0.025);
        assert!((low - 0.032_070_937).abs() < 1e-8 && (high - 0.378_926_83).abs() < 1e-8, "{low} {high}");
        assert_eq!(clopper_pearson(5.0, 5.0, 0.05).1, 1.0);
        assert_eq!(clopper_pearson(0.0, 0.0, 0.05), (0.0, 1.0));
    }

    #[test]
    fn covers_at_least_as_often_as_it_says() {
        // Exact coverage by summing the binomial probabilities, no sampling.
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
