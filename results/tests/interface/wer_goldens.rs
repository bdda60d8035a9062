//! Word and character error rate compared with jiwer 4.0: rates, edits by kind, and every
//! alignment. `tests/reference/wer.py` at the root of the repository writes the fixture.

use std::path::PathBuf;
use std::time::Instant;

use proptest::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use zoo_results::metrics::{
    Alignment, Case, Convention, Edit, EditCounts, ErrorRateOptions, ErrorUnit, MetricValue, Resampling,
    ScoreError, ScoreOptions, Scorer, Whitespace, interval, paired_bootstrap, paired_gain, score,
};

#[derive(Deserialize)]
struct Goldens {
    pairs: Vec<(String, String)>,
    sets: Vec<Set>,
    long: Vec<Long>,
}

/// All pairs scored together.
#[derive(Deserialize)]
struct Set {
    metric: String,
    lower: bool,
    rate: f64,
    /// Hits, substitutions, deletions, insertions.
    counts: [u64; 4],
    #[serde(default)]
    scripts: Vec<String>,
    sha256: Option<String>,
}

/// A generated utterance.
#[derive(Deserialize)]
struct Long {
    seed: u64,
    length: usize,
    kinds: u64,
    wrong: u64,
    counts: [u64; 4],
    sha256: String,
}

fn goldens() -> Goldens {
    serde_json::from_str(include_str!("../fixtures/wer_goldens.json")).expect("the fixture is JSON")
}

fn options(unit: ErrorUnit, case: Case, whitespace: Whitespace) -> ErrorRateOptions {
    ErrorRateOptions { unit, case, whitespace }
}

const WORDS: ErrorRateOptions =
    ErrorRateOptions { unit: ErrorUnit::Word, case: Case::Mixed, whitespace: Whitespace::Jiwer };
const CHARACTERS: ErrorRateOptions = ErrorRateOptions { unit: ErrorUnit::Character, ..WORDS };

fn measure(options: ErrorRateOptions, pairs: &[(String, String)]) -> MetricValue {
    let (references, hypotheses): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
    let scorer = Scorer::new(Convention::ErrorRate(options)).unwrap();
    score(&hypotheses, &[references], &ScoreOptions { scorer, resampling: None }).unwrap()
}

fn counts_of(value: &MetricValue) -> [u64; 4] {
    ["hits", "substitutions", "deletions", "insertions"].map(|key| value.detail[key].as_u64().unwrap())
}

/// Runs of edits as text: "12H1S".
fn script(alignment: &Alignment) -> String {
    let letter = |edit| match edit {
        Edit::Hit => 'H',
        Edit::Substitution => 'S',
        Edit::Deletion => 'D',
        Edit::Insertion => 'I',
    };
    let runs = alignment.steps.chunk_by(|one, next| one.edit == next.edit);
    runs.map(|run| format!("{}{}", run.len(), letter(run[0].edit))).collect()
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

#[test]
fn rates_edits_and_alignments_are_jiwers() {
    let goldens = goldens();
    assert!(goldens.pairs.len() >= 600 && goldens.sets.len() == 4);
    for set in &goldens.sets {
        let unit = if set.metric == "wer" { ErrorUnit::Word } else { ErrorUnit::Character };
        let case = if set.lower { Case::Lower } else { Case::Mixed };
        let options = options(unit, case, Whitespace::Jiwer);
        let scripts: Vec<String> = goldens
            .pairs
            .iter()
            .map(|(reference, hypothesis)| script(&options.align(reference, hypothesis)))
            .collect();
        for (pair, (found, expected)) in goldens.pairs.iter().zip(scripts.iter().zip(&set.scripts)) {
            assert_eq!(found, expected, "{} of {pair:?}", set.metric);
        }
        assert!(set.scripts.len() == scripts.len() || set.sha256 == Some(sha256(&scripts.join("\n"))));
        let value = measure(options, &goldens.pairs);
        assert_eq!((value.metric.name, counts_of(&value)), (set.metric.as_str(), set.counts));
        // jiwer gives a fraction; the additional product may add one rounding error.
        assert!((value.value - 100.0 * set.rate).abs() <= f64::EPSILON * value.value, "{}", value.value);
    }
}

/// Knuth's MMIX generator, upper 32 bits, as in the script.
fn generated(seed: u64, length: usize, kinds: u64, wrong: u64) -> (String, String) {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    let (mut reference, mut hypothesis) = (Vec::new(), Vec::new());
    for _ in 0..length {
        let word = format!("w{}", draw() % kinds);
        let fate = draw() % 3000;
        if fate >= 3 * wrong {
            hypothesis.push(word.clone());
        } else if fate < wrong {
            hypothesis.push(format!("w{}", draw() % kinds));
        } else if fate < 2 * wrong {
            hypothesis.extend([word.clone(), word.clone()]);
        }
        reference.push(word);
    }
    (reference.join(" "), hypothesis.join(" "))
}

#[test]
fn long_utterances_are_cut_where_jiwer_cuts_them() {
    for long in goldens().long {
        let (reference, hypothesis) = generated(long.seed, long.length, long.kinds, long.wrong);
        let alignment = WORDS.align(&reference, &hypothesis);
        let EditCounts { hits, substitutions, deletions, insertions } = alignment.counts();
        assert_eq!([hits, substitutions, deletions, insertions], long.counts, "seed {}", long.seed);
        assert_eq!(sha256(&script(&alignment)), long.sha256, "seed {}", long.seed);
    }
}

#[derive(Deserialize)]
struct Published {
    cases: Vec<PublishedCase>,
}

#[derive(Deserialize)]
struct PublishedCase {
    r#ref: String,
    hyp: String,
    wer: f64,
}

/// jiwer's own tests, which contain the examples of Morris et al. 2004. Requires the folder given
/// by `ZOO_PARITY` (`wer/wer_cases.json`).
#[test]
fn published_examples() {
    let Some(folder) = std::env::var_os("ZOO_PARITY").map(PathBuf::from) else {
        eprintln!("skipped: ZOO_PARITY is not set");
        return;
    };
    let text = std::fs::read_to_string(folder.join("wer/wer_cases.json")).unwrap();
    let published: Published = serde_json::from_str(&text).unwrap();
    assert!(published.cases.len() >= 10);
    for case in published.cases {
        let value = measure(WORDS, &[(case.r#ref.clone(), case.hyp.clone())]).value;
        assert!(
            (value - 100.0 * case.wer).abs() < 1e-12 * value.max(1.0),
            "{} against {}",
            case.r#ref,
            case.hyp
        );
    }
}

#[test]
fn a_corpus_is_its_edits_over_its_words() {
    let pair = |reference: &str, hypothesis: &str| (reference.to_string(), hypothesis.to_string());
    // 1 of 1 and 0 of 3 give 25 %, not the mean of 100 % and 0 %. Words of different utterances are
    // never aligned with each other.
    let value = measure(WORDS, &[pair("a", "b"), pair("c d e", "c d e")]);
    assert_eq!((value.value, value.detail["errors"].as_u64()), (25.0, Some(1)));
    assert_eq!(value.detail["line"], "%WER 25.00 [ 1 / 4, 0 ins, 0 del, 1 sub ]");
    assert_eq!(measure(WORDS, &[pair("a b", ""), pair("", "a b")]).value, 200.0);
    // Only insertions against empty references: jiwer's rate is then the number of insertions.
    assert_eq!(measure(WORDS, &[pair("", "a b"), pair(" ", "")]).value, 200.0);
    assert_eq!(measure(WORDS, &[pair("", ""), pair(" ", "\t")]).value, 0.0);
    let lower = options(ErrorUnit::Word, Case::Lower, Whitespace::Collapse);
    assert_eq!(measure(lower, &[pair("A\tb", "a B")]).value, 0.0);
    assert_eq!(measure(WORDS, &[pair("a\tb", "a b")]).value, 200.0);
    assert_eq!(measure(CHARACTERS, &[pair("a b", "ab"), pair("c", "c")]).value, 25.0);

    let scorer = Scorer::new(Convention::ErrorRate(WORDS)).unwrap();
    let lines = vec!["a".to_string()];
    let two = [lines.clone(), lines.clone()];
    assert_eq!(scorer.statistics(&lines, &two), Err(ScoreError::ReferenceCount { expected: 1, found: 2 }));
}

#[test]
fn utterances_are_resampled() {
    let pairs: Vec<(String, String)> =
        (0..200).map(|seed| generated(seed, 5 + seed as usize % 20, 30, 150)).collect();
    let (references, hypotheses): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
    let better: Vec<String> = references
        .iter()
        .zip(&hypotheses)
        .enumerate()
        .map(|(at, (r, h))| if at % 3 == 0 { r } else { h }.clone())
        .collect();
    let scorer = Scorer::new(Convention::ErrorRate(WORDS)).unwrap();
    let statistics =
        |hypotheses: &[String]| scorer.statistics(hypotheses, std::slice::from_ref(&references)).unwrap();
    let (base, better) = (statistics(&hypotheses), statistics(&better));
    let found = interval(&base, Resampling::default()).unwrap();
    assert!(found.lower < base.value() && base.value() < found.upper && found.half_width > 0.5, "{found:?}");
    // Fewer errors are a gain.
    let gain = paired_gain(&[(&base, &better)], Resampling::default()).unwrap();
    assert!(
        (gain.observed - (base.value() - better.value())).abs() < 1e-12
            && gain.lower_bound(0.95).unwrap() > 0.0
    );
    assert!(paired_bootstrap(&base, &better, Resampling::default()).unwrap().p_value < 0.01);
}

/// The same pairs as `tests/reference/wer.py --time`. Run with `--nocapture` to print the times.
#[test]
fn a_corpus_takes_milliseconds() {
    let pairs: Vec<(String, String)> =
        (0..6010).map(|seed| generated(seed, 5 + seed as usize % 31, 400, 150)).collect();
    let (references, hypotheses): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
    for (unit, options) in [("words", WORDS), ("characters", CHARACTERS)] {
        let scorer = Scorer::new(Convention::ErrorRate(options)).unwrap();
        let references = std::slice::from_ref(&references);
        let mut best = f64::INFINITY;
        let mut found = None;
        for _ in 0..5 {
            let start = Instant::now();
            let options = ScoreOptions { scorer: scorer.clone(), resampling: None };
            found = Some(score(&hypotheses, references, &options).unwrap());
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "6,010 pairs by {unit}: {:.1} ms, {:?}",
            1000.0 * best,
            found.map(|value| counts_of(&value))
        );
        assert!(best < 1.0, "{best} s");
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "([a-d]{1,2}[ \t\u{a0}]{1,3}){0,12}",
        1 => any::<String>(),
    ]
}

fn conventions() -> impl Strategy<Value = ErrorRateOptions> {
    let unit = prop_oneof![Just(ErrorUnit::Word), Just(ErrorUnit::Character)];
    let case = prop_oneof![Just(Case::Mixed), Just(Case::Lower)];
    (unit, case, prop::sample::select(Whitespace::ALL.to_vec()))
        .prop_map(|(unit, case, whitespace)| options(unit, case, whitespace))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_are_a_distance(options in conventions(), a in text(), b in text(), c in text()) {
        let distance = |one: &str, other: &str| options.align(one, other).counts().errors();
        prop_assert_eq!(distance(&a, &a), 0);
        prop_assert_eq!(distance(&a, &b), distance(&b, &a));
        prop_assert!(distance(&a, &c) <= distance(&a, &b) + distance(&b, &c));
    }

    #[test]
    fn an_alignment_has_both_texts(options in conventions(), reference in text(), hypothesis in text()) {
        let alignment = options.align(&reference, &hypothesis);
        // Aligned with itself, a text gives only hits: its own units.
        let units = |line: &str| -> Vec<String> {
            options.align(line, line).steps.into_iter().filter_map(|step| step.reference).collect()
        };
        let side = |pick: fn(&zoo_results::metrics::Step) -> Option<String>| -> Vec<String> {
            alignment.steps.iter().filter_map(pick).collect()
        };
        prop_assert_eq!(side(|step| step.reference.clone()), units(&reference));
        prop_assert_eq!(side(|step| step.hypothesis.clone()), units(&hypothesis));
        for step in &alignment.steps {
            let expected = match (&step.reference, &step.hypothesis) {
                (Some(r), Some(h)) if r == h => Edit::Hit,
                (Some(_), Some(_)) => Edit::Substitution,
                (Some(_), None) => Edit::Deletion,
                (None, _) => Edit::Insertion,
            };
            prop_assert_eq!(step.edit, expected);
        }
        let value = measure(options, &[(reference.clone(), hypothesis.clone())]);
        prop_assert_eq!(value.value, alignment.counts().rate());
    }
}
