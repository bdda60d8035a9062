//! Detects seeds whose training collapsed. Their scores make up most of the spread, so a hint to
//! run more seeds has to name them.

use super::evidence::{Interval, RunScore};
use super::outcome::{Outcome, Verdict};
use super::wording::number;
use crate::statistics::median;

/// A seed counts as collapsed if its score is worse than the median by more than this multiple of
/// each yardstick.
const YARDSTICKS: f64 = 10.0;

/// Minimum number of scores. With fewer, no score can be identified as the outlier.
const LEAST: usize = 3;

/// Factor from the median absolute deviation to the standard deviation of a normal distribution.
const NORMAL: f64 = 1.4826;

/// Beginning of the last sentence of an explanation when a seed collapsed.
pub(super) const BEGINNING: &str = " Collapsed: ";

/// The runs of one arm at one look.
pub(super) struct Arm<'a> {
    pub name: &'a str,
    pub runs: &'a [&'a RunScore],
}

/// Appends the sentence that names collapsed seeds to an explanation that is not REPRODUCED. `sign`
/// is +1 if higher is better. `stated` are the claim's margin and sigma.
pub(super) fn name_collapsed(verdict: &mut Verdict, arms: &[Arm<'_>], sign: f64, stated: &[Option<f64>]) {
    if verdict.outcome == Outcome::Reproduced {
        return;
    }
    let found: Vec<String> = arms.iter().filter_map(|arm| arm.collapsed(sign, stated)).collect();
    if !found.is_empty() {
        let found = found.join("; ");
        verdict.explanation.push_str(&format!(
            "{BEGINNING}{found}. This makes most of the spread between the seeds, so that more seeds mainly show how often \
             training collapses."
        ));
    }
}

impl Arm<'_> {
    /// Names the collapsed seeds of this arm. A score counts as collapsed if it is worse than the
    /// median by more than ten times each yardstick. The yardsticks are the robust spread (1.4826
    /// times the median absolute deviation), the stated margin and sigma, and half the median width
    /// of the scores' 95 % intervals from the test set. If no yardstick is above 0, no score counts
    /// as collapsed.
    fn collapsed(&self, sign: f64, stated: &[Option<f64>]) -> Option<String> {
        let scored: Vec<(Option<u64>, f64)> =
            self.runs.iter().filter_map(|run| Some((run.seed, run.score?))).collect();
        if scored.len() < LEAST {
            return None;
        }
        let scores: Vec<f64> = scored.iter().map(|(_, score)| *score).collect();
        let centre = median(&scores);
        let deviations: Vec<f64> = scores.iter().map(|score| (score - centre).abs()).collect();
        let half = |interval: Interval| 0.5 * (interval.high - interval.low);
        let widths: Vec<f64> = self.runs.iter().filter_map(|run| run.interval.map(half)).collect();
        let test_set = (!widths.is_empty()).then(|| median(&widths));
        let yardstick = stated.iter().copied().chain([Some(NORMAL * median(&deviations)), test_set]);
        let yardstick = yardstick.flatten().fold(0.0, f64::max);
        if yardstick <= 0.0 {
            return None;
        }
        let collapsed = scored.iter().filter(|(_, score)| sign * (centre - score) > YARDSTICKS * yardstick);
        let named: Vec<String> = collapsed
            .map(|(seed, score)| {
                let seed = seed.map_or_else(|| "of unknown number".to_owned(), |seed| seed.to_string());
                format!("seed {seed} of {} with {}", self.name, number(*score))
            })
            .collect();
        (!named.is_empty()).then(|| format!("{} (median {})", named.join(", "), number(centre)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(scores: &[f64], half: f64) -> Vec<RunScore> {
        let run = |(at, score): (usize, &f64)| RunScore {
            interval: (half > 0.0).then(|| Interval { low: score - half, high: score + half, level: 0.95 }),
            ..RunScore::scored(at as u64 + 1, *score)
        };
        scores.iter().enumerate().map(run).collect()
    }

    fn found(scores: &[f64], half: f64, sign: f64, stated: &[Option<f64>]) -> Option<String> {
        let runs = runs(scores, half);
        Arm { name: "mixed", runs: &runs.iter().collect::<Vec<_>>() }.collapsed(sign, stated)
    }

    #[test]
    fn a_collapsed_seed_is_named_with_its_score() {
        let scores = [0.42, 0.83, 83.75];
        let said = found(&scores, 0.6, -1.0, &[Some(0.84), None]).unwrap();
        assert_eq!(said, "seed 3 of mixed with 83.75 (median 0.830)");
        // Not collapsed: a score better than the others, an ordinary spread, one of two scores.
        assert_eq!(found(&scores, 0.6, 1.0, &[]), None);
        assert_eq!(found(&[0.42, 0.42, 1.25], 0.6, -1.0, &[Some(0.0)]), None);
        assert_eq!(found(&[0.42, 83.75], 0.6, -1.0, &[]), None);
        // With equal scores and no test set there is no yardstick.
        assert_eq!(found(&[90.0, 90.0, 89.0], 0.0, 1.0, &[None]), None);
        assert!(found(&[90.0, 90.0, 12.0], 0.0, 1.0, &[Some(0.5)]).is_some());
    }
}
