//! Claims on terms that training logs: a sum and a count per seed, with a signature and without
//! outputs.

use std::path::{Path, PathBuf};

use serde_json::json;
use zoo_recipes::ClaimSpec;
use zoo_results::ledger::{
    Disagreement, Judgement, Ledger, NoReferences, Record, Rescored, Rescorer, ScoreRecord, recheck,
};
use zoo_results::metrics::{OfTerm, Over, Signature, TermMean, TrainedTerm};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{
    Evidence, Interval, Outcome, PointScores, RunScore, judge, judgeable, trained_term,
};

const LOSS: &str = "metric:train-loss|of:objective|unit:frame|over:epoch|mean:update";

fn term(signature: &str, sum: f64, count: f64) -> TrainedTerm {
    TrainedTerm { signature: Signature::parse(signature).unwrap(), sum, count, update: 320 }
}

fn claim(fields: serde_json::Value) -> ClaimSpec {
    let mut all = json!({"direction": "lower", "arm": "fp32", "margin": 0.02, "source": "a test"});
    for (key, value) in fields.as_object().unwrap() {
        all[key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

/// The published losses at epoch 250 and epoch 500.
fn trajectory() -> ClaimSpec {
    claim(json!({
        "kind": "trajectory", "metric": "train-loss", "signature": LOSS, "clock": "epochs",
        "points": [{"at": 250, "value": 0.48, "sigma": 0.004}, {"at": 500, "value": 0.38, "sigma": 0.004}],
        "n": 16,
    }))
}

/// Three seeds at both points, as sums over the 32 updates of an epoch.
fn evidence(signature: &str, second: f64) -> Evidence {
    let at = |at: u64, loss: f64| PointScores {
        at,
        runs: (1..=3)
            .map(|seed| {
                let own = loss + 0.002 * (seed as f64 - 2.0);
                RunScore::trained(seed, term(signature, 32.0 * own, 32.0)).unwrap()
            })
            .collect(),
    };
    Evidence {
        arm: Some("fp32".into()),
        signature: Some(signature.into()),
        points: vec![at(250, 0.481), at(500, second)],
        runs: (1..=3)
            .map(|seed| RunScore::trained(seed, term(signature, 32.0 * second, 32.0)).unwrap())
            .collect(),
        plan: LookPlan::fixed(3),
        ..Evidence::default()
    }
}

#[test]
fn the_signature_says_what_is_averaged_over_which_updates() {
    let options = trained_term(&trajectory()).unwrap();
    assert_eq!((options.of, options.over, options.mean), (OfTerm::Objective, Over::Epoch, TermMean::Update));
    assert_eq!(judgeable(&trajectory()), Ok(()));
    let without = claim(json!({"kind": "value", "metric": "train-loss", "value": 0.3}));
    assert_eq!(trained_term(&without), None);
    assert!(judgeable(&without).unwrap_err().contains("which term is averaged"));
    let scored =
        claim(json!({"kind": "value", "metric": "loss", "signature": "metric:loss|of:nll|unit:example"}));
    assert_eq!((trained_term(&scored), judgeable(&scored)), (None, Ok(())));
}

#[test]
fn values_are_means_in_the_unit_of_the_metric() {
    for (signature, sum, count, value) in [
        (LOSS, 16.0, 32.0, 0.5),
        ("metric:train-loss|of:nll|unit:token|over:100|mean:unit", 300.0, 200.0, 1.5),
        ("metric:train-perplexity|unit:token|over:epoch|mean:unit", 300.0, 200.0, 4.481_689_070_338_065),
        ("metric:train-accuracy|top:1|unit:example|over:epoch|mean:unit", 150.0, 200.0, 75.0),
    ] {
        let found = term(signature, sum, count).value().unwrap();
        assert!((found.value - value).abs() < 1e-12, "{signature}: {}", found.value);
        assert!(found.interval.is_none());
    }
    for wrong in [
        term(LOSS, f64::NAN, 1.0),
        term(LOSS, 1.0, 0.0),
        term("metric:loss|of:objective|unit:frame", 1.0, 1.0),
    ] {
        assert!(RunScore::trained(1, wrong).unwrap_err().to_string().contains("\nhint: "));
    }
}

#[test]
fn training_losses_are_judged_at_every_point() {
    let verdict = judge(&trajectory(), &evidence(LOSS, 0.381));
    assert_eq!(verdict.outcome, Outcome::Reproduced, "{}", verdict.explanation);
    let verdict = judge(&trajectory(), &evidence(LOSS, 0.45));
    assert_eq!(verdict.outcome, Outcome::NotReproduced, "{}", verdict.explanation);
    assert_eq!(verdict.at, Some(500));
    // A mean over another window is another measure.
    let other = LOSS.replace("over:epoch", "over:32");
    let verdict = judge(&trajectory(), &evidence(&other, 0.381));
    assert_eq!(verdict.outcome, Outcome::NotComparable, "{}", verdict.explanation);
    assert!(verdict.explanation.contains("over:epoch"), "{}", verdict.explanation);
}

#[test]
fn a_training_accuracy_is_judged_as_a_value() {
    let signature = "metric:train-accuracy|top:1|unit:example|over:epoch|mean:unit";
    let claim = claim(json!({
        "kind": "value", "metric": "train-accuracy", "signature": signature, "direction": "higher",
        "value": 93.0, "margin": 0.5, "sigma": 0.1, "n": 10,
    }));
    let run = |seed: u64, right: f64| RunScore::trained(seed, term(signature, right, 50_000.0)).unwrap();
    let of = |runs: Vec<RunScore>| Evidence {
        arm: Some("fp32".into()),
        signature: Some(signature.into()),
        plan: LookPlan::fixed(runs.len() as u32),
        runs,
        ..Evidence::default()
    };
    let good = judge(&claim, &of(vec![run(1, 46_500.0), run(2, 46_550.0), run(3, 46_450.0)]));
    assert_eq!((good.outcome, good.measured), (Outcome::Reproduced, Some(93.0)), "{}", good.explanation);
    let bad = judge(&claim, &of(vec![run(1, 45_000.0), run(2, 45_050.0), run(3, 44_950.0)]));
    assert_eq!(bad.outcome, Outcome::NotReproduced, "{}", bad.explanation);
}

#[test]
fn a_bound_and_a_parity_on_training_are_not_judgeable_and_a_value_is() {
    let of = |kind: &str| {
        let signature = "metric:train-accuracy|top:1|unit:example|over:epoch|mean:unit";
        let fields = json!({
            "kind": kind, "metric": "train-accuracy", "signature": signature, "direction": "higher",
            "value": 93.0, "margin": 0.5,
        });
        judgeable(&claim(fields))
    };
    for kind in ["bound", "parity"] {
        assert!(of(kind).unwrap_err().contains("no interval"), "{kind}");
    }
    assert_eq!(of("value"), Ok(()));
}

/// Terms need no outputs, so nothing is scored.
struct Nothing;

impl Rescorer for Nothing {
    fn references(&mut self, _: &Record, _: &str) -> Result<Vec<String>, NoReferences> {
        Err(NoReferences::Absent("not in this test".into()))
    }

    fn score(&mut self, _: &ScoreRecord, _: &[String], _: &[String]) -> Result<Rescored, String> {
        Err("nothing is scored".into())
    }

    fn difference(
        &mut self,
        _: &ScoreRecord,
        _: &[String],
        _: &[String],
        _: &[String],
        _: f64,
    ) -> Result<Interval, String> {
        Err("nothing is compared".into())
    }
}

fn rechecked(folder: &Path, judgement: &Judgement) -> Vec<Disagreement> {
    let record = Record {
        time: "2026-01-31T23:59:59Z".into(),
        recipe: "tacotron2".into(),
        recipe_hash: "0".repeat(64),
        seeds: vec![1, 2, 3],
        judgements: vec![judgement.clone()],
        ..Record::default()
    };
    let path = folder.join("ledger.jsonl");
    let _ = std::fs::remove_file(&path);
    let ledger = Ledger::at(path);
    ledger.append(&record).unwrap();
    recheck(&ledger.entries().unwrap(), &PathBuf::new(), &mut Nothing).disagreements
}

#[test]
fn a_record_of_terms_is_derived_again_from_its_sums() {
    let folder = tempfile::tempdir().unwrap();
    let good = Judgement::of(trajectory(), evidence(LOSS, 0.381));
    assert_eq!(rechecked(folder.path(), &good), vec![]);
    let text = serde_json::to_string(&good).unwrap();
    assert_eq!(serde_json::from_str::<Judgement>(&text).unwrap(), good);

    let found = |change: &dyn Fn(&mut Judgement)| {
        let mut changed = good.clone();
        change(&mut changed);
        let faults = rechecked(folder.path(), &changed);
        faults.iter().map(|one| one.how.clone()).collect::<Vec<_>>().join("; ")
    };
    let sum = found(&|one| one.evidence.points[1].runs[0].term.as_mut().unwrap().sum = 20.0);
    assert!(sum.contains("seed 1: recorded 0.379, derived 0.625"), "{sum}");
    let score = found(&|one| one.evidence.points[1].runs[2].score = Some(0.1));
    assert!(score.contains("recorded 0.1, derived 0.383"), "{score}");
    let signature = found(&|one| {
        let other = LOSS.replace("mean:update", "mean:unit");
        one.evidence.runs[0].term.as_mut().unwrap().signature = Signature::parse(&other).unwrap();
    });
    assert!(signature.contains("the term of training is metric:train-loss"), "{signature}");
    let without = found(&|one| one.evidence.points[0].runs[0].term = None);
    assert!(without.contains("no outputs of fp32 seed 1 at 250 were kept"), "{without}");
}

#[test]
fn a_term_is_no_evidence_for_a_claim_that_outputs_are_scored_for() {
    let folder = tempfile::tempdir().unwrap();
    let bleu = claim(json!({
        "kind": "value", "metric": "bleu", "value": 27.0, "direction": "higher", "sigma": 0.1, "n": 5,
        "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp",
    }));
    let forged = Judgement::of(bleu, evidence(LOSS, 0.381));
    let faults = rechecked(folder.path(), &forged);
    assert!(faults.iter().any(|one| one.how.contains("were kept: such evidence is external")), "{faults:?}");
}
