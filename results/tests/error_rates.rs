//! Monte-Carlo test of the error rates that `docs/verdicts.md` states, on the very procedure: seeds arrive one by one, every planned
//! look calls `judge`, and the first conclusive verdict stands.

mod draws;

use draws::Draws;
use serde_json::json;
use zoo_recipes::ClaimSpec;
use zoo_results::metrics::{Convention, Resampling, SegmentStatistics, Signature, Unit, interval};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{ErrorCount, Evidence, Interval, Outcome, PointScores, RunScore, judge};

const STUDIES: u32 = 20_000;

/// Shares of the studies that ended in each statement.
#[derive(Debug)]
struct Rates {
    reproduced: f64,
    not_reproduced: f64,
    seeds: f64,
}

/// Runs `STUDIES` studies of a system that is `deficit` worse than the claim, with spread `sigma` between its seeds.
fn study(claim: &ClaimSpec, plan: &[u32], deficit: f64, sigma: f64, parity: bool, seed: u64) -> Rates {
    let mut draws = Draws::new(seed);
    let plan = LookPlan::try_from(plan.to_vec()).unwrap();
    let (mut reproduced, mut not_reproduced, mut seeds) = (0u32, 0u32, 0u32);
    for _ in 0..STUDIES {
        let mut evidence = Evidence { plan: plan.clone(), external: true, ..Evidence::default() };
        let mut outcome = Outcome::Inconclusive;
        for n in 1..=plan.last() {
            let seed = u64::from(n);
            let (ours, baseline) = (26.0 - deficit + sigma * draws.normal(), 26.0 + sigma * draws.normal());
            let mut run = RunScore::scored(seed, ours);
            if parity {
                // A test set so large that resampling it adds nothing: the seeds alone decide.
                let difference = ours - baseline;
                run.difference = Some(Interval { low: difference, high: difference, level: 0.9 });
                evidence.baseline_runs.push(RunScore::scored(seed, baseline));
            }
            evidence.runs.push(run);
            if !plan.seeds().contains(&n) {
                continue;
            }
            outcome = judge(claim, &evidence).outcome;
            if outcome != Outcome::Inconclusive {
                seeds += n;
                break;
            }
        }
        match outcome {
            Outcome::Reproduced => reproduced += 1,
            Outcome::NotReproduced => not_reproduced += 1,
            _ => seeds += plan.last(),
        }
    }
    let share = |n: u32| f64::from(n) / f64::from(STUDIES);
    Rates { reproduced: share(reproduced), not_reproduced: share(not_reproduced), seeds: share(seeds) }
}

/// Asserts that the documentation has the row of a study at the margin.
fn documented(what: &str, plan: &[u32], rates: &Rates) {
    let plan: Vec<String> = plan.iter().map(u32::to_string).collect();
    let row = format!(
        "| {what} | {} | {:.1} % | {:.1} % |",
        plan.join(", "),
        100.0 * rates.reproduced,
        100.0 * rates.not_reproduced
    );
    println!("{row}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verdicts.md")).unwrap();
    assert!(page.contains(&row), "put this into docs/verdicts.md: {row}");
}

fn value_claim(sigma: Option<f64>) -> ClaimSpec {
    serde_json::from_value(
        json!({"kind": "value", "metric": "bleu", "value": 26.0, "sigma": sigma, "margin": 0.5,
        "source": "synthetic"}),
    )
    .unwrap()
}

/// Half a percentage point: more than three standard errors of a share of 5 % in 20,000 studies.
const SLACK: f64 = 0.005;

#[test]
fn at_the_margin_each_statement_is_wrong_in_five_of_a_hundred() {
    // Sigma known: the rates are exact, so both sides are tested. With several looks the two bounds compete for the same study,
    // which can only lower a rate.
    for (plan, sigma) in [(&[1][..], 0.2), (&[3], 0.5), (&[4], 1.0), (&[1, 2, 3, 4], 0.5), (&[1, 3], 0.3)] {
        let rates = study(&value_claim(Some(sigma)), plan, 0.5, sigma, false, 1);
        documented("value, sigma stated", plan, &rates);
        for rate in [rates.reproduced, rates.not_reproduced] {
            assert!((rate - 0.05).abs() < SLACK, "{rate}");
        }
    }
}

#[test]
fn the_sample_s_own_sigma_keeps_the_rates() {
    // One look with the t distribution is exact as well; nothing about sigma is known to the judge.
    for (plan, sigma) in [(&[2][..], 0.4), (&[3], 0.2), (&[5], 0.5), (&[10], 2.0)] {
        let rates = study(&value_claim(None), plan, 0.5, sigma, false, 2);
        documented("value, own sigma", plan, &rates);
        for rate in [rates.reproduced, rates.not_reproduced] {
            assert!((rate - 0.05).abs() < SLACK, "{rate}");
        }
    }
}

#[test]
fn the_default_schedule_keeps_the_rates() {
    // 1 and 3 seeds with the published sigma, 5 and 10 with the sample's own: their levels are only summed, so the whole stays
    // somewhat below its limit.
    let rates = study(&value_claim(Some(0.131)), &[1, 3, 5, 10], 0.5, 0.131, false, 3);
    documented("value, sigma stated, own from 5", &[1, 3, 5, 10], &rates);
    for rate in [rates.reproduced, rates.not_reproduced] {
        assert!(rate < 0.05 && rate > 0.035, "{rate}");
    }
}

#[test]
fn a_sigma_that_is_stated_too_small_is_not_covered() {
    // True spread 1.5 times the stated one, one seed: each statement is wrong with 1 - Phi(1.645 / 1.5) = 13.6 %.
    let rates = study(&value_claim(Some(0.2)), &[1], 0.5, 0.3, false, 11);
    documented("value, true sigma 1.5 times the stated", &[1], &rates);
    for rate in [rates.reproduced, rates.not_reproduced] {
        assert!((rate - 0.1364).abs() < 0.008, "{rate}");
    }
}

#[test]
fn parity_keeps_the_rates() {
    let claim: ClaimSpec = serde_json::from_value(json!({"kind": "parity", "metric": "bleu", "margin": 0.5,
        "assumed_sigma": 0.3, "source": "synthetic"}))
    .unwrap();
    for plan in [&[1][..], &[3], &[5], &[1, 3, 5, 10]] {
        let rates = study(&claim, plan, 0.5, 0.3, true, 4);
        documented("parity", plan, &rates);
        for rate in [rates.reproduced, rates.not_reproduced] {
            let limit = if plan.len() == 1 { 0.05 + SLACK } else { 0.052 };
            assert!(rate < limit && rate > 0.03, "{rate}");
        }
    }
}

/// Six points whose margins are two sigmas, of which the first `lacking` lie at their margin and the others are as published.
fn trajectory_study(plan: &[u32], lacking: usize, seed: u64) -> Rates {
    let points: Vec<_> = (1..=6).map(|at| json!({"at": at, "value": 20.0, "sigma": 0.3})).collect();
    let claim: ClaimSpec =
        serde_json::from_value(json!({"kind": "trajectory", "metric": "bleu", "clock": "epochs",
        "direction": "higher", "points": points, "source": "synthetic"}))
        .unwrap();
    let mut draws = Draws::new(seed);
    let plan = LookPlan::try_from(plan.to_vec()).unwrap();
    let mut ends =
        std::collections::HashMap::from([(Outcome::Reproduced, 0u32), (Outcome::NotReproduced, 0)]);
    let mut seeds = 0;
    for _ in 0..STUDIES {
        let points = (1..=6).map(|at| PointScores { at, runs: Vec::new() }).collect();
        let mut evidence = Evidence { plan: plan.clone(), external: true, points, ..Evidence::default() };
        for n in 1..=plan.last() {
            for (i, point) in evidence.points.iter_mut().enumerate() {
                let score = if i < lacking { 19.4 } else { 20.0 } + 0.3 * draws.normal();
                point.runs.push(RunScore::scored(n.into(), score));
            }
            let outcome = plan.seeds().contains(&n).then(|| judge(&claim, &evidence).outcome);
            if let Some(count) = outcome.and_then(|outcome| ends.get_mut(&outcome)) {
                *count += 1;
                seeds += n;
                break;
            }
            seeds += if n == plan.last() { n } else { 0 };
        }
    }
    let share = |n: u32| f64::from(n) / f64::from(STUDIES);
    Rates {
        reproduced: share(ends[&Outcome::Reproduced]),
        not_reproduced: share(ends[&Outcome::NotReproduced]),
        seeds: share(seeds),
    }
}

#[test]
fn a_trajectory_keeps_the_rates() {
    for plan in [&[1][..], &[3], &[1, 3, 5, 10]] {
        // The worst case of either statement: one point that does not hold, and none that does.
        let one = trajectory_study(plan, 1, 11);
        documented("trajectory of 6 points, 1 at its margin", plan, &one);
        assert!(one.reproduced < 0.05 + SLACK, "{one:?}");
        let all = trajectory_study(plan, 6, 12);
        documented("trajectory of 6 points, all at their margins", plan, &all);
        assert!(all.not_reproduced < 0.05 + SLACK && all.not_reproduced > 0.02, "{all:?}");
    }
}

/// The verdict of a bound in percent on errors that were counted, and an interval where the test set was resampled.
fn bound(percent: f64, errors: u64, total: u64, interval: Option<Interval>) -> Outcome {
    let claim: ClaimSpec = serde_json::from_value(
        json!({"kind": "bound", "metric": "wer", "value": percent, "source": "synthetic"}),
    )
    .unwrap();
    let counts = Some(ErrorCount { errors, total, scale: 100.0 });
    let run = RunScore { counts, interval, ..RunScore::scored(1, 100.0 * errors as f64 / total as f64) };
    let evidence =
        Evidence { runs: vec![run], plan: LookPlan::fixed(1), external: true, ..Evidence::default() };
    judge(&claim, &evidence).outcome
}

#[test]
fn counted_errors_near_zero_keep_the_rates() {
    // At a true rate on the bound, the chance of each number of errors is known: no sampling. Errors are whole, so the binomial
    // limits cannot use their 5 % up; and of 240 words not even none proves 0.42 %.
    for (percent, words, most) in
        [(0.42, 240u64, 0.0), (0.42, 2_400, 0.05), (1.0, 600, 0.05), (3.41, 5_000, 0.05)]
    {
        let rate: f64 = percent / 100.0;
        let mut rates = Rates { reproduced: 0.0, not_reproduced: 0.0, seeds: 1.0 };
        let mut probability = (1.0 - rate).powi(words as i32);
        for errors in 0..=words {
            match bound(percent, errors, words, None) {
                Outcome::Reproduced => rates.reproduced += probability,
                Outcome::NotReproduced => rates.not_reproduced += probability,
                _ => {}
            }
            probability *= (words - errors) as f64 / (errors + 1) as f64 * rate / (1.0 - rate);
        }
        documented(&format!("bound {percent} %, errors among {words} words"), &[1], &rates);
        assert!(rates.reproduced <= most && rates.not_reproduced <= 0.05, "{rates:?}");
        assert!(rates.not_reproduced > 0.01 && (most == 0.0 || rates.reproduced > 0.015), "{rates:?}");
    }
}

/// Errors come in bunches: a fifth of the utterances are hard. `resampled`: with the interval of the utterances beside the counts.
fn bunches(resampled: bool) -> Rates {
    const UTTERANCES: usize = 150;
    const WORDS: u64 = 12;
    let mut draws = Draws::new(12);
    let (mut reproduced, mut not_reproduced) = (0u32, 0u32);
    let signature = Signature::own(Convention::Accuracy(Unit::Word), None);
    let studies = 2_000;
    for _ in 0..studies {
        let rows: Vec<(f64, f64)> = (0..UTTERANCES)
            .map(|_| {
                let rate = if draws.uniform() < 0.2 { 0.4 } else { 0.025 };
                ((0..WORDS).filter(|_| draws.uniform() < rate).count() as f64, WORDS as f64)
            })
            .collect();
        let (errors, total) = (rows.iter().map(|row| row.0 as u64).sum(), WORDS * UTTERANCES as u64);
        // A rate of errors is resampled as one of right answers is.
        let statistics = SegmentStatistics::from_ratios(signature.clone(), &rows).unwrap();
        let of = |found: zoo_results::metrics::Interval| Interval {
            low: found.lower,
            high: found.upper,
            level: found.confidence,
        };
        let limits =
            resampled.then(|| of(interval(&statistics, Resampling { samples: 400, seed: 1 }).unwrap()));
        match bound(10.0, errors, total, limits) {
            Outcome::Reproduced => reproduced += 1,
            Outcome::NotReproduced => not_reproduced += 1,
            _ => {}
        }
    }
    let share = |n: u32| f64::from(n) / f64::from(studies);
    Rates { reproduced: share(reproduced), not_reproduced: share(not_reproduced), seeds: 1.0 }
}

#[test]
fn errors_in_bunches_need_the_resampled_interval() {
    // The mean rate is on the bound, 0.2 * 40 % + 0.8 * 2.5 % = 10 %. The standard error of a share of 5 % in 2,000 studies is half a
    // point.
    let counted = bunches(false);
    documented("bound 10 %, errors in bunches, counted alone", &[1], &counted);
    assert!(counted.reproduced > 0.08 && counted.not_reproduced > 0.08, "{counted:?}");
    let both = bunches(true);
    documented("bound 10 %, errors in bunches, counted and resampled", &[1], &both);
    assert!((both.reproduced - 0.05).abs() < 0.02 && (both.not_reproduced - 0.05).abs() < 0.02, "{both:?}");
}

#[test]
fn away_from_the_margin_errors_vanish_and_decisions_come() {
    let claim = value_claim(Some(0.2));
    // An equal system, one seed: passes in 80 of 100 and never fails (P = 1 - Phi(1.645 - 2.5) and Phi(-4.1)).
    let equal = study(&claim, &[1], 0.0, 0.2, false, 5);
    println!("equal system, sigma 0.2, 1 seed: {equal:?}");
    assert!((equal.reproduced - 0.804).abs() < 0.01 && equal.not_reproduced < 2e-4, "{equal:?}");
    let three = study(&claim, &[3], 0.0, 0.2, false, 6);
    println!("equal system, sigma 0.2, 3 seeds: {three:?}");
    assert!(three.reproduced > 0.99, "{three:?}");
    // A system that is 0.8 worse.
    let one = study(&claim, &[1], 0.8, 0.2, false, 7);
    let schedule = study(&claim, &[1, 3, 5, 10], 0.8, 0.2, false, 8);
    println!("0.8 worse, sigma 0.2: 1 seed {one:?}, schedule {schedule:?}");
    assert!((one.not_reproduced - 0.442).abs() < 0.012 && one.reproduced < 0.002, "{one:?}");
    assert!(schedule.not_reproduced > 0.98 && schedule.seeds < 5.5, "{schedule:?}");
    // The schedule on an equal system mostly stops long before ten seeds.
    let stops = study(&claim, &[1, 3, 5, 10], 0.0, 0.2, false, 9);
    println!("equal system, schedule: {stops:?}");
    assert!(stops.reproduced > 0.99 && stops.not_reproduced < 0.005 && stops.seeds < 3.0, "{stops:?}");
}

#[test]
fn looking_once_at_all_seeds_gives_what_looking_on_the_way_gave() {
    let claim = value_claim(Some(0.4));
    let mut draws = Draws::new(10);
    for _ in 0..500 {
        let scores: Vec<RunScore> =
            (1..=10).map(|seed| RunScore::scored(seed, 25.6 + 0.4 * draws.normal())).collect();
        let at = |n: usize| {
            let evidence = Evidence { runs: scores[..n].to_vec(), external: true, ..Evidence::default() };
            let verdict = judge(&claim, &evidence);
            (verdict.outcome, verdict.seeds, verdict.shortfall)
        };
        let on_the_way =
            [1, 3, 5, 10].map(at).into_iter().find(|v| v.0 != Outcome::Inconclusive).unwrap_or(at(10));
        assert_eq!(at(10), on_the_way);
    }
}
