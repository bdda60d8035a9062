//! Verdicts on distributions of seeds that NVIDIA published (DeepLearningExamples at 729963d,
//! "Training stability test"), by the first rules.

use serde_json::json;
use zoo_recipes::ClaimSpec;
use zoo_results::statistics::{LookPlan, mean, standard_deviation, t_quantile};
use zoo_results::verdict::{Evidence, Outcome, Rules, RunScore, SigmaSource, Verdict, judge};

fn claim(value: serde_json::Value) -> ClaimSpec {
    serde_json::from_value(value).unwrap()
}

fn judged(claim: &ClaimSpec, scores: &[f64]) -> Verdict {
    let runs = scores.iter().map(|s| RunScore::external(*s)).collect();
    let plan = LookPlan::fixed(scores.len() as u32);
    judge(claim, &Evidence { rules: Rules::First, runs, plan, external: true, ..Evidence::default() })
}

/// The eight seeds of Jasper 10x5 on A100, test-clean, greedy, AMP.
const JASPER: [f64; 8] = [3.66, 3.84, 3.81, 3.64, 3.58, 3.73, 3.41, 3.55];

fn jasper(sigma: f64, margin: f64) -> ClaimSpec {
    claim(
        json!({"kind": "value", "metric": "wer", "value": 3.41, "statistic": "best", "n": 8, "sigma": sigma,
        "margin": margin, "source": "Jasper README, A100 test-clean"}),
    )
}

#[test]
fn jasper_best_of_eight_stands_for_a_mean() {
    // The README prints 0.13, with divisor n; with n - 1 it is 0.142.
    assert!((mean(&JASPER) - 3.6525).abs() < 1e-12);
    assert!((standard_deviation(&JASPER) - 0.142).abs() < 5e-4);
    let target = |sigma| judged(&jasper(sigma, 0.3), &[3.66]).target.unwrap();
    assert!((target(0.13) - 3.595).abs() < 5e-4, "{}", target(0.13));
    assert!((target(0.142) - 3.612).abs() < 5e-4, "{}", target(0.142));
}

#[test]
fn jasper_seeds_one_by_one() {
    for (sigma, expected) in [
        (
            0.13,
            [("3.41 3.55 3.58 3.64 3.66", Outcome::Reproduced), ("3.73 3.81 3.84", Outcome::Inconclusive)],
        ),
        // The corrected sigma moves the target (3.612) and the bound (0.234) equally: the same five
        // pass.
        (
            0.142,
            [("3.41 3.55 3.58 3.64 3.66", Outcome::Reproduced), ("3.73 3.81 3.84", Outcome::Inconclusive)],
        ),
    ] {
        for (scores, outcome) in expected {
            for score in scores.split(' ').map(|s| s.parse::<f64>().unwrap()) {
                let verdict = judged(&jasper(sigma, 0.3), &[score]);
                assert_eq!(verdict.outcome, outcome, "sigma {sigma}, score {score}: {}", verdict.explanation);
                assert_eq!(verdict.sigma_source, Some(SigmaSource::Published));
            }
        }
    }
}

#[test]
fn jasper_all_eight_seeds_use_their_own_spread() {
    let verdict = judged(&jasper(0.13, 0.3), &JASPER);
    assert_eq!((verdict.outcome, verdict.sigma_source), (Outcome::Reproduced, Some(SigmaSource::Sample)));
    let half = t_quantile(0.95, 7.0) * standard_deviation(&JASPER) / 8f64.sqrt();
    let (shortfall, high) = (verdict.shortfall.unwrap(), verdict.shortfall_high.unwrap());
    assert!((shortfall - (mean(&JASPER) - verdict.target.unwrap())).abs() < 1e-12);
    assert!((high - shortfall - half).abs() < 1e-9);
    // Taken literally, 3.41 would require a mean that the publisher's own eight runs do not have.
    let naive = claim(json!({"kind": "value", "metric": "wer", "value": 3.41, "sigma": 0.13, "margin": 0.1,
        "source": "the same, misread as a single run"}));
    assert_eq!(judged(&naive, &JASPER).outcome, Outcome::NotReproduced);
}

#[test]
fn gnmt_gate_and_claim() {
    // 32 seeds: 24.416 +- 0.131, from 24.14 to 24.66. NVIDIA's own threshold is 23.80.
    let gnmt =
        claim(json!({"kind": "value", "metric": "bleu", "value": 24.416, "statistic": "mean", "n": 32,
        "sigma": 0.131, "margin": 0.3, "source": "GNMT README, epoch 6"}));
    // The worst and the best of the published seeds. The worst is 0.276 below the mean and its
    // bound lies outside the margin, but it is never NOT REPRODUCED.
    assert_eq!(judged(&gnmt, &[24.14]).outcome, Outcome::Inconclusive);
    assert_eq!(judged(&gnmt, &[24.66]).outcome, Outcome::Reproduced);
    // A run exactly at NVIDIA's threshold is 4.7 sigma below the mean: it is broken, and judged so.
    assert!(((24.416 - 23.80) / 0.131f64 - 4.7).abs() < 0.01);
    assert_eq!(judged(&gnmt, &[23.80]).outcome, Outcome::NotReproduced);
    // Expected result of an equal system: the mean of 32 is nearly exact, so the range is that of
    // one seed.
    let equal = judged(&gnmt, &[24.4]).equal_system.unwrap();
    let spread = 0.131 * (1.0 + 1.0 / 32.0f64).sqrt();
    assert!((equal.high - equal.low - 2.0 * 1.959_963_984_540_054 * spread).abs() < 1e-9);
    assert!(
        equal.low > 24.14 && equal.low < 24.16 && equal.reproduced > 0.7 && equal.reproduced < 0.8,
        "{equal:?}"
    );
}

#[test]
fn hardware_makes_a_difference_that_is_not_noise() {
    // A100 3.6525 (n - 1: 0.142) and V100 3.54 (0.048), eight seeds each: Welch's t is about 2.1
    // with 8 to 9 degrees of freedom.
    let (a, b): (f64, f64) = (0.142 * 0.142 / 8.0, 0.048 * 0.048 / 8.0);
    let t = (3.6525 - 3.54) / (a + b).sqrt();
    let freedom = (a + b).powi(2) / (a * a / 7.0 + b * b / 7.0);
    assert!(t > 2.0 && t < 2.3 && freedom > 8.0 && freedom < 9.0, "{t} {freedom}");
}

/// MLPerf's reference convergence points for RNN-T: mean and spread of the reference runs, and the
/// lowest acceptable mean of ten runs.
#[test]
fn mlperf_reference_points() {
    for (mu, sigma, least) in
        [(60.1111, 2.654_713, 58.1812), (58.3889, 1.627_882, 57.2054), (69.6111, 1.907_878, 68.2241)]
    {
        // 20 reference runs without the two extremes, 10 runs without the two extremes.
        let (n1, n2) = (18.0, 8.0);
        let found = mu - t_quantile(0.95, n1 + n2 - 2.0) * sigma * (1.0f64 / n1 + 1.0 / n2).sqrt();
        assert!((found - least).abs() < 2e-4, "{found} is not {least}");
    }
}
