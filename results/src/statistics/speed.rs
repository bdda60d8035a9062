//! Speed-up from alternating blocks of two arms.

use serde::{Deserialize, Serialize};

use super::distributions::t_quantile;
use super::sample::{mean, standard_deviation};

/// Seconds of four blocks timed in the order baseline, candidate, candidate, baseline. Each is the
/// time for the same work: an update or a token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AbbaBlock {
    /// First block of the baseline.
    pub baseline_first: f64,
    /// First block of the candidate.
    pub candidate_first: f64,
    /// Second block of the candidate.
    pub candidate_second: f64,
    /// Second block of the baseline.
    pub baseline_second: f64,
}

/// A measured speed-up with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpeedUp {
    /// Baseline's time divided by the candidate's; above 1 the candidate is faster.
    pub ratio: f64,
    /// Lower limit; each limit is wrong with probability (1 - level) / 2.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Two-sided level of the interval: 0.90 makes each limit a one-sided 95 % limit.
    pub level: f64,
    /// Number of A B B A rounds.
    pub rounds: u32,
}

/// The speed-up over A B B A rounds. A drift that is linear within a round cancels. The ratio is a
/// geometric mean with the t interval of its logarithm at two-sided 90 %. `None` for fewer than two
/// rounds, or for a time that is not positive and finite.
#[must_use]
pub fn speed_up(rounds: &[AbbaBlock]) -> Option<SpeedUp> {
    let level = 0.90;
    let logs: Vec<f64> = rounds
        .iter()
        .map(|r| ((r.baseline_first + r.baseline_second) / (r.candidate_first + r.candidate_second)).ln())
        .collect();
    let times = rounds
        .iter()
        .flat_map(|r| [r.baseline_first, r.candidate_first, r.candidate_second, r.baseline_second]);
    if rounds.len() < 2 || times.into_iter().any(|t| t <= 0.0 || !t.is_finite()) {
        return None;
    }
    let n = logs.len() as f64;
    let (centre, half) =
        (mean(&logs), t_quantile(0.5 + level / 2.0, n - 1.0) * standard_deviation(&logs) / n.sqrt());
    Some(SpeedUp {
        ratio: centre.exp(),
        low: (centre - half).exp(),
        high: (centre + half).exp(),
        level,
        rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_drift_cancels() {
        // The clock slows by 20 % over the measurement; the candidate is 1.5 times as fast.
        let rounds = 5;
        let slow = |i: usize| 1.0 + 0.2 * i as f64 / (4 * rounds) as f64;
        let blocks: Vec<AbbaBlock> = (0..rounds)
            .map(|r| AbbaBlock {
                baseline_first: 3.0 * slow(4 * r),
                candidate_first: 2.0 * slow(4 * r + 1),
                candidate_second: 2.0 * slow(4 * r + 2),
                baseline_second: 3.0 * slow(4 * r + 3),
            })
            .collect();
        let measured = speed_up(&blocks).unwrap();
        assert!((measured.ratio - 1.5).abs() < 1e-9, "{measured:?}");
        // Timing all of A first and then all of B would have been wrong by 10 %.
        let half = 2 * rounds;
        let a: f64 = (0..half).map(|i| 3.0 * slow(i)).sum();
        let b: f64 = (half..2 * half).map(|i| 2.0 * slow(i)).sum();
        assert!((a / b - 1.5).abs() > 0.1);
    }

    #[test]
    fn an_interval_needs_two_rounds_and_real_times() {
        let block = AbbaBlock {
            baseline_first: 1.0,
            candidate_first: 1.0,
            candidate_second: 1.2,
            baseline_second: 1.0,
        };
        assert_eq!(speed_up(&[block]), None);
        assert_eq!(speed_up(&[block, AbbaBlock { baseline_first: 0.0, ..block }]), None);
        let measured = speed_up(&[block, AbbaBlock { baseline_first: 1.3, ..block }]).unwrap();
        assert!(measured.low < measured.ratio && measured.ratio < measured.high);
    }
}
