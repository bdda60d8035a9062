//! Properties that hold for every metric and any text.

use proptest::prelude::*;
use zoo_recipes::Direction;
use zoo_results::metrics::{
    AccuracyOptions, Case, Convention, ExactMatchOptions, MetricValue, PairedGain, Resampling, ScoreError,
    ScoreOptions, Scorer, SegmentStatistics, Share, Signature, Ties, interval, paired_bootstrap, paired_gain,
    score,
};

const SIGNATURES: [&str; 16] = [
    "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp",
    "nrefs:1|case:lc|eff:yes|tok:intl|smooth:floor[0.10]",
    "nrefs:1|case:mixed|eff:yes|tok:char|smooth:add-k[0.50]",
    "nrefs:1|case:mixed|eff:no|tok:zh|smooth:add-k[1.00]",
    "nrefs:1|case:lc|eff:no|tok:none|smooth:none",
    "nrefs:1|case:lc|eff:no|tok:none|smooth:none|impl:multi-bleu",
    "nrefs:1|case:lc|eff:no|tok:none|smooth:none|impl:fairseq",
    "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no",
    "nrefs:1|case:lc|eff:no|nc:3|nw:2|space:yes",
    "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no",
    "nrefs:1|case:mixed|tok:tercom|norm:yes|punct:no|asian:no",
    "metric:wer|nrefs:1|case:mixed|space:jiwer|align:jiwer",
    "metric:wer|nrefs:1|case:lc|space:collapse|align:jiwer",
    "metric:cer|nrefs:1|case:mixed|space:jiwer|align:jiwer",
    "metric:cer|nrefs:1|case:lc|space:collapse|align:jiwer",
    "metric:exact-match|nrefs:1|case:lc",
];

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "([a-e]{1,2}[.,]? ){0,8}[a-e]?",
        1 => "[ -~]{0,30}",
        1 => any::<String>(),
        1 => "([\u{1c}-\u{1f} \u{a0}\u{3000}-]|[0-9.,&;]|中|é){0,20}",
    ]
}

fn corpus(segments: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((line(), line()), segments)
}

fn measure(signature: &str, pairs: &[(String, String)]) -> Result<MetricValue, ScoreError> {
    let (h, r): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
    score(&h, &[r], &ScoreOptions { scorer: Scorer::from_signature(signature).unwrap(), resampling: None })
}

fn statistics(signature: &str, pairs: &[(String, String)]) -> Result<SegmentStatistics, ScoreError> {
    let (h, r): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
    Scorer::from_signature(signature).unwrap().statistics(&h, &[r])
}

/// The only error allowed on streams of equal length: a tool that has no score for empty text.
fn tolerated(result: Result<MetricValue, ScoreError>) -> Result<Option<MetricValue>, TestCaseError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ScoreError::Undefined { .. }) => Ok(None),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// This also proves that the library and the segment statistics agree, because a difference is
    /// an error.
    #[test]
    fn any_text_has_a_score_in_range(pairs in corpus(1..7)) {
        for signature in SIGNATURES {
            if let Some(value) = tolerated(measure(signature, &pairs))? {
                prop_assert!(value.value >= 0.0 && value.value.is_finite(), "{signature}: {}", value.value);
                let limit = if value.direction == Direction::Lower { f64::INFINITY } else { 100.0 + 1e-9 };
                prop_assert!(value.value <= limit, "{signature}: {}", value.value);
            }
        }
    }

    #[test]
    fn the_order_of_segments_does_not_matter(
        (pairs, shuffled) in corpus(1..7).prop_flat_map(|p| (Just(p.clone()), Just(p).prop_shuffle())),
    ) {
        for signature in SIGNATURES {
            let (a, b) = (tolerated(measure(signature, &pairs))?, tolerated(measure(signature, &shuffled))?);
            let (a, b) = (a.map(|v| v.value), b.map(|v| v.value));
            prop_assert!(a == b || (a.unwrap() - b.unwrap()).abs() < 1e-9, "{signature}: {a:?} {b:?}");
        }
    }

    #[test]
    fn a_text_against_itself_is_perfect(words in prop::collection::vec("[a-z]{1,5}( [a-z]{1,5}){3,9}", 1..5)) {
        let pairs: Vec<(String, String)> = words.iter().map(|w| (w.clone(), w.clone())).collect();
        for signature in SIGNATURES {
            let value = measure(signature, &pairs).unwrap();
            let perfect = if value.direction == Direction::Lower { 0.0 } else { 100.0 };
            prop_assert!((value.value - perfect).abs() < 1e-9, "{signature}: {}", value.value);
        }
    }

    #[test]
    fn intervals_are_deterministic_and_hold_their_mean(pairs in corpus(2..7), seed in any::<u64>()) {
        let resampling = Resampling { samples: 60, seed };
        for signature in SIGNATURES {
            let Ok(statistics) = statistics(signature, &pairs) else { continue };
            let first = interval(&statistics, resampling).unwrap();
            prop_assert_eq!(first, interval(&statistics, resampling).unwrap());
            prop_assert!(first.lower <= first.upper && first.half_width >= 0.0);
            let gain = paired_gain(&[(&statistics, &statistics)], resampling).unwrap();
            prop_assert_eq!((gain.observed, gain.mean, gain.standard_deviation), (0.0, 0.0, 0.0));
        }
    }
}

#[test]
fn more_references_never_hurt_and_their_number_is_part_of_the_measure() {
    let own = |s: &str| s.split('|').map(str::to_string).collect::<Vec<_>>();
    let (h, r, more) = (own("a b c d e|f g h i"), own("a b x d e|f g h k"), own("y b c d e|f g h i"));
    for signature in SIGNATURES.iter().filter(|s| !s.contains("fairseq") && !s.contains("align")) {
        let two = signature.replace("nrefs:1", "nrefs:2");
        let of = |signature: &str, streams: &[Vec<String>]| {
            let scorer = Scorer::from_signature(signature).unwrap();
            score(&h, streams, &ScoreOptions { scorer, resampling: None })
        };
        let one = of(signature, std::slice::from_ref(&r)).unwrap();
        let both = of(&two, &[r.clone(), more.clone()]).unwrap();
        assert!(both.value != one.value, "{signature}");
        assert_eq!(both.value > one.value, one.metric.name != "ter", "{signature}");
        let unlike = both.signature.comparable(&one.signature).unwrap_err().to_string();
        assert!(unlike.contains("nrefs:2 against nrefs:1"), "{unlike}");
        let refused = of(signature, &[r.clone(), more.clone()]).unwrap_err();
        assert_eq!(refused, ScoreError::ReferenceCount { expected: 1, found: 2 });
    }
}

#[test]
fn bad_requests_are_errors_with_a_hint() {
    let lines = |n: usize| vec!["a b c d".to_string(); n];
    for signature in SIGNATURES {
        let options =
            |resampling| ScoreOptions { scorer: Scorer::from_signature(signature).unwrap(), resampling };
        let with = |h: usize, r: &[usize], resampling| {
            let streams: Vec<Vec<String>> = r.iter().map(|n| lines(*n)).collect();
            score(&lines(h), &streams, &options(resampling)).map(|v| v.value)
        };
        for failed in [
            with(0, &[0], None),
            with(2, &[], None),
            with(2, &[1], None),
            with(1, &[2], None),
            with(1, &[1], Some(Resampling::default())),
            with(2, &[2], Some(Resampling { samples: 39, seed: 1 })),
            with(2, &[2], Some(Resampling { samples: 100_001, seed: 1 })),
        ] {
            let text = failed.unwrap_err().to_string();
            assert!(text.contains("\nhint: "), "{text}");
        }
        with(2, &[2], Some(Resampling { samples: 40, seed: 1 })).unwrap();
    }
    assert!(matches!(
        Scorer::from_signature("metric:train-perplexity|unit:token|over:epoch|mean:unit"),
        Err(ScoreError::NotFromText { metric: "train-perplexity" })
    ));
}

/// (right answers, answers) by segment of two systems; the second one has `more` additional right
/// answers in every second segment.
fn accuracies(more: u32) -> [SegmentStatistics; 2] {
    let options = AccuracyOptions { share: Share::Right, top: 1, classes: 10, ties: Ties::First };
    let signature = Signature::own(Convention::Accuracy(options), None).on("valid").unwrap();
    let of = |extra: u32| {
        let rows: Vec<(f64, f64)> =
            (0..200u32).map(|i| (f64::from((i * 7) % 11 + extra * (i % 2)), 20.0)).collect();
        SegmentStatistics::from_ratios(signature.clone(), &rows).unwrap()
    };
    [of(0), of(more)]
}

#[test]
fn a_gain_is_signed_by_the_metrics_direction_and_bounded_outwards() {
    let [base, better] = accuracies(4);
    let resampling = Resampling { samples: 1000, seed: 7 };
    let gain = paired_gain(&[(&base, &better)], resampling).unwrap();
    assert!((gain.observed - 10.0).abs() < 1e-9, "{gain:?}");
    let bounds = |g: &PairedGain, c: f64| (g.lower_bound(c).unwrap(), g.upper_bound(c).unwrap());
    let ((l95, u95), (l99, u99)) = (bounds(&gain, 0.95), bounds(&gain, 0.99));
    assert!(l99 < l95 && l95 < gain.observed && gain.observed < u95 && u95 < u99);
    // Half of the segments gain 4 of 20: the standard error of the mean gain is 10 points /
    // sqrt(200).
    assert!((gain.standard_deviation - 10.0 / 200f64.sqrt()).abs() < 0.05, "{}", gain.standard_deviation);
    assert!((l95 - (10.0 - 1.645 * 10.0 / 200f64.sqrt())).abs() < 0.15, "{l95}");

    let reversed = paired_gain(&[(&better, &base)], resampling).unwrap();
    assert!((reversed.observed + gain.observed).abs() < 1e-12);
    assert!((reversed.upper_bound(0.95).unwrap() + l95).abs() < 1e-12);
    let both = paired_gain(&[(&base, &better), (&better, &base)], resampling).unwrap();
    assert!(both.observed.abs() < 1e-12 && both.standard_deviation < 1e-12);

    let perplexity = Signature::parse("metric:perplexity|unit:token|unk:none|end:yes|state:reset").unwrap();
    let of =
        |loss: f64| SegmentStatistics::from_ratios(perplexity.clone(), &[(loss, 1.0), (loss, 1.0)]).unwrap();
    let lower = paired_gain(&[(&of(2.0), &of(1.0))], resampling).unwrap();
    assert!((lower.observed - (2f64.exp() - 1f64.exp())).abs() < 1e-12, "less perplexity is a gain");

    assert!(gain.lower_bound(0.9999).unwrap_err().to_string().contains("too few"));
    assert!(gain.lower_bound(1.0).is_err() && gain.lower_bound(0.3).is_err());
    assert!(paired_gain(&[], resampling).is_err());
}

#[test]
fn only_what_is_paired_is_compared() {
    let text = |s: &str| s.split('|').map(str::to_string).collect::<Vec<_>>();
    let scorer = Scorer::from_signature(SIGNATURES[0]).unwrap().on("test").unwrap();
    let h = text("a b c d e|f g h i j");
    let statistics = |scorer: &Scorer, r: &str| scorer.statistics(&h, &[text(r)]).unwrap();
    let base = statistics(&scorer, "a b c d e|f g h i k");
    let resampling = Resampling::default();
    let other_references = statistics(&scorer, "a b c d e|f g h i l");
    assert!(
        paired_bootstrap(&base, &other_references, resampling)
            .unwrap_err()
            .to_string()
            .contains("same segments")
    );
    let other_set = statistics(&scorer.clone().on("valid").unwrap(), "a b c d e|f g h i k");
    let e = paired_gain(&[(&base, &other_set)], resampling).unwrap_err().to_string();
    assert!(e.contains("eval:test against eval:valid"), "{e}");
    let other_metric = statistics(&Scorer::from_signature(SIGNATURES[1]).unwrap(), "a b c d e|f g h i k");
    assert!(paired_bootstrap(&base, &other_metric, resampling).is_err());
}

#[test]
fn values_survive_json_and_refuse_unlike_company() {
    let pairs = vec![("a b c d e".to_string(), "a b c d f".to_string()); 3];
    for signature in SIGNATURES {
        let scorer = Scorer::from_signature(signature).unwrap().on("test").unwrap();
        let (h, r): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
        let options = ScoreOptions { scorer, resampling: Some(Resampling { samples: 50, seed: 3 }) };
        let value = score(&h, &[r], &options).unwrap();
        let text = serde_json::to_string(&value).unwrap();
        let back: MetricValue = serde_json::from_str(&text).unwrap();
        assert_eq!(back, value, "{text}");
        assert_eq!(value.detail["segments"], 3);
        assert!(value.signature.to_string().contains("|bs:50|seed:3|eval:test|"), "{}", value.signature);
    }
}

#[test]
fn exact_match_collapses_white_space() {
    let scorer = |case| Scorer::new(Convention::ExactMatch(ExactMatchOptions { case })).unwrap();
    let (h, r) = (vec!["a  B ".to_string(), "c".into()], vec!["A b".to_string(), "d".into()]);
    let of = |case| {
        score(&h, std::slice::from_ref(&r), &ScoreOptions { scorer: scorer(case), resampling: None })
            .unwrap()
            .value
    };
    assert_eq!((of(Case::Mixed), of(Case::Lower)), (0.0, 50.0));
}
