//! Every option compared with numbers that Python sacreBLEU 2.6.0 printed with all their digits.
//! `tests/reference/sacrebleu_goldens.py` at the root of the repository writes the fixture.

use crate::bleu;

use std::collections::BTreeMap;

use serde::Deserialize;
use zoo_results::metrics::{
    Resampling, ScoreOptions, Scorer, SegmentStatistics, Signature, interval, paired_bootstrap, score,
};

#[derive(Deserialize)]
struct Goldens {
    corpora: BTreeMap<String, Vec<Vec<String>>>,
    cases: Vec<Case>,
    paired: Vec<Paired>,
}

/// One call of `corpus_score`; the last stream of the corpus is the hypotheses.
#[derive(Deserialize)]
struct Case {
    corpus: String,
    signature: String,
    score: f64,
    verbose: Option<String>,
    mean: Option<f64>,
    half_width: Option<f64>,
}

/// One system of one `PairedTest`: indices of streams, then (baseline, system).
#[derive(Deserialize)]
struct Paired {
    corpus: String,
    signature: String,
    samples: usize,
    baseline: usize,
    system: usize,
    p_value: f64,
    scores: [f64; 2],
    means: [f64; 2],
    half_widths: [f64; 2],
}

fn goldens() -> Goldens {
    let text = include_str!("../fixtures/sacrebleu_goldens.json");
    serde_json::from_str(text).expect("the fixture is JSON")
}

/// Logarithm and exponential may differ in the last bit between C libraries. With the same library
/// the results are equal.
const LAST_BITS: f64 = 1e-14;
/// sacreBLEU's resampled chrF and TER, and their means and differences, are in single precision.
/// Its paired test computes the mean of BLEU in another order.
const SINGLE: f64 = 1e-6;

fn resampled(metric: &str) -> f64 {
    if metric == "bleu" { LAST_BITS } else { SINGLE }
}

/// The signature without its version part.
fn unversioned(signature: &Signature) -> String {
    Signature { version: None, ..signature.clone() }.to_string()
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

#[test]
fn every_option_equals_sacrebleu() {
    let goldens = goldens();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &goldens.cases {
        let streams = &goldens.corpora[&case.corpus];
        let stated = Signature::parse(&case.signature).unwrap();
        let references = &streams[..stated.references.unwrap()];
        let scorer = Scorer::from_signature(&case.signature).unwrap();
        let options = ScoreOptions { scorer: scorer.clone(), resampling: stated.resampling };
        let what = format!("{} of `{}`", case.signature, case.corpus);
        let value = score(streams.last().unwrap(), references, &options).unwrap();
        *seen.entry(value.metric.name).or_default() += 1;

        assert!(close(value.value, case.score, LAST_BITS), "{what}: {} is not {}", value.value, case.score);
        assert_eq!(unversioned(&value.signature), unversioned(&stated));
        value.signature.comparable(&stated).unwrap();
        if let Some(verbose) = &case.verbose {
            let detail = bleu::detail(&scorer, streams.last().unwrap(), references).unwrap();
            assert_eq!(&detail.verbose(), verbose, "{what}");
        }
        if let (Some(mean), Some(half_width)) = (case.mean, case.half_width) {
            let interval = value.interval.unwrap();
            let found = (interval.mean, interval.half_width);
            let equal = close(found.0, mean, resampled(value.metric.name))
                && close(found.1, half_width, resampled(value.metric.name));
            assert!(equal, "{what}: {found:?} is not {:?}", (mean, half_width));
        }
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), ["bleu", "chrf", "ter"]);
    assert!(seen.values().all(|n| *n >= 100), "{seen:?}");
}

#[test]
fn the_paired_bootstrap_equals_sacrebleus() {
    let goldens = goldens();
    assert!(
        goldens.paired.iter().any(|p| p.p_value > 0.1) && goldens.paired.iter().any(|p| p.p_value < 0.01)
    );
    for case in &goldens.paired {
        let streams = &goldens.corpora[&case.corpus];
        let scorer = Scorer::from_signature(&case.signature).unwrap();
        let references = &streams[..Signature::parse(&case.signature).unwrap().references.unwrap()];
        let statistics =
            |stream: usize| -> SegmentStatistics { scorer.statistics(&streams[stream], references).unwrap() };
        let resampling = Resampling { samples: case.samples, ..Resampling::default() };
        let (baseline, system) = (statistics(case.baseline), statistics(case.system));
        let found = paired_bootstrap(&baseline, &system, resampling).unwrap();
        let what = format!("{} of `{}` {} to {}", case.signature, case.corpus, case.baseline, case.system);
        assert_eq!(found.p_value, case.p_value, "{what}");
        assert!(close(found.baseline, case.scores[0], LAST_BITS), "{what}");
        assert!(close(found.system, case.scores[1], LAST_BITS), "{what}");
        for (i, interval) in [found.baseline_interval, found.system_interval].into_iter().enumerate() {
            assert!(close(interval.mean, case.means[i], SINGLE), "{what}: {interval:?}");
            assert!(close(interval.half_width, case.half_widths[i], SINGLE), "{what}: {interval:?}");
        }
        assert_eq!(interval(&baseline, resampling).unwrap(), found.baseline_interval);
    }
}
