//! Accuracy, error, F1 and likelihoods compared with scikit-learn and NumPy, and with numbers
//! computed by hand.
//!
//! `tests/reference/classification.py` writes the fixture. Shares are quotients of whole numbers
//! and agree to 1e-12. Means of nats are summed in another order than NumPy's and agree to 1e-9.

use serde::Deserialize;
use zoo_results::metrics::{
    Class, ClassRecord, LikelihoodPart, LikelihoodRecord, LossRecord, MetricValue, ModelState, Resampling,
    ScoreError, ScoreOptions, Scorer, score,
};

#[derive(Deserialize)]
struct Goldens {
    sklearn: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    classes: usize,
    labels: Vec<usize>,
    scores: Vec<Vec<f64>>,
    ranking: Vec<Vec<usize>>,
    nats: Vec<f64>,
    log_loss: f64,
    perplexity: f64,
    accuracy: f64,
    error: f64,
    top: Vec<Top>,
    f1: f64,
    by_class: Vec<OfClass>,
}

#[derive(Deserialize)]
struct OfClass {
    class: usize,
    precision: f64,
    recall: f64,
    f1: f64,
    records: u64,
}

#[derive(Deserialize)]
struct Top {
    k: usize,
    first: f64,
    last: Option<f64>,
}

fn goldens() -> Goldens {
    serde_json::from_str(include_str!("../fixtures/classification_goldens.json"))
        .expect("the fixture is JSON")
}

fn measure(signature: &str, records: &[String], references: &[String]) -> Result<MetricValue, ScoreError> {
    let options = ScoreOptions { scorer: Scorer::from_signature(signature)?, resampling: None };
    let streams = if references.is_empty() { vec![] } else { vec![references.to_vec()] };
    score(records, &streams, &options)
}

fn lines<T: serde::Serialize>(key: &str, values: &[T]) -> Vec<String> {
    values.iter().map(|value| serde_json::json!({ key: value }).to_string()).collect()
}

fn text(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn shares_are_scikit_learns_and_numpys() {
    let goldens = goldens();
    assert_eq!(goldens.sklearn, "1.7.2");
    let mut compared = 0;
    for case in &goldens.cases {
        let (name, classes) = (&case.name, case.classes);
        let labels: Vec<String> = case.labels.iter().map(usize::to_string).collect();
        let (scores, ranking) = (lines("scores", &case.scores), lines("classes", &case.ranking));
        let mut equal = |metric: &str, top: usize, ties: &str, records: &[String], golden: f64| {
            let signature = format!("metric:{metric}|nrefs:1|top:{top}|classes:{classes}|ties:{ties}");
            let found = measure(&signature, records, &labels).unwrap().value;
            assert!((found - 100.0 * golden).abs() < 1e-12, "{name}, {signature}: {found} is not {golden}");
            compared += 1;
        };
        equal("accuracy", 1, "first", &scores, case.accuracy);
        equal("error", 1, "first", &scores, case.error);
        for top in &case.top {
            equal("accuracy", top.k, "first", &scores, top.first);
            equal("accuracy", top.k, "first", &ranking, top.first);
            if let Some(last) = top.last {
                assert!(last != top.first, "{name}: no tie decides anything");
                equal("accuracy", top.k, "last", &scores, last);
            }
        }
    }
    assert!(compared > 15, "{compared}");
}

#[test]
fn f1_and_its_classes_are_scikit_learns() {
    let goldens = goldens();
    let mut compared = 0;
    for case in &goldens.cases {
        let (name, classes) = (&case.name, case.classes);
        let labels: Vec<String> = case.labels.iter().map(usize::to_string).collect();
        let answers: Vec<String> = case.ranking.iter().map(|ranking| ranking[0].to_string()).collect();
        let signature = format!("metric:f1|nrefs:1|average:macro|classes:{classes}|ties:first");
        for records in [lines("scores", &case.scores), lines("classes", &case.ranking), answers] {
            let found = measure(&signature, &records, &labels).unwrap();
            assert!((found.value - 100.0 * case.f1).abs() < 1e-12, "{name}: {}", found.value);
            let by_class = found.detail["by_class"].as_array().unwrap();
            assert_eq!(by_class.len(), case.by_class.len(), "{name}");
            for (found, due) in by_class.iter().zip(&case.by_class) {
                assert_eq!((&found["class"], &found["records"]), (&due.class.into(), &due.records.into()));
                for (key, due) in [("precision", due.precision), ("recall", due.recall), ("f1", due.f1)] {
                    let found = found[key].as_f64().unwrap();
                    assert!((found - 100.0 * due).abs() < 1e-12, "{name}, {key}: {found} is not {due}");
                }
                compared += 1;
            }
        }
    }
    let rare = goldens.cases.iter().find(|case| case.name == "rare").unwrap();
    assert!(compared > 80 && rare.by_class.len() < rare.classes, "a class is in no record and no answer");
}

#[test]
fn f1_counts_names_and_missing_answers_as_computed_by_hand() {
    let signature = "metric:f1|nrefs:1|average:macro|classes:3|ties:first";
    let references = text(&["ham", "ham", "ham", "spam"]);
    let records = text(&["ham", r#"{"classes": ["spam", "ham"]}"#, "", "spam"]);
    // Of ham one of three is found, and its one answer is right: 2 x 1 / (3 + 1). Of spam one of
    // one is found, and one of two answers is right: 2 x 1 / (1 + 2). No third class is there.
    let found = measure(signature, &records, &references).unwrap();
    assert!((found.value - 100.0 * (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-12, "{}", found.value);
    assert_eq!(found.detail["line"], "by class: ham 50.00, spam 66.67");
    let many = measure(signature, &text(&["a", "b"]), &text(&["c", "d"])).unwrap_err().to_string();
    assert!(many.contains("classes = 3 is out of range") && many.contains("have more classes"), "{many}");
    // Equal scores: the first class, or the last one.
    let tie = text(&[r#"{"scores": [1, 1, 0]}"#]);
    let of = |ties: &str| measure(&signature.replace("ties:first", ties), &tie, &text(&["1"])).unwrap().value;
    assert_eq!((of("ties:first"), of("ties:last")), (0.0, 100.0));
}

#[test]
fn an_interval_of_f1_is_drawn_over_records() {
    // Of 400 records a tenth is wrong, as many of each class: F1 is about the accuracy, 90.
    let labels: Vec<String> = (0..400).map(|at| (at % 2).to_string()).collect();
    let records: Vec<String> = (0..400).map(|at| ((at + usize::from(at % 20 < 2)) % 2).to_string()).collect();
    let options = ScoreOptions {
        scorer: Scorer::from_signature("metric:f1|nrefs:1|average:macro|classes:2|ties:first").unwrap(),
        resampling: Some(Resampling::default()),
    };
    let value = score(&records, &[labels], &options).unwrap();
    assert!((value.value - 90.0).abs() < 1e-9, "{}", value.value);
    let interval = value.interval.unwrap();
    assert!((interval.half_width - 1.96 * 1.5).abs() < 0.3, "{interval:?}");
}

#[test]
fn mean_log_likelihoods_are_scikit_learns() {
    for case in goldens().cases {
        let records = lines("nats", &case.nats);
        let loss = measure("metric:loss|of:nll|unit:example", &records, &[]).unwrap().value;
        assert!((loss - case.log_loss).abs() < 1e-9, "{}: {loss} is not {}", case.name, case.log_loss);
        let tokens: Vec<String> =
            case.nats.iter().map(|nats| serde_json::json!({"nats": nats, "tokens": 1}).to_string()).collect();
        let signature = "metric:perplexity|unit:token|unk:none|end:yes|state:reset";
        let perplexity = measure(signature, &tokens, &[]).unwrap().value;
        assert!((perplexity - case.perplexity).abs() < 1e-9, "{}: {perplexity}", case.name);
    }
}

#[test]
fn ties_are_settled_as_the_signature_says() {
    // Class 1 shares the highest score with classes 0 and 3.
    let records = text(&[r#"{"scores": [2, 2, 1, 2]}"#]);
    let of = |label: &str, top: usize, ties: &str| {
        let signature = format!("metric:accuracy|nrefs:1|top:{top}|classes:4|ties:{ties}");
        measure(&signature, &records, &text(&[label])).unwrap().value
    };
    assert_eq!([of("0", 1, "first"), of("1", 1, "first"), of("3", 1, "first")], [100.0, 0.0, 0.0]);
    assert_eq!([of("0", 1, "last"), of("1", 1, "last"), of("3", 1, "last")], [0.0, 0.0, 100.0]);
    assert_eq!([of("1", 2, "first"), of("1", 2, "last"), of("2", 3, "first")], [100.0, 100.0, 0.0]);
}

#[test]
fn names_and_plain_lines_are_classes_too() {
    let signature = "metric:accuracy|nrefs:1|top:1|classes:2|ties:first";
    let references = text(&["positive", r#"{"label": "negative"}"#, "1", "negative"]);
    let records = text(&["positive", r#"{"classes": ["negative", "positive"], "id": 7}"#, "01", ""]);
    let value = measure(signature, &records, &references).unwrap();
    assert_eq!(value.value, 50.0);
    assert_eq!((value.detail["right"].as_u64(), value.detail["wrong"].as_u64()), (Some(2), Some(2)));
    let printed = value.signature.to_string();
    assert!(
        printed.starts_with("metric:accuracy|nrefs:1|top:1|classes:2|ties:first|version:zoo."),
        "{printed}"
    );
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_nothing_is_scored() {
    let one = "metric:accuracy|nrefs:1|top:1|classes:3|ties:first";
    let two = "metric:accuracy|nrefs:1|top:2|classes:3|ties:first";
    let f1 = "metric:f1|nrefs:1|average:macro|classes:3|ties:first";
    let perplexity = "metric:perplexity|unit:token|unk:none|end:yes|state:reset";
    let left_out = "metric:perplexity|unit:word|unk:left-out|end:no|state:carried";
    for (signature, record, reference, problem) in [
        (one, r#"{"scores": [1, 2]}"#, "0", "2 scores, and the signature says classes:3"),
        (f1, r#"{"scores": [1, 2]}"#, "0", "2 scores, and the signature says classes:3"),
        (f1, r#"{"scores": [1, 2, 3]}"#, "cat", "the reference is `cat`"),
        (f1, r#"{"classes": []}"#, "0", "a ranking of 0"),
        (f1, "7", "2", "class 7 of 3"),
        (f1, "1", " ", "its reference names no class"),
        (one, r#"{"scores": [1, 2, null]}"#, "0", "invalid type: null"),
        (one, r#"{"scores": [1, 2, 3]}"#, "cat", "the reference is `cat`"),
        (one, r#"{"scores": [1, 2, 3]}"#, "3", "class 3 of 3"),
        (one, r#"{"scores": [1, 2, 3], "label": 1}"#, "2", "the record has label 1, the reference 2"),
        (one, r#"{"scores": [1, 2, 3], "classes": [1]}"#, "2", "both `scores` and `classes`"),
        (one, r#"{"probabilities": [1, 2, 3]}"#, "2", "neither `scores` nor `classes`"),
        (one, "7", "2", "class 7 of 3"),
        (one, "1", " ", "its reference names no class"),
        (two, "1", "2", "top:2 needs a ranking"),
        (two, r#"{"classes": [1]}"#, "2", "a ranking of 1"),
        (two, r#"{"classes": [1, 1]}"#, "2", "class 1 appears twice"),
        (perplexity, "words", "", "expected value"),
        (perplexity, r#"{"nats": 1.5}"#, "", "no `tokens`"),
        (perplexity, r#"{"nats": 1.5, "tokens": 0}"#, "", "there is no mean"),
        (perplexity, r#"{"nats": 1.5, "tokens": -1}"#, "", "invalid value"),
        (
            perplexity,
            r#"{"nats": 1.5, "tokens": 2, "state": "carried"}"#,
            "",
            "the signature says state:reset",
        ),
        (perplexity, r#"{"nats": 2, "tokens": 2, "unknown": {"nats": 1, "count": 1}}"#, "", "says unk:none"),
        (left_out, r#"{"nats": 2, "words": 2, "state": "carried"}"#, "", "no `end`"),
        (
            left_out,
            r#"{"nats": 2, "words": 2, "state": "carried", "end": {"nats": 1, "count": 3}}"#,
            "",
            "more units than there are",
        ),
        ("metric:loss|of:objective|unit:frame", r#"{"loss": 2, "count": -1}"#, "", "2 over -1"),
    ] {
        let references = if reference.is_empty() { vec![] } else { text(&[reference]) };
        let error = measure(signature, &text(&[record]), &references).unwrap_err().to_string();
        assert!(error.starts_with("line 1 of the records: "), "{record}: {error}");
        assert!(error.contains(problem) && error.contains("\nhint: "), "{record}: {error}");
    }
    let none = measure(one, &text(&["1"]), &[]).unwrap_err();
    assert_eq!(none, ScoreError::NoReferences);
}

/// Two sentences of 3 words with one unknown token and one end token each; nats computed by hand.
fn sentences(state: &str) -> Vec<String> {
    let record = |nats: f64, unknown: f64| {
        serde_json::json!({
            "nats": nats, "tokens": 6, "words": 4, "characters": 12, "bytes": 16, "state": state,
            "end": {"nats": 0.5, "count": 1}, "unknown": {"nats": unknown, "count": 1},
        })
        .to_string()
    };
    vec![record(9.0, 4.0), record(6.0, 3.0)]
}

#[test]
fn unit_unknowns_and_ends_change_a_perplexity_as_computed_by_hand() {
    for (options, mean) in [
        ("unit:token|unk:scored|end:yes|state:reset", 15.0 / 12.0),
        ("unit:word|unk:scored|end:yes|state:reset", 15.0 / 8.0),
        ("unit:word|unk:scored|end:no|state:reset", 14.0 / 6.0),
        ("unit:word|unk:left-out|end:yes|state:reset", 8.0 / 6.0),
        ("unit:word|unk:left-out|end:no|state:reset", 7.0 / 4.0),
    ] {
        let of = |metric: &str| measure(&format!("metric:{metric}|{options}"), &sentences("reset"), &[]);
        assert!((of("perplexity").unwrap().value - f64::exp(mean)).abs() < 1e-12, "{options}");
        assert!((of("loss|of:nll").unwrap().value - mean).abs() < 1e-12, "{options}");
    }
    let bits = |unit: &str| {
        let signature = format!("metric:bits-per-character|unit:{unit}|unk:scored|end:yes|state:carried");
        measure(&signature, &sentences("carried"), &[]).unwrap().value
    };
    assert!((bits("character") - 15.0 / 24.0 / std::f64::consts::LN_2).abs() < 1e-12);
    assert!((bits("byte") - 15.0 / 32.0 / std::f64::consts::LN_2).abs() < 1e-12);
    let sentence = "metric:loss|of:nll|unit:sentence|unk:scored|end:no|state:reset";
    assert_eq!(measure(sentence, &sentences("reset"), &[]).unwrap().value, 7.0);
    // PyTorch's script divides by the first word of each column, too, which it does not predict.
    let windows = text(&[r#"{"nats": 9, "words": 4, "given": 2}"#, r#"{"nats": 3, "words": 2}"#]);
    for (divisor, mean) in [("", 2.0), ("|divisor:predicted", 2.0), ("|divisor:all", 1.5)] {
        let signature = format!("metric:loss|of:nll|unit:word|unk:scored|end:yes|state:reset{divisor}");
        let found = measure(&signature, &windows, &[]).unwrap();
        assert_eq!(found.value, mean, "{divisor}");
        assert_eq!(found.signature.to_string().contains("divisor"), divisor == "|divisor:all");
    }
    let objective = text(&[r#"{"loss": 3, "count": 2}"#, r#"{"loss": 5, "count": 6, "mel": 1}"#]);
    assert_eq!(measure("metric:loss|of:objective|unit:frame", &objective, &[]).unwrap().value, 1.0);
}

#[test]
fn an_interval_is_drawn_over_records() {
    let records: Vec<String> =
        (0..400).map(|at| if at % 10 == 0 { "1".to_owned() } else { "0".to_owned() }).collect();
    let options = ScoreOptions {
        scorer: Scorer::from_signature("metric:error|nrefs:1|top:1|classes:2|ties:first").unwrap(),
        resampling: Some(Resampling::default()),
    };
    let value = score(&records, &[vec!["0".to_owned(); 400]], &options).unwrap();
    assert_eq!(value.value, 10.0);
    // The standard error of a share of 0.1 among 400 is 1.5 points.
    let interval = value.interval.unwrap();
    assert!((interval.half_width - 1.96 * 1.5).abs() < 0.3, "{interval:?}");
    assert!((interval.lower + interval.upper - 20.0).abs() < 1.0, "{interval:?}");
}

#[test]
fn records_are_written_as_they_are_read() {
    let class = ClassRecord {
        classes: Some(vec![Class::Number(2), Class::Name("cat".into())]),
        label: Some(Class::Number(2)),
        ..ClassRecord::default()
    };
    let scores = ClassRecord { scores: Some(vec![0.1, -2.5]), ..ClassRecord::default() };
    assert_eq!(class.to_string(), r#"{"classes":[2,"cat"],"label":2}"#);
    assert_eq!(scores.to_string(), r#"{"scores":[0.1,-2.5]}"#);
    assert_eq!(serde_json::from_str::<ClassRecord>(&class.to_string()).unwrap(), class);
    let cost = LikelihoodRecord {
        nats: 12.3,
        tokens: Some(4),
        end: Some(LikelihoodPart { nats: 0.4, count: 1 }),
        state: ModelState::Carried,
        ..LikelihoodRecord::default()
    };
    assert_eq!(
        cost.to_string(),
        r#"{"nats":12.3,"tokens":4,"end":{"nats":0.4,"count":1},"state":"carried"}"#
    );
    assert_eq!(
        LikelihoodRecord { state: ModelState::Reset, end: None, ..cost }.to_string(),
        r#"{"nats":12.3,"tokens":4}"#
    );
    assert_eq!(LossRecord { loss: 3.5, count: 80.0 }.to_string(), r#"{"loss":3.5,"count":80.0}"#);
    let broken = LikelihoodRecord { nats: f64::NAN, tokens: Some(1), ..LikelihoodRecord::default() };
    let signature = "metric:perplexity|unit:token|unk:none|end:yes|state:reset";
    assert!(
        measure(signature, &[broken.to_string()], &[])
            .unwrap_err()
            .to_string()
            .contains("invalid type: null")
    );
}
