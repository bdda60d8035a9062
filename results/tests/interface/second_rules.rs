//! The changes of the present judging rules: which spread counts, what one score can prove, which
//! level is left, and margins relative to the error. The numbers are worked out by hand.

use serde_json::{Value, json};
use zoo_recipes::ClaimSpec;
use zoo_results::statistics::{LookPlan, normal_quantile, t_quantile};
use zoo_results::verdict::{
    Evidence, Interval, Outcome, Precision, RunScore, SeedsNeeded, SigmaSource, Spent, SpentLook,
    StatedSpread, Verdict, judge, rejudge,
};

const SCORES: [f64; 3] = [41.0, 41.1, 40.9];

fn claim(fields: Value) -> ClaimSpec {
    let mut whole =
        json!({"kind": "value", "metric": "bleu", "value": 41.0, "margin": 0.5, "source": "a test"});
    whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn measured(scores: &[f64]) -> Evidence {
    Evidence {
        external: true,
        plan: LookPlan::fixed(scores.len() as u32),
        runs: scores.iter().enumerate().map(|(i, s)| RunScore::scored(i as u64 + 1, *s)).collect(),
        ..Evidence::default()
    }
}

fn row(sd: f64, freedom: Option<u32>, carried: bool) -> Option<StatedSpread> {
    Some(StatedSpread { row: "a-row".into(), sd, freedom, carried })
}

fn half(verdict: &Verdict) -> f64 {
    verdict.shortfall_high.unwrap() - verdict.shortfall.unwrap()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

fn says(verdict: &Verdict, outcome: Outcome, words: &str) {
    assert_eq!(verdict.outcome, outcome, "{}", verdict.explanation);
    assert!(verdict.explanation.contains(words), "`{words}` is not in `{}`", verdict.explanation);
}

#[test]
fn one_score_counts_a_stated_spread_three_times() {
    let own = judge(&claim(json!({})), &Evidence { spread: row(0.05, Some(4), false), ..measured(&[41.0]) });
    close(half(&own), 3.0 * t_quantile(0.95, 4.0) * 0.05);
    says(&own, Outcome::Reproduced, "sd 0.0500 of the row a-row, of this very system; 3 times that");
    assert_eq!((own.sigma_source, own.spread.as_deref()), (Some(SigmaSource::Measured), Some("a-row")));
    // sqrt(4 / chi2_0.10(4)), chi2_0.10(4) = 1.06362.
    let carried =
        judge(&claim(json!({})), &Evidence { spread: row(0.05, Some(4), true), ..measured(&[41.0]) });
    let upper = 0.05 * (4.0f64 / 1.063_623_216_792_2).sqrt();
    close(half(&carried), 3.0 * normal_quantile(0.95) * upper);
    says(&carried, Outcome::Reproduced, "carried over from another system, upper limit 0.0970");
    assert_eq!(carried.sigma_source, Some(SigmaSource::Carried));
    let published = judge(&claim(json!({"sigma": 0.05, "n": 32})), &measured(&[41.0]));
    close(half(&published), 3.0 * t_quantile(0.95, 31.0) * 0.05);
}

#[test]
fn several_scores_count_the_larger_of_their_own_spread_and_the_stated_one() {
    // The sample's own: 0.1 with 2 degrees of freedom.
    let own = t_quantile(0.95, 2.0) * 0.1 / 3f64.sqrt();
    let with = |sd: f64| {
        judge(&claim(json!({})), &Evidence { spread: row(sd, Some(4), false), ..measured(&SCORES) })
    };
    let narrow = with(0.01);
    close(half(&narrow), own);
    assert_eq!((narrow.sigma_source, narrow.spread.as_deref()), (Some(SigmaSource::Sample), None));
    let wide = with(0.5);
    close(half(&wide), t_quantile(0.95, 4.0) * 0.5 / 3f64.sqrt());
    assert_eq!(wide.sigma_source, Some(SigmaSource::Measured));
    assert!(wide.explanation.contains("a-row") && !wide.explanation.contains("3 times"), "{wide:?}");
    // A published sigma and a row: the wider one is used.
    let both = judge(
        &claim(json!({"sigma": 0.01, "n": 8})),
        &Evidence { spread: row(0.5, Some(14), false), ..measured(&[41.0]) },
    );
    close(half(&both), 3.0 * t_quantile(0.95, 14.0) * 0.5);
}

#[test]
fn what_was_measured_nowhere_concludes_nothing_by_itself() {
    for (fields, spread, why) in [
        (json!({"assumed_sigma": 0.01}), None, "an assumed sigma was measured nowhere"),
        (json!({"sigma": 0.01}), None, "the published sigma is of an unknown number of runs"),
        (json!({}), row(0.01, None, false), "the row's number of runs is not known"),
    ] {
        for score in [41.0, 20.0] {
            let verdict =
                judge(&claim(fields.clone()), &Evidence { spread: spread.clone(), ..measured(&[score]) });
            says(&verdict, Outcome::Inconclusive, why);
            assert!(matches!(verdict.seeds_needed, Some(SeedsNeeded::NewPlan(_))), "{verdict:?}");
            assert_eq!(verdict.alpha, None, "a look that cannot conclude spends nothing");
        }
        // The scores' own spread supports a conclusion; an assumed spread can only widen it.
        let several = judge(&claim(fields), &Evidence { spread, ..measured(&SCORES) });
        assert_eq!(several.outcome, Outcome::Reproduced, "{}", several.explanation);
    }
    let wide = judge(&claim(json!({"assumed_sigma": 5.0})), &measured(&SCORES));
    says(&wide, Outcome::Inconclusive, "sigma assumed 5.00");
}

#[test]
fn equal_scores_have_no_width_of_their_own() {
    let alone = judge(&claim(json!({})), &measured(&[41.0; 3]));
    says(&alone, Outcome::Inconclusive, "3 equal scores show no spread");
    // A stated spread counts as for a single score.
    let stated =
        judge(&claim(json!({})), &Evidence { spread: row(0.1, Some(9), false), ..measured(&[41.0; 3]) });
    close(half(&stated), 3.0 * t_quantile(0.95, 9.0) * 0.1 / 3f64.sqrt());
}

#[test]
fn a_bound_needs_a_spread_and_a_resampled_test_set() {
    let bound = claim(json!({"kind": "bound", "value": 90.0, "margin": null}));
    let mut evidence = measured(&[99.0]);
    says(&judge(&bound, &evidence), Outcome::Inconclusive, "one score shows no spread between seeds");
    evidence.runs[0].interval = Some(Interval { low: 98.0, high: 99.6, level: 0.95 });
    says(&judge(&bound, &evidence), Outcome::Inconclusive, "one score shows no spread between seeds");
    evidence.spread = row(0.76, Some(4), false);
    let whole = judge(&bound, &evidence);
    let test = normal_quantile(0.95) / normal_quantile(0.975);
    close(half(&whole), test.hypot(3.0 * t_quantile(0.95, 4.0) * 0.76));
    assert_eq!(whole.outcome, Outcome::Reproduced);
    evidence.runs[0].interval = None;
    says(&judge(&bound, &evidence), Outcome::Inconclusive, "the test set was not resampled");
}

#[test]
fn seeds_needed_follow_the_rule() {
    // 0.4 inside the margin: with sd 0.2 and Student's t over n seeds, plus 0.84 sd / sqrt(n) for a
    // probability of 80 %.
    let evidence = Evidence { spread: row(0.2, Some(31), false), ..measured(&[40.9]) };
    let open = judge(&claim(json!({})), &evidence);
    let Some(SeedsNeeded::NewPlan(n)) = open.seeds_needed else { panic!("{open:?}") };
    let settles =
        |n: f64| t_quantile(0.95, n - 1.0).max(t_quantile(0.95, 31.0)) + 0.841_621_2 <= 0.4 / 0.2 * n.sqrt();
    assert!(settles(f64::from(n)) && !settles(f64::from(n - 1)), "{n}");
    // This look spent the whole level, so the seeds are those of another study.
    assert!(open.explanation.contains("in a study of its own, planned before its first result"), "{open:?}");
    let scheduled = judge(&claim(json!({})), &Evidence { plan: LookPlan::default(), ..evidence });
    assert!(matches!(scheduled.seeds_needed, Some(SeedsNeeded::InPlan(_))), "{scheduled:?}");
}

fn spent(alpha: f64) -> Option<Spent> {
    let look = SpentLook { time: "2026-01-31T23:59:59Z".into(), plan: LookPlan::fixed(1), seeds: 1, alpha };
    Some(Spent { alpha, looks: vec![look] })
}

#[test]
fn what_earlier_plans_spent_is_not_there_any_more() {
    let whole = judge(&claim(json!({})), &measured(&SCORES));
    assert_eq!(whole.outcome, Outcome::Reproduced);
    let part = judge(&claim(json!({})), &Evidence { spent: spent(0.03), ..measured(&SCORES) });
    close(part.alpha.unwrap(), 0.02);
    close(half(&part), t_quantile(0.98, 2.0) * 0.1 / 3f64.sqrt());
    assert!(part.notes.iter().any(|note| note.contains("earlier plans spent 3.0 %")), "{:?}", part.notes);
    let nothing = judge(&claim(json!({})), &Evidence { spent: spent(0.05), ..measured(&SCORES) });
    says(&nothing, Outcome::Inconclusive, "were spent: plan 1 (1 seed on 2026-01-31T23:59:59Z: 5.0 %)");
    assert_eq!((nothing.measured, nothing.alpha), (Some(41.0), None));
}

#[test]
fn a_margin_relative_to_the_error() {
    // The target's error is 2 and half of it is 1; 97.2 falls short by 0.8.
    let fields = json!({"value": 98.0, "margin": null, "margin_of_error": 0.5, "direction": "higher"});
    let evidence = Evidence { spread: row(0.02, Some(31), false), ..measured(&[97.2]) };
    let verdict = judge(&claim(fields.clone()), &evidence);
    close(verdict.margin.unwrap(), 1.0);
    assert_eq!(verdict.outcome, Outcome::Reproduced);
    let short = Evidence { spread: row(0.02, Some(31), false), ..measured(&[96.5]) };
    assert_eq!(judge(&claim(fields), &short).outcome, Outcome::NotReproduced);
    // If lower is better, the score is the error.
    let rate = claim(
        json!({"metric": "wer", "value": 4.0, "margin": null, "margin_of_error": 0.05, "direction": "lower"}),
    );
    close(judge(&rate, &measured(&[4.1])).margin.unwrap(), 0.2);
}

#[test]
fn parity_near_the_end_of_the_scale_may_not_double_the_error() {
    let parity = |fields: Value| {
        let mut whole = json!({"kind": "parity", "value": null, "direction": "higher", "arm": "mixed"});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        claim(whole)
    };
    let pair = |ours: f64, theirs: f64| {
        let around = |score: f64| Some(Interval { low: score - 0.05, high: score + 0.05, level: 0.95 });
        let baseline = RunScore { interval: around(theirs), ..RunScore::scored(1, theirs) };
        let run = RunScore { difference: around(ours - theirs), ..RunScore::scored(1, ours) };
        Evidence {
            arm: Some("mixed".into()),
            baseline: Some("fp32".into()),
            precision: Some(Precision::Fp16),
            runs: vec![run],
            baseline_runs: vec![baseline],
            spread: row(0.02, Some(31), false),
            ..measured(&[ours])
        }
    };
    let (absolute, relative) =
        (parity(json!({"margin": 2.0})), parity(json!({"margin": null, "margin_of_error": 0.5})));
    // 1.5 points at 98.5: the error doubles.
    assert_eq!(judge(&absolute, &pair(97.0, 98.5)).outcome, Outcome::Reproduced);
    assert_eq!(judge(&relative, &pair(97.0, 98.5)).outcome, Outcome::NotReproduced);
    let close_by = judge(&relative, &pair(98.4, 98.5));
    assert_eq!(close_by.outcome, Outcome::Reproduced, "{}", close_by.explanation);
    close(close_by.margin.unwrap(), 0.75);
    close(half(&close_by), 3.0 * t_quantile(0.95, 31.0) * 0.02 * 3.25f64.sqrt());
    // The margin's own test-set error counts as well.
    let note = close_by.notes.iter().find(|note| note.contains("resampling the test set")).unwrap();
    let limit = 0.1 + 1.5 * 0.05 * normal_quantile(0.95) / normal_quantile(0.975);
    assert!(note.contains(&format!("to {limit:.3} ")), "{note}, {limit}");
}

#[test]
fn a_table_that_changes_leaves_old_verdicts_alone() {
    let named = claim(json!({"spread": "gnmt-v2"}));
    let old = Evidence { spread: row(0.01, Some(31), false), ..measured(&[41.0]) };
    close(half(&judge(&named, &old)), 3.0 * t_quantile(0.95, 31.0) * 0.01);
    // When judged again, the present row counts: measured on this system for its own recipe,
    // carried over for any other.
    close(half(&rejudge("gnmt-v2", &named, &old)), 3.0 * t_quantile(0.95, 31.0) * 0.131);
    assert_eq!(rejudge("gnmt", &named, &old).sigma_source, Some(SigmaSource::Carried));
}
