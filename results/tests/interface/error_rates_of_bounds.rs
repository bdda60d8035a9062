//! Error rates of bounds, for which the test set matters besides the seeds: a score that both
//! affect, few counted errors, and errors that come in bunches.

use crate::draws;
use crate::rates;

use draws::Draws;
use rates::{Rates, STUDIES, documented, looks, margin_of_noise};
use serde_json::json;
use zoo_recipes::ClaimSpec;
use zoo_results::metrics::{
    AccuracyOptions, Resampling, SegmentStatistics, Share, Signature, Ties, interval,
};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{ErrorCount, Evidence, Interval, Outcome, RunScore, StatedSpread, judge};

fn row(sd: f64, carried: bool) -> Option<StatedSpread> {
    Some(StatedSpread { row: "row".into(), sd, freedom: Some(4), carried })
}

/// A bound on a score to which seeds and test set contribute equally; the true mean lies on the
/// bound.
fn moved_by_both(plan: &[u32], carried: bool, times: f64) -> Rates {
    const SD: f64 = 0.3;
    let claim: ClaimSpec = serde_json::from_value(
        json!({"kind": "bound", "metric": "bleu", "value": 90.0, "source": "synthetic"}),
    )
    .unwrap();
    let mut draws = Draws::new(21);
    let plan = looks(plan);
    let mut rates = Rates::default();
    for _ in 0..STUDIES {
        // All seeds share one test set.
        let test = SD * draws.normal();
        let mut evidence =
            Evidence { plan: plan.clone(), external: true, spread: row(SD, carried), ..Evidence::default() };
        let mut end = (Outcome::Inconclusive, plan.last());
        for n in 1..=plan.last() {
            let score = 90.0 + test + times * SD * draws.normal();
            let half = 1.959_963_984_540_054 * SD;
            let interval = Some(Interval { low: score - half, high: score + half, level: 0.95 });
            evidence.runs.push(RunScore { interval, ..RunScore::scored(n.into(), score) });
            if !plan.seeds().contains(&n) {
                continue;
            }
            let outcome = judge(&claim, &evidence).outcome;
            if outcome != Outcome::Inconclusive {
                end = (outcome, n);
                break;
            }
        }
        rates.count(end.0, end.1);
    }
    rates
}

#[test]
fn seeds_and_test_set_together_keep_the_rates() {
    for plan in [&[1][..], &[2], &[3], &[1, 3, 5, 10]] {
        for carried in [false, true] {
            let rates = [1.0, 2.0, 3.0].map(|times| moved_by_both(plan, carried, times));
            let whose = if carried { "carried" } else { "own" };
            documented(&format!("bound, seeds and test set alike, {whose} row of 5 runs"), plan, &rates);
            for rate in &rates {
                let worst = rate.reproduced().max(rate.not_reproduced());
                assert!(worst <= 0.05 + margin_of_noise(), "{plan:?} {whose}: {rates:?}");
            }
        }
    }
}

/// The verdict of a bound in percent on counted errors, with the interval of the resampled test
/// set. The seeds hardly differ.
fn bound(percent: f64, errors: u64, total: u64, interval: Option<Interval>) -> Outcome {
    let claim: ClaimSpec = serde_json::from_value(
        json!({"kind": "bound", "metric": "wer", "value": percent, "source": "synthetic"}),
    )
    .unwrap();
    let counts = Some(ErrorCount { errors, total, scale: 100.0 });
    let run = RunScore { counts, interval, ..RunScore::scored(1, 100.0 * errors as f64 / total as f64) };
    let evidence = Evidence {
        runs: vec![run],
        plan: LookPlan::fixed(1),
        external: true,
        spread: row(1e-6, false),
        ..Evidence::default()
    };
    judge(&claim, &evidence).outcome
}

#[test]
fn counted_errors_near_zero_keep_the_rates() {
    // If the true rate lies on the bound, the probability of each number of errors is known, so no
    // sampling is needed. The number of errors is a whole number, so the binomial limits cannot use
    // the full 5 %. With 240 words, even zero errors do not prove 0.42 %.
    for (percent, words, most) in
        [(0.42, 240u64, 0.0), (0.42, 2_400, 0.05), (1.0, 600, 0.05), (3.41, 5_000, 0.05)]
    {
        let rate: f64 = percent / 100.0;
        let mut rates = Rates::default();
        let mut probability = (1.0 - rate).powi(words as i32);
        for errors in 0..=words {
            let found = errors as f64 / words as f64;
            let half = 195.996_398_454 * (found * (1.0 - found) / words as f64).sqrt();
            let (low, high) = ((100.0 * found - half).max(0.0), 100.0 * found + half);
            let interval = Some(Interval { low, high, level: 0.95 });
            rates.weigh(bound(percent, errors, words, interval), probability);
            probability *= (words - errors) as f64 / (errors + 1) as f64 * rate / (1.0 - rate);
        }
        documented(&format!("bound {percent} %, errors among {words} words"), &[1], &[rates]);
        let (reproduced, not_reproduced) = (rates.reproduced(), rates.not_reproduced());
        assert!(reproduced <= most + 1e-9 && not_reproduced <= 0.05, "{rates:?}");
        assert!(most == 0.0 || reproduced > 0.015, "{rates:?}");
    }
}

/// Errors come in bunches: some of the utterances are hard. `hard` is the share of hard utterances,
/// their error rate, and that of the others.
fn bunches(utterances: usize, hard: (f64, f64, f64), resampled: bool) -> Rates {
    const WORDS: u64 = 12;
    let mut draws = Draws::new(12);
    let mut rates = Rates::default();
    let options = AccuracyOptions { share: Share::Wrong, top: 1, classes: 2, ties: Ties::First };
    let signature = Signature::own(options.into(), None);
    let percent = 100.0 * (hard.0 * hard.1 + (1.0 - hard.0) * hard.2);
    for _ in 0..STUDIES / 2 {
        let rows: Vec<(f64, f64)> = (0..utterances)
            .map(|_| {
                let rate = if draws.uniform() < hard.0 { hard.1 } else { hard.2 };
                ((0..WORDS).filter(|_| draws.uniform() < rate).count() as f64, WORDS as f64)
            })
            .collect();
        let (errors, total) = (rows.iter().map(|row| row.0 as u64).sum(), WORDS * utterances as u64);
        let statistics = SegmentStatistics::from_ratios(signature.clone(), &rows).unwrap();
        let of = |found: zoo_results::metrics::Interval| Interval {
            low: found.lower,
            high: found.upper,
            level: found.confidence,
        };
        let limits =
            resampled.then(|| of(interval(&statistics, Resampling { samples: 400, seed: 1 }).unwrap()));
        rates.count(bound(percent, errors, total, limits), 1);
    }
    rates
}

#[test]
fn errors_in_bunches_keep_the_rates() {
    // The mean rate lies on the bound.
    for (utterances, hard) in [(150, (0.2, 0.4, 0.025)), (600, (0.2, 0.4, 0.025)), (150, (0.1, 0.6, 0.02))] {
        let rates = bunches(utterances, hard, true);
        let percent = 100.0 * hard.0;
        documented(&format!("bound, {utterances} utterances, {percent} % of them hard"), &[1], &[rates]);
        let noise = margin_of_noise() * 2f64.sqrt();
        assert!(rates.reproduced().max(rates.not_reproduced()) <= 0.05 + noise, "{rates:?}");
        assert!(rates.reproduced() > 0.01, "{rates:?}");
    }
}

#[test]
fn counted_errors_alone_conclude_nothing() {
    let rates = bunches(150, (0.2, 0.4, 0.025), false);
    assert_eq!((rates.reproduced(), rates.not_reproduced()), (0.0, 0.0), "{rates:?}");
}
