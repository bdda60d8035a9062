//! Every outcome of a comparison of two arms, their scores and their speeds, under the first rules.

use serde_json::json;
use zoo_recipes::{ClaimSpec, RatioProtocol};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{
    Evidence, Interval, Outcome, Precision, RunScore, RunStatus, SigmaSource, SpeedEvidence, rejudge,
};

use crate::verdicts::{Z, claim, close, judge, says};

fn parity_claim() -> ClaimSpec {
    claim(json!({"kind": "parity", "margin": 0.3, "assumed_sigma": 0.1}))
}

/// Pairs (mixed, fp32), each with an interval of the difference of +- `half` at two-sided 90 %.
fn paired(pairs: &[(f64, f64)], half: Option<f64>) -> Evidence {
    let run = |i: usize, ours: f64, theirs: f64| RunScore {
        difference: half.map(|h| Interval { low: ours - theirs - h, high: ours - theirs + h, level: 0.9 }),
        ..RunScore::scored(i as u64, ours)
    };
    Evidence {
        arm: Some("mixed".into()),
        baseline: Some("fp32".into()),
        precision: Some(Precision::Fp16),
        baseline_precision: Some(Precision::Fp32),
        plan: LookPlan::fixed(pairs.len() as u32),
        runs: pairs.iter().enumerate().map(|(i, (ours, theirs))| run(i, *ours, *theirs)).collect(),
        // Deliberately out of order: pairs are matched by seed.
        baseline_runs: pairs.iter().enumerate().rev().map(|(i, p)| RunScore::scored(i as u64, p.1)).collect(),
        ..Evidence::default()
    }
}

#[test]
fn parity_needs_both_seeds_and_test_set() {
    let one = judge(&parity_claim(), &paired(&[(41.0, 41.0)], Some(0.2)));
    says(&one, Outcome::Reproduced, "equal to fp32");
    close(one.shortfall_high, Z * 0.1 * std::f64::consts::SQRT_2);
    says(
        &judge(&parity_claim(), &paired(&[(41.0, 41.0)], Some(0.5))),
        Outcome::Inconclusive,
        "Resampling the test set",
    );
    says(
        &judge(&parity_claim(), &paired(&[(41.0, 41.0)], None)),
        Outcome::Inconclusive,
        "REPRODUCED needs both",
    );
    assert_eq!(judge(&parity_claim(), &paired(&[(40.0, 41.0)], Some(0.2))).outcome, Outcome::NotReproduced);
    // The mixed arm may be better by any amount.
    assert_eq!(judge(&parity_claim(), &paired(&[(60.0, 41.0)], Some(0.2))).outcome, Outcome::Reproduced);
    // From two pairs on, the differences' own spread is used: +-0.05 around 0.1 with t = 6.31 over
    // sqrt(2).
    let two = judge(&parity_claim(), &paired(&[(41.0, 41.05), (41.0, 41.15)], Some(0.1)));
    assert_eq!(two.sigma_source, Some(SigmaSource::Sample));
    close(two.shortfall_high, 0.1 + 6.313_751_514_675_043 * 0.1 / 2f64.sqrt() / 2f64.sqrt());
    assert_eq!(two.outcome, Outcome::Inconclusive);
}

#[test]
fn parity_of_arms_that_are_not_what_they_say() {
    let with = |change: fn(&mut Evidence)| {
        let mut evidence = paired(&[(41.0, 41.0)], Some(0.2));
        change(&mut evidence);
        judge(&parity_claim(), &evidence)
    };
    says(
        &with(|e| e.precision = Some(Precision::Fp32)),
        Outcome::NotComparable,
        "arm mixed was proved to compute its products in fp32",
    );
    let mut bf16 = paired(&[(41.0, 41.0)], Some(0.2));
    bf16.precision = Some(Precision::Bf16);
    assert_eq!(judge(&parity_claim(), &bf16).outcome, Outcome::Reproduced, "the first rules let it pass");
    says(
        &rejudge("synthetic", &parity_claim(), &bf16),
        Outcome::NotComparable,
        "compute its products in bf16; mixed stands for FP16 with loss scaling",
    );
    let unproved = Evidence { precision: None, ..bf16 };
    says(
        &rejudge("synthetic", &parity_claim(), &unproved),
        Outcome::NotComparable,
        "no probe found in which type arm mixed computed its products",
    );
    says(
        &with(|e| e.baseline_precision = Some(Precision::Tf32)),
        Outcome::NotComparable,
        "arm fp32 was proved",
    );
    says(
        &with(|e| e.baseline = Some("tf32".into())),
        Outcome::NotComparable,
        "baseline is fp32, ours is tf32",
    );
    says(&with(|e| e.runs[0].status = RunStatus::Diverged), Outcome::NotReproduced, "1 of 1 seed diverged");
    says(
        &with(|e| e.baseline_runs[0].status = RunStatus::Diverged),
        Outcome::NotComparable,
        "nothing to be no worse than",
    );
    says(&with(|e| e.baseline_runs.clear()), Outcome::NotRun, "both arms");
}

fn ratio_claim() -> ClaimSpec {
    claim(
        json!({"kind": "ratio", "metric": "updates-per-second", "value": 1.53, "margin": 0.1, "protocol": "equal-batch",
        "hardware": "4 GPUs, V100 generation", "baseline": "fp32"}),
    )
}

fn timed(ratio: f64, half: f64) -> Evidence {
    let interval = Interval { low: ratio - half, high: ratio + half, level: 0.9 };
    Evidence {
        precision: Some(Precision::Fp16),
        baseline_precision: Some(Precision::Fp32),
        hardware: Some("4 gpus V100-generation".into()),
        speed: Some(SpeedEvidence {
            ratio,
            interval,
            protocol: RatioProtocol::EqualBatch,
            batch: 256,
            baseline_batch: 256,
        }),
        ..Evidence::default()
    }
}

#[test]
fn ratio_on_the_claim_s_hardware() {
    says(&judge(&ratio_claim(), &timed(1.5, 0.05)), Outcome::Reproduced, "a speed-up of 1.50x");
    assert_eq!(judge(&ratio_claim(), &timed(3.0, 0.05)).outcome, Outcome::Reproduced);
    says(&judge(&ratio_claim(), &timed(1.45, 0.05)), Outcome::Inconclusive, "More timing rounds");
    says(&judge(&ratio_claim(), &timed(0.84, 0.05)), Outcome::NotReproduced, "a slow-down, 0.840x");
}

#[test]
fn ratio_elsewhere_is_shown_and_not_judged() {
    let with = |change: fn(&mut Evidence)| {
        let mut evidence = timed(1.5, 0.05);
        change(&mut evidence);
        judge(&ratio_claim(), &evidence)
    };
    for (words, change) in [
        ("ours is 2 cores", (|e| e.hardware = Some("2 cores".into())) as fn(&mut Evidence)),
        ("emulated: its speed is not judged", |e| e.precision = Some(Precision::Bf16Emulated)),
        ("proved to compute its products in tf32", |e| e.baseline_precision = Some(Precision::Tf32)),
        ("not proved to be fp32", |e| e.baseline_precision = None),
        ("batches differ: 256 against 128", |e| e.speed.as_mut().unwrap().baseline_batch = 128),
        ("different protocols", |e| e.speed.as_mut().unwrap().protocol = RatioProtocol::AsPublished),
    ] {
        let verdict = with(change);
        says(&verdict, Outcome::NotComparable, words);
        assert_eq!(verdict.measured, Some(1.5));
        assert!(verdict.explanation.contains("1.50x"), "{}", verdict.explanation);
    }
    says(&with(|e| e.speed = None), Outcome::NotRun, "not timed");
    // A CPU that the claim itself names: under the present rules, FP16 is still emulated there.
    let processor = || Some("Xeon Processor".to_owned());
    let on_it = ClaimSpec { hardware: processor(), ..ratio_claim() };
    let evidence = Evidence { hardware: processor(), ..timed(1.5, 0.05) };
    assert_eq!(judge(&on_it, &evidence).outcome, Outcome::Reproduced, "by the first rules");
    says(
        &rejudge("synthetic", &on_it, &evidence),
        Outcome::NotComparable,
        "emulated: its speed is not judged",
    );
    let whole_runs = ClaimSpec { metric: "time-to-train".into(), ..ratio_claim() };
    says(&judge(&whole_runs, &timed(1.6, 0.05)), Outcome::NotComparable, "the time of whole runs");
}
