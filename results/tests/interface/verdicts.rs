//! Every outcome of each kind of claim under the first rules, with numbers worked out by hand. The
//! changes of the present rules are in `second_rules.rs`.

use serde_json::{Value, json};
use zoo_recipes::ClaimSpec;
use zoo_results::metrics::{MetricValue, ScoreOptions, Scorer, score};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{
    ErrorCount, Evidence, Interval, Outcome, PointScores, Precision, Rules, RunScore, RunStatus, SeedsNeeded,
    SigmaSource, Verdict,
};

/// z of the one-sided 95 % bound.
pub(crate) const Z: f64 = 1.644_853_626_951_472_7;

/// Judges by the first rules, which apply to records that name no rules.
pub(crate) fn judge(claim: &ClaimSpec, evidence: &Evidence) -> Verdict {
    zoo_results::verdict::judge(claim, &Evidence { rules: Rules::First, ..evidence.clone() })
}

pub(crate) fn claim(fields: Value) -> ClaimSpec {
    let mut whole = json!({"metric": "bleu", "source": "a test"});
    whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn value_claim() -> ClaimSpec {
    claim(
        json!({"kind": "value", "value": 41.02, "margin": 0.5, "assumed_sigma": 0.2, "arm": "fp32", "eval": "test",
        "signature": "nrefs:1|case:lc|tok:none"}),
    )
}

fn measured(scores: &[f64]) -> Evidence {
    Evidence {
        arm: Some("fp32".into()),
        eval: Some("test".into()),
        signature: Some("nrefs:1|case:lc|tok:none|version:2.6.0".into()),
        precision: Some(Precision::Fp32),
        plan: LookPlan::fixed(scores.len() as u32),
        runs: scores.iter().enumerate().map(|(i, s)| RunScore::scored(i as u64 + 1, *s)).collect(),
        ..Evidence::default()
    }
}

pub(crate) fn close(a: Option<f64>, b: f64) {
    assert!((a.unwrap() - b).abs() < 1e-9, "{a:?} is not {b}");
}

pub(crate) fn says(verdict: &Verdict, outcome: Outcome, words: &str) {
    assert_eq!(verdict.outcome, outcome, "{}", verdict.explanation);
    assert!(verdict.explanation.contains(words), "`{words}` is not in `{}`", verdict.explanation);
}

#[test]
fn value_with_an_assumed_sigma() {
    let verdict = judge(&value_claim(), &measured(&[40.9]));
    says(&verdict, Outcome::Reproduced, "sigma assumed 0.200");
    close(verdict.shortfall, 0.12);
    close(verdict.shortfall_high, 0.12 + Z * 0.2);
    assert_eq!(verdict.sigma_source, Some(SigmaSource::Assumed));
    // 0.12 + 0.329 is inside 0.5; 0.9 - 0.329 is outside; 0.6 is neither.
    says(&judge(&value_claim(), &measured(&[40.12])), Outcome::NotReproduced, "outside the margin 0.500");
    let open = judge(&value_claim(), &measured(&[40.42]));
    says(&open, Outcome::Inconclusive, "both sides of the margin");
    // A result better than the claim never fails.
    for score in [41.02, 45.0, 100.0] {
        assert_eq!(judge(&value_claim(), &measured(&[score])).outcome, Outcome::Reproduced);
    }
    // This also holds if lower is better.
    let wer = claim(json!({"kind": "value", "metric": "wer", "value": 3.4, "margin": 0.1, "sigma": 0.1}));
    let run = |score| Evidence {
        runs: vec![RunScore::scored(1, score)],
        plan: LookPlan::fixed(1),
        ..Evidence::default()
    };
    assert_eq!(judge(&wer, &run(0.0)).outcome, Outcome::Reproduced);
    assert_eq!(judge(&wer, &run(3.8)).outcome, Outcome::NotReproduced);
}

#[test]
fn seeds_that_would_settle_it() {
    // 0.2 from the margin with sigma 0.2: with sigma known, (1.645 + 0.842)^2 = 6.2 seeds are
    // needed, so the t quantile requires 8.
    let open = judge(&value_claim(), &measured(&[40.72]));
    let Some(SeedsNeeded::NewPlan(n)) = open.seeds_needed else { panic!("{open:?}") };
    assert!((7..=8).contains(&n), "{n}");
    assert!(open.explanation.contains(&format!("--seeds {n}")));
    // Exactly on the margin no number of seeds settles it.
    let never = judge(&value_claim(), &measured(&[40.52]));
    assert_eq!(never.seeds_needed, Some(SeedsNeeded::None));
    // If a scheduled look is sufficient, that look is named.
    let scheduled = judge(&value_claim(), &Evidence { plan: LookPlan::default(), ..measured(&[40.82]) });
    assert!(matches!(scheduled.seeds_needed, Some(SeedsNeeded::InPlan(3 | 5 | 10))), "{scheduled:?}");
    // Without any sigma a single score decides nothing.
    let blind = judge(&claim(json!({"kind": "value", "value": 41.02, "margin": 0.5})), &measured(&[41.02]));
    assert_eq!((blind.outcome, blind.seeds_needed), (Outcome::Inconclusive, Some(SeedsNeeded::NewPlan(5))));
}

#[test]
fn sigma_of_the_sample_from_five_seeds_on() {
    let source =
        |n: usize| judge(&value_claim(), &measured(&[41.0, 41.1, 40.9, 41.2, 40.8][..n])).sigma_source;
    assert_eq!((source(4), source(5)), (Some(SigmaSource::Assumed), Some(SigmaSource::Sample)));
    let wild = judge(&value_claim(), &measured(&[44.0, 38.0, 41.0]));
    assert!(wild.notes.iter().any(|note| note.contains("spread by 3.00")), "{:?}", wild.notes);
}

#[test]
fn looks_that_are_planned() {
    let schedule =
        |scores: &[f64]| judge(&value_claim(), &Evidence { plan: LookPlan::default(), ..measured(scores) });
    // Two seeds are not a planned look: the first look stands, and the second seed waits.
    let two = schedule(&[40.8, 30.0]);
    assert_eq!(two.seeds, 1);
    assert!(two.notes.iter().any(|note| note.contains("next look is at 3")), "{:?}", two.notes);
    // The first look's level is that of the spending function, 0.05 ln(1.1718).
    close(two.alpha, 0.05 * 1.171_828_182_845_904_5f64.ln());
    // The first look settles it, whatever follows.
    let settled = schedule(&[41.5, 20.0, 20.0]);
    assert_eq!((settled.outcome, settled.seeds), (Outcome::Reproduced, 1));
    let missing = judge(&value_claim(), &Evidence { plan: LookPlan::fixed(3), ..measured(&[41.0]) });
    says(&missing, Outcome::NotRun, "1 of the 3 seeds");
}

#[test]
fn runs_without_a_score() {
    let mut evidence = measured(&[41.0, 41.0]);
    evidence.runs[1] = RunScore { seed: Some(2), status: RunStatus::Diverged, ..RunScore::default() };
    says(&judge(&value_claim(), &evidence), Outcome::NotReproduced, "1 of 2 seeds diverged (seed 2)");
    evidence.runs[1].status = RunStatus::Missing;
    says(&judge(&value_claim(), &evidence), Outcome::NotRun, "1 of the 2 seeds");
    says(&judge(&value_claim(), &Evidence::default()), Outcome::NotRun, "no run");
}

#[test]
fn conditions_that_are_not_met() {
    let with = |change: fn(&mut Evidence)| {
        let mut evidence = measured(&[41.0]);
        change(&mut evidence);
        judge(&value_claim(), &evidence)
    };
    for (words, change) in [
        ("set train.lr", (|e| e.overrides = vec!["train.lr".into()]) as fn(&mut Evidence)),
        ("tier smoke", |e| e.tier = Some("smoke".into())),
        ("evaluation set test, ours is valid", |e| e.eval = Some("valid".into())),
        ("tok:none, ours has tok:13a", |e| e.signature = Some("nrefs:1|case:lc|tok:13a".into())),
        ("signature nrefs:1|case:lc|tok:none; ours is not known", |e| e.signature = None),
        ("arm fp32, ours is mixed", |e| (e.arm, e.precision) = (Some("mixed".into()), Some(Precision::Bf16))),
        ("proved to compute its products in tf32", |e| e.precision = Some(Precision::Tf32)),
    ] {
        let verdict = with(change);
        says(&verdict, Outcome::NotComparable, words);
        // The measured value is reported beside it.
        assert!(
            verdict.measured == Some(41.0) && verdict.explanation.contains("measured 41.00"),
            "{verdict:?}"
        );
    }
    assert_eq!(with(|e| e.tier = Some("full".into())).outcome, Outcome::Reproduced);
    // External scores are assumed to meet the claim's conditions, and a note says so.
    let external = with(|e| (e.external, e.signature, e.precision) = (true, None, None));
    assert_eq!(external.outcome, Outcome::Reproduced);
    assert!(external.notes.iter().any(|note| note.contains("signature not given")), "{:?}", external.notes);
}

#[test]
fn bound_by_the_test_set() {
    let bound = claim(json!({"kind": "bound", "value": 90.0, "extends": "the RNN of the same toy"}));
    let scored = |score, low, high| {
        let mut evidence = measured(&[score]);
        evidence.runs[0].interval = Some(Interval { low, high, level: 0.95 });
        judge(&bound, &evidence)
    };
    let sure = scored(99.0, 98.0, 99.6);
    says(&sure, Outcome::Reproduced, "9.00 better than the bound 90.00");
    assert!(sure.notes.iter().any(|note| note.contains("the RNN of the same toy")));
    // A 95 % limit at distance 1.0 is a one-sided 95 % limit at distance 1.0 * 1.645 / 1.960.
    close(sure.shortfall_high, -9.0 + Z / 1.959_963_984_540_054);
    says(&scored(90.5, 89.0, 92.0), Outcome::Inconclusive, "the test set is too small");
    assert_eq!(scored(80.0, 79.0, 81.0).outcome, Outcome::NotReproduced);
    // Without an interval and a sigma, the uncertainty of the score is unknown.
    says(&judge(&bound, &measured(&[99.0])), Outcome::Inconclusive, "neither a sigma nor an interval");
}

#[test]
fn bound_on_an_error_rate_near_zero() {
    let bound = claim(json!({"kind": "bound", "metric": "wer", "value": 1.0}));
    let counted = |errors, total| {
        let score = 100.0 * errors as f64 / total as f64;
        let counts = Some(ErrorCount { errors, total, scale: 100.0 });
        let run = RunScore { counts, ..RunScore::scored(1, score) };
        judge(&bound, &Evidence { runs: vec![run], plan: LookPlan::fixed(1), ..Evidence::default() })
    };
    // No errors in n words: at most 1 - 0.05^(1/n). 298 words leave 1.0003 %, 299 leave 0.997 %.
    assert_eq!(counted(0, 298).outcome, Outcome::Inconclusive);
    let enough = counted(0, 299);
    assert_eq!(enough.outcome, Outcome::Reproduced);
    close(enough.shortfall_high, 100.0 * (1.0 - 0.05f64.powf(1.0 / 299.0)) - 1.0);
    assert_eq!(counted(20, 299).outcome, Outcome::NotReproduced);
}

/// One word of 240: the resolution of a toy set of eight recordings.
#[test]
fn bound_on_one_word() {
    let bound = claim(json!({"kind": "bound", "metric": "wer", "value": 0.42}));
    let run = |errors: u64, interval| {
        let counts = Some(ErrorCount { errors, total: 240, scale: 100.0 });
        RunScore { counts, interval, ..RunScore::scored(1, 100.0 * errors as f64 / 240.0) }
    };
    let judged = |errors, interval| {
        judge(
            &bound,
            &Evidence { runs: vec![run(errors, interval)], plan: LookPlan::fixed(1), ..Evidence::default() },
        )
    };
    // 1 of 240 is 0.4167 %, inside the bound by a thirtieth of a word; its limit is 1.96 %.
    let one = judged(1, None);
    says(&one, Outcome::Inconclusive, "No 10000000 words would settle it: too close to the margin");
    assert!((one.shortfall_high.unwrap() - 1.54).abs() < 0.01 && one.units_needed.is_none(), "{one:?}");
    // Zero errors are not proof either; the explanation states how many words are needed.
    let none = judged(0, None);
    says(&none, Outcome::Inconclusive, "About 712 words with this rate would probably settle it.");
    assert_eq!(none.units_needed, Some(712));
    close(none.shortfall_high, 100.0 * (1.0 - 0.05f64.powf(1.0 / 240.0)) - 0.42);
    // A bootstrap without errors has no width; the exact limits remain.
    let bare = judged(0, Some(Interval { low: 0.0, high: 0.0, level: 0.95 }));
    assert_eq!((bare.outcome, bare.shortfall_high), (none.outcome, none.shortfall_high));
    says(&judged(8, None), Outcome::NotReproduced, "2.91 worse than the bound 0.420");
    assert_eq!(judged(6, None).outcome, Outcome::NotReproduced);
    // The wider limit counts: errors in bunches show only in the resampled interval.
    let bunched = judged(6, Some(Interval { low: 0.0, high: 8.0, level: 0.95 }));
    says(&bunched, Outcome::Inconclusive, "words with this rate would probably settle it");
    assert!(bunched.units_needed > Some(240) && bunched.units_needed < Some(1000), "{bunched:?}");
    // Better than the bound, and enough words: settled.
    let enough = RunScore {
        counts: Some(ErrorCount { errors: 1, total: 2400, scale: 100.0 }),
        ..RunScore::scored(1, 100.0 / 2400.0)
    };
    let enough =
        judge(&bound, &Evidence { runs: vec![enough], plan: LookPlan::fixed(1), ..Evidence::default() });
    assert_eq!(enough.outcome, Outcome::Reproduced);
}

#[test]
fn counts_come_from_an_error_rate() {
    let value = |signature: &str, reference: &str| {
        let scorer = Scorer::from_signature(signature).unwrap();
        score(&["a b c".into()], &[vec![reference.into()]], &ScoreOptions { scorer, resampling: None })
            .unwrap()
    };
    let wer = "metric:wer|nrefs:1|case:lc|space:collapse|align:jiwer";
    assert_eq!(
        ErrorCount::of(&value(wer, "a x c d")),
        Some(ErrorCount { errors: 2, total: 4, scale: 100.0 })
    );
    assert_eq!(ErrorCount::of(&value(wer, "")), None);
    assert_eq!(ErrorCount::of(&value("metric:exact-match|nrefs:1|case:lc", "a b c")), None);
    let kept: MetricValue =
        serde_json::from_str(&serde_json::to_string(&value(wer, "a b")).unwrap()).unwrap();
    assert_eq!(ErrorCount::of(&kept), Some(ErrorCount { errors: 1, total: 2, scale: 100.0 }));
}

#[test]
fn divergence() {
    let diverges = claim(json!({"kind": "diverges", "metric": "loss", "arm": "fp16", "eval": "test"}));
    let run = |seed, first, last| RunScore {
        first_loss: Some(first),
        last_loss: Some(last),
        ..RunScore { seed: Some(seed), ..RunScore::default() }
    };
    let of = |runs: Vec<RunScore>| {
        judge(
            &diverges,
            &Evidence { arm: Some("fp16".into()), runs, plan: LookPlan::fixed(1), ..Evidence::default() },
        )
    };
    says(&of(vec![run(1, 9.0, f64::NAN)]), Outcome::Reproduced, "non-finite");
    says(&of(vec![run(1, 9.0, 12.0)]), Outcome::Reproduced, "loss 9.00 to 12.00");
    says(&of(vec![run(1, 9.0, 2.0)]), Outcome::NotReproduced, "0 of 1 seed diverged");
    assert_eq!(of(vec![run(1, 9.0, 2.0), run(2, 9.0, f64::INFINITY)]).outcome, Outcome::Inconclusive);
    assert_eq!(of(vec![]).outcome, Outcome::NotRun);
    // A loss that JSON has no number for survives in the ledger.
    let evidence = Evidence { runs: vec![run(1, 9.0, f64::NAN)], ..Evidence::default() };
    let read: Evidence = serde_json::from_str(&serde_json::to_string(&evidence).unwrap()).unwrap();
    assert!(read.runs[0].last_loss.unwrap().is_nan());
}

#[test]
fn kinds_that_are_not_judged_yet_and_claims_that_cannot_be() {
    for kind in ["relation", "memory"] {
        says(
            &judge(&claim(json!({"kind": kind})), &measured(&[41.0])),
            Outcome::NotRun,
            "kind not judged yet",
        );
    }
    for (fields, words) in [
        (json!({"kind": "value", "margin": 0.5}), "no value"),
        (json!({"kind": "value", "value": 1.0}), "no margin"),
        (json!({"kind": "value", "value": 1.0, "margin": 0.5, "metric": "novelty"}), "which way is better"),
        (json!({"kind": "value", "value": 1.0, "margin": -0.5}), "margin is -0.5"),
        (json!({"kind": "parity"}), "no margin"),
    ] {
        says(&judge(&claim(fields), &measured(&[41.0])), Outcome::NotRun, words);
    }
    says(&judge(&value_claim(), &measured(&[f64::NAN])), Outcome::NotRun, "not finite");
}

#[test]
fn verdicts_survive_json() {
    for evidence in [
        measured(&[40.9]),
        measured(&[40.42]),
        measured(&[41.0, 41.1, 40.9, 41.2, 40.8]),
        Evidence::default(),
    ] {
        let verdict = judge(&value_claim(), &evidence);
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
        let text = serde_json::to_string(&evidence).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), evidence);
    }
    let text = serde_json::to_string(&judge(&value_claim(), &measured(&[30.0]))).unwrap();
    assert!(text.starts_with("{\"outcome\":\"NOT-REPRODUCED\""), "{text}");
}

/// A trajectory like GNMT's: three points with their spreads.
fn trajectory_claim() -> ClaimSpec {
    claim(json!({"kind": "trajectory", "direction": "higher", "arm": "fp32", "clock": "epochs", "points": [
        {"at": 1, "value": 20.0, "sigma": 0.2},
        {"at": 2, "value": 22.0, "sigma": 0.3},
        {"at": 4, "value": 24.0, "sigma": 0.1},
    ]}))
}

/// Scores of each seed, by point; a seed without a score is missing.
fn on_the_way(points: &[(u64, &[f64])], seeds: u32) -> Evidence {
    let run = |scores: &[f64], seed: u32| match scores.get(seed as usize) {
        Some(score) => RunScore::scored(u64::from(seed), *score),
        None => RunScore { seed: Some(seed.into()), status: RunStatus::Missing, ..RunScore::default() },
    };
    let at = |(at, scores): &(u64, &[f64])| PointScores {
        at: *at,
        runs: (0..seeds).map(|seed| run(scores, seed)).collect(),
    };
    let points = points.iter().map(at).collect();
    Evidence { arm: Some("fp32".into()), points, plan: LookPlan::fixed(seeds), ..Evidence::default() }
}

#[test]
fn all_points_of_a_trajectory_have_to_hold() {
    let claim = trajectory_claim();
    // The margin is two sigmas and the bound is 1.645 sigmas, so a shortfall of up to 0.355 sigmas
    // is allowed.
    let good = judge(&claim, &on_the_way(&[(1, &[19.95]), (2, &[22.3]), (4, &[23.97])], 1));
    says(&good, Outcome::Reproduced, "All of 3 of 3 points lie inside; nearest to the edge: at epoch 4");
    close(good.margin, 0.2);
    close(good.shortfall_high, 0.03 + 0.1 * Z);
    assert_eq!((good.at, good.published, good.seeds), (Some(4), Some(24.0), 1));
    // A single undecided point makes the claim undecided, and a single failing point makes it fail.
    let open = judge(&claim, &on_the_way(&[(1, &[19.95]), (2, &[21.8]), (4, &[24.0])], 1));
    says(&open, Outcome::Inconclusive, "2 of 3 points lie inside; least sure: at epoch 2");
    assert!(open.seeds_needed.is_some());
    let bad = judge(&claim, &on_the_way(&[(1, &[19.95]), (2, &[20.0]), (4, &[24.0])], 1));
    says(&bad, Outcome::NotReproduced, "1 of 3 points lie outside; farthest: at epoch 2");
    // A third of 5 % is a quantile of 2.128: a shortfall of 4.1 sigmas is not enough, but with
    // 1.645 it would be.
    let nearly = judge(&claim, &on_the_way(&[(1, &[20.0 - 4.1 * 0.2]), (2, &[22.0]), (4, &[24.0])], 1));
    assert_eq!(nearly.outcome, Outcome::Inconclusive);
    let beyond = judge(&claim, &on_the_way(&[(1, &[20.0 - 4.2 * 0.2]), (2, &[22.0]), (4, &[24.0])], 1));
    assert_eq!(beyond.outcome, Outcome::NotReproduced);
    close(beyond.alpha, 0.05 / 3.0);
}

#[test]
fn a_trajectory_that_was_not_seen_whole_may_fail_and_cannot_be_reproduced() {
    let claim = trajectory_claim();
    let part = judge(&claim, &on_the_way(&[(1, &[20.0]), (2, &[22.0]), (4, &[])], 1));
    says(&part, Outcome::Inconclusive, "2 of 3 points were scored");
    assert!(part.notes.iter().any(|note| note.contains("not scored at epoch 4")));
    says(
        &judge(&claim, &on_the_way(&[(1, &[10.0]), (2, &[]), (4, &[])], 1)),
        Outcome::NotReproduced,
        "epoch 1",
    );
    says(&judge(&claim, &on_the_way(&[(1, &[])], 1)), Outcome::NotRun, "no run was scored");
    says(&judge(&claim, &on_the_way(&[], 1)), Outcome::NotRun, "no run was scored");
    // The second seed is still awaited.
    says(
        &judge(&claim, &on_the_way(&[(1, &[10.0]), (2, &[10.0]), (4, &[10.0])], 2)),
        Outcome::NotRun,
        "planned look",
    );
    let mut diverged = on_the_way(&[(1, &[20.0]), (2, &[])], 1);
    diverged.points[1].runs[0].status = RunStatus::Diverged;
    says(&judge(&claim, &diverged), Outcome::NotReproduced, "diverged");
    let mut smoke = on_the_way(&[(1, &[20.0]), (2, &[22.0]), (4, &[24.0])], 1);
    smoke.tier = Some("smoke".into());
    says(&judge(&claim, &smoke), Outcome::NotComparable, "tier smoke");
    // A point with neither a margin nor a spread.
    let mut bare = trajectory_claim();
    bare.points[1].sigma = None;
    says(
        &judge(&bare, &on_the_way(&[(1, &[20.0]), (2, &[22.0]), (4, &[24.0])], 1)),
        Outcome::NotRun,
        "neither a margin",
    );
    bare.margin = Some(0.5);
    says(
        &judge(&bare, &on_the_way(&[(1, &[20.0]), (2, &[22.0]), (4, &[24.0])], 1)),
        Outcome::Inconclusive,
        "5 seeds",
    );
    bare.points[1].value = f64::NAN;
    assert_eq!(judge(&bare, &on_the_way(&[(1, &[20.0])], 1)).outcome, Outcome::NotRun);
}

#[test]
fn the_words_of_several_looks_have_their_plural_before_the_bracket() {
    let scores = [40.3, 40.6, 40.7];
    let verdict = judge(&value_claim(), &Evidence { plan: LookPlan::default(), ..measured(&scores) });
    says(&verdict, Outcome::Inconclusive, "its one-sided bounds (this look's level");
    assert!(!verdict.explanation.contains(")s"), "{}", verdict.explanation);
}

#[test]
fn a_collapsed_seed_is_named_beside_the_seeds_that_would_settle_it() {
    // The word error rates of yesno-tdnn's three seeds, one of which collapsed.
    let claim = claim(json!({"kind": "parity", "metric": "wer", "margin": 0.84, "arm": "mixed"}));
    let runs = |arm: &str, scores: [f64; 3]| -> Vec<RunScore> {
        let run = |(at, score): (usize, &f64)| RunScore {
            interval: Some(Interval { low: score - 0.4, high: score + 0.8, level: 0.95 }),
            difference: (arm == "mixed").then_some(Interval {
                low: score - 1.0,
                high: score + 1.0,
                level: 0.95,
            }),
            ..RunScore::scored(at as u64 + 1, *score)
        };
        scores.iter().enumerate().map(run).collect()
    };
    let evidence = |ours: [f64; 3], theirs: [f64; 3]| Evidence {
        runs: runs("mixed", ours),
        baseline_runs: runs("fp32", theirs),
        plan: LookPlan::fixed(3),
        ..Evidence::default()
    };
    let sound = [0.42, 0.42, 1.25];
    let verdict = judge(&claim, &evidence([0.83, 0.42, 83.75], sound));
    says(
        &verdict,
        Outcome::Inconclusive,
        "--seeds 21) would probably settle it. Collapsed: seed 3 of mixed with 83.75",
    );
    assert!(verdict.explanation.contains("(median 0.830)"), "{}", verdict.explanation);
    let verdict = judge(&claim, &evidence([0.83, 0.42, 83.75], [0.42, 72.0, 1.25]));
    says(
        &verdict,
        Outcome::Inconclusive,
        "seed 3 of mixed with 83.75 (median 0.830); seed 2 of fp32 with 72.00",
    );
    let verdict = judge(&claim, &evidence([0.83, 0.42, 2.5], sound));
    assert!(!verdict.explanation.contains("Collapsed"), "{}", verdict.explanation);
}
