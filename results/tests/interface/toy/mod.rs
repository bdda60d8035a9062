//! A record of both arms of the toy recipe, with 60 sentences, and its bundle.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use zoo_recipes::{ClaimKind, Document};
use zoo_results::bundle::{
    Bundle, BundledHypotheses, BundledRecipe, BundledReferences, FORMAT, RunEnvironment, VERSION,
};
use zoo_results::ledger::{HypothesesFile, Judgement, Ledger, Record, RunRecord, ScoreRecord, difference};
use zoo_results::metrics::{Resampling, ScoreOptions, Scorer, score};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Evidence, Interval, Outcome, Precision, RunScore, StatedSpread};

pub fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The line of a ledger that contains only this record.
pub fn line_of(record: &Record) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger.jsonl"));
    let entry = ledger.append(record).unwrap();
    ledger.line(&entry).unwrap()
}

/// The machine as in `run.json`.
pub fn environment(arm: &str) -> RunEnvironment {
    let environment = serde_json::json!({"version": "0.1.0", "commit": "c0ffee", "dirty": false, "device": "cpu",
        "processor": "a processor", "threads": 2});
    RunEnvironment { arm: arm.to_owned(), seed: 1, environment }
}

pub fn bundle() -> (Bundle, BTreeMap<String, Vec<String>>) {
    let references: Vec<String> =
        (0..60).map(|i| format!("a b{} c d{} e f{} g h", i % 7, i % 5, i % 11)).collect();
    let spoilt = |every: usize| -> Vec<String> {
        let words = |(i, line): (usize, &String)| match i % every {
            0 => line.replace("c d", "x y"),
            _ => line.clone(),
        };
        references.iter().enumerate().map(words).collect()
    };
    let document = Document::load("reversal-transformer").unwrap();
    let arms = document.resolve_arms(None, &[]).unwrap();
    let claims = arms["fp32"].claim.clone();
    let claim = claims.iter().find(|claim| claim.kind == ClaimKind::Parity).unwrap().clone();
    let scorer = Scorer::from_signature(claim.signature.as_deref().unwrap()).unwrap();
    let (mut scores, mut runs, mut hypotheses) = (Vec::new(), Vec::new(), Vec::new());
    for (arm, lines) in [("fp32", spoilt(9)), ("mixed", spoilt(10))] {
        let options = ScoreOptions { scorer: scorer.clone(), resampling: Some(Resampling::default()) };
        let value = score(&lines, std::slice::from_ref(&references), &options).unwrap();
        let interval = value.interval.unwrap();
        let interval = Interval { low: interval.lower, high: interval.upper, level: interval.confidence };
        let file =
            HypothesesFile { path: format!("toy/{arm}-seed1-abc/test.txt"), sha256: hash(&text(&lines)) };
        runs.push(RunScore {
            interval: Some(interval),
            hypotheses: Some(file.sha256.clone()),
            ..RunScore::scored(1, value.value)
        });
        scores.push(ScoreRecord {
            eval: "test".into(),
            decode: "beam5".into(),
            arm: arm.into(),
            seed: 1,
            moment: None,
            metric: "bleu".into(),
            signature: value.signature.to_string(),
            value: value.value,
            interval: Some(interval),
            hypotheses: Some(file.clone()),
        });
        hypotheses.push(BundledHypotheses { file, text: text(&lines) });
    }
    let (ours, baseline) = (spoilt(10), spoilt(9));
    let streams = std::slice::from_ref(&references);
    runs[1].difference =
        Some(difference(&scorer, &ours, &baseline, streams, Resampling::default(), 0.95).unwrap());
    let evidence = Evidence {
        arm: Some("mixed".into()),
        baseline: Some("fp32".into()),
        eval: claim.eval.clone(),
        decode: claim.decode.clone(),
        signature: Some(scores[0].signature.clone()),
        runs: vec![runs[1].clone()],
        baseline_runs: vec![runs[0].clone()],
        plan: LookPlan::fixed(1),
        hardware: Some("a processor".into()),
        precision: Some(Precision::Fp16),
        baseline_precision: Some(Precision::Fp32),
        spread: StatedSpread::named(&claim, "reversal-transformer"),
        ..Evidence::default()
    };
    let record = Record {
        time: "2026-01-31T23:59:59Z".into(),
        recipe: "reversal-transformer".into(),
        recipe_hash: document.hash(None, &[]).unwrap(),
        seeds: vec![1],
        commit: Some("c0ffee".into()),
        device: Some("cpu".into()),
        hardware: Some("a processor".into()),
        precision: [("fp32".to_owned(), "fp32".to_owned()), ("mixed".to_owned(), "fp16".to_owned())].into(),
        runs: ["fp32", "mixed"].map(run_of).into(),
        scores,
        judgements: vec![Judgement::of(claim, evidence)],
        ..Record::default()
    };
    assert_eq!(
        record.judgements[0].verdict.outcome,
        Outcome::Inconclusive,
        "{:?}",
        record.judgements[0].verdict
    );
    let resolved = arms.iter().map(|(arm, recipe)| (arm.clone(), recipe.to_toml().unwrap())).collect();
    let bundle = Bundle {
        format: FORMAT.into(),
        version: VERSION,
        record: line_of(&record),
        recipe: BundledRecipe {
            file: document.file().into(),
            text: document.text().into(),
            bases: Vec::new(),
            resolved,
        },
        environments: ["fp32", "mixed"].map(environment).into(),
        hypotheses,
        references: vec![BundledReferences::of("test", &references)],
    };
    (bundle, [("test".to_owned(), references)].into())
}

fn run_of(arm: &str) -> RunRecord {
    let files = ["run.json", "recipe.toml", "trained.json", "log.jsonl"];
    RunRecord {
        arm: arm.to_owned(),
        seed: 1,
        folder: format!("toy/{arm}-seed1-abc"),
        environment: environment(arm).environment,
        files: files.map(|file| (file.to_owned(), "0".repeat(64))).into(),
    }
}
