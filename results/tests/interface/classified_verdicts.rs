//! Verdicts from records of classes and likelihoods.

use serde_json::json;
use zoo_recipes::ClaimSpec;
use zoo_results::ledger::difference;
use zoo_results::metrics::{MetricValue, Resampling, ScoreOptions, Scorer, score};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{ErrorCount, Evidence, Interval, Outcome, RunScore, Verdict, judge, judgeable};

const TOP1: &str = "metric:accuracy|nrefs:1|top:1|classes:10|ties:first";
const ERROR: &str = "metric:error|nrefs:1|top:1|classes:10|ties:first";

fn claim(fields: serde_json::Value) -> ClaimSpec {
    let mut all = json!({"eval": "test", "arm": "fp32", "sigma": 0.1, "n": 10, "source": "a test"});
    for (key, value) in fields.as_object().unwrap() {
        all[key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

/// Answers of which every `every`-th is wrong, and their references.
fn answers(records: usize, every: usize) -> (Vec<String>, Vec<String>) {
    let labels: Vec<String> = (0..records).map(|at| (at % 10).to_string()).collect();
    let answer = |at: usize| {
        let right = at % 10;
        let chosen = if at.is_multiple_of(every) { (right + 1) % 10 } else { right };
        json!({"scores": (0..10).map(|class| f64::from(u8::from(class == chosen))).collect::<Vec<_>>()})
            .to_string()
    };
    ((0..records).map(answer).collect(), labels)
}

fn measure(signature: &str, records: &[String], labels: &[String]) -> MetricValue {
    let options = ScoreOptions {
        scorer: Scorer::from_signature(signature).unwrap(),
        resampling: Some(Resampling::default()),
    };
    score(records, &[labels.to_vec()], &options).unwrap()
}

fn run(seed: u64, value: &MetricValue) -> RunScore {
    let interval = value.interval.unwrap();
    RunScore {
        interval: Some(Interval { low: interval.lower, high: interval.upper, level: interval.confidence }),
        counts: ErrorCount::of(value),
        ..RunScore::scored(seed, value.value)
    }
}

fn verdict(claim: &ClaimSpec, values: &[MetricValue]) -> Verdict {
    assert_eq!(judgeable(claim), Ok(()));
    let evidence = Evidence {
        arm: Some("fp32".into()),
        eval: Some("test".into()),
        signature: Some(values[0].signature.to_string()),
        runs: (1..).zip(values).map(|(seed, value)| run(seed, value)).collect(),
        plan: LookPlan::fixed(values.len() as u32),
        ..Evidence::default()
    };
    judge(claim, &evidence)
}

#[test]
fn a_top1_accuracy_of_records_is_held_against_a_published_value() {
    let seeds = |every: [usize; 3]| {
        every.map(|every| {
            let (records, labels) = answers(10_000, every);
            measure(TOP1, &records, &labels)
        })
    };
    let published = |value: f64| {
        claim(json!({"kind": "value", "metric": "top1", "signature": TOP1, "value": value, "margin": 0.5,
            "direction": "higher"}))
    };
    // 1 of 20, 1 of 20 and 1 of 21 are wrong: about 95.08 %.
    let good = verdict(&published(95.1), &seeds([20, 20, 21]));
    assert_eq!(good.outcome, Outcome::Reproduced, "{}", good.explanation);
    let bad = verdict(&published(97.0), &seeds([20, 20, 21]));
    assert_eq!(bad.outcome, Outcome::NotReproduced, "{}", bad.explanation);
    let five = ClaimSpec { signature: Some(TOP1.replace("top:1", "top:5")), ..published(95.1) };
    let unlike = verdict(&five, &seeds([20, 20, 21]));
    assert_eq!(unlike.outcome, Outcome::NotComparable, "{}", unlike.explanation);
}

#[test]
fn an_f1_of_records_is_held_against_a_published_value() {
    let f1 = "metric:f1|nrefs:1|average:macro|classes:10|ties:first";
    // These numbers are prime to 10: all classes have as many errors, and F1 is about the accuracy.
    let seeds = [21, 21, 23].map(|every| {
        let (records, labels) = answers(10_000, every);
        measure(f1, &records, &labels)
    });
    let published = |value: f64| {
        claim(json!({"kind": "value", "metric": "f1", "signature": f1, "value": value, "margin": 1.0,
            "direction": "higher"}))
    };
    let good = verdict(&published(95.3), &seeds);
    assert_eq!(good.outcome, Outcome::Reproduced, "{}", good.explanation);
    let bad = verdict(&published(97.5), &seeds);
    assert_eq!(bad.outcome, Outcome::NotReproduced, "{}", bad.explanation);
}

#[test]
fn a_bound_on_accuracy_and_one_on_error_say_the_same() {
    let of = |records: usize, every: usize, bound: f64| {
        let (answers, labels) = answers(records, every);
        let accuracy = claim(json!({"kind": "bound", "metric": "accuracy", "signature": TOP1,
            "value": 100.0 - bound, "direction": "higher"}));
        let error = claim(json!({"kind": "bound", "metric": "error", "signature": ERROR, "value": bound,
            "direction": "lower"}));
        let both = [(accuracy, TOP1), (error, ERROR)].map(|(claim, signature)| {
            let value = measure(signature, &answers, &labels);
            verdict(&claim, &[value.clone(), value])
        });
        assert_eq!(both[0].outcome, both[1].outcome, "{} {}", both[0].explanation, both[1].explanation);
        both
    };
    // The claim is at most 1 % errors, and 0.1 % are wrong: 10,000 records prove it, 50 do not.
    let [right, wrong] = of(10_000, 1000, 1.0);
    assert_eq!(right.outcome, Outcome::Reproduced, "{}", right.explanation);
    assert!(
        right.notes.iter().any(|note| note.contains("9990 right answers in 10000 records")),
        "{:?}",
        right.notes
    );
    assert!(
        wrong.notes.iter().any(|note| note.contains("10.00 errors in 10000 records")),
        "{:?}",
        wrong.notes
    );
    assert_eq!(of(50, 1000, 1.0)[0].outcome, Outcome::Inconclusive);
    assert_eq!(of(10_000, 20, 1.0)[0].outcome, Outcome::NotReproduced);
}

#[test]
fn arms_are_compared_in_pairs_of_records() {
    let records = |shift: f64| -> Vec<String> {
        (0..500)
            .map(|at| json!({"nats": 80.0 + f64::from(at % 17) + shift, "tokens": 20}).to_string())
            .collect()
    };
    let signature = "metric:perplexity|unit:token|unk:none|end:yes|state:reset";
    let scorer = Scorer::from_signature(signature).unwrap();
    let (baseline, ours) = (records(0.0), records(0.2));
    let found = difference(&scorer, &ours, &baseline, &[], Resampling::default(), 0.95).unwrap();
    // Each record costs 0.01 nats more per token. The perplexity is 1 % higher, and nearly constant
    // over resamples.
    let value = |records: &[String]| {
        score(records, &[], &ScoreOptions { scorer: scorer.clone(), resampling: None }).unwrap().value
    };
    let gap = value(&ours) - value(&baseline);
    assert!((gap / value(&baseline) - (0.01f64.exp() - 1.0)).abs() < 1e-9, "{gap}");
    assert!(found.low < gap && gap < found.high && found.high - found.low < 0.1 * gap, "{found:?}, {gap}");
}
