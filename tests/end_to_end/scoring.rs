//! `zoo score`, compared with numbers of sacreBLEU 2.6.0.

use crate::binary::Zoo;

/// Three segments with two reference streams.
const HYPOTHESES: &str = "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n";
const FIRST: &str = "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n";
const SECOND: &str = "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n";

#[test]
fn equal_text_scores_100_by_every_metric() {
    let zoo = Zoo::new();
    zoo.file("hyp", HYPOTHESES);
    zoo.file("ref", FIRST);
    for (metric, value) in [
        ("bleu", 100.0),
        ("multi-bleu", 100.0),
        ("chrf", 100.0),
        ("ter", 0.0),
        ("wer", 0.0),
        ("cer", 0.0),
        ("exact-match", 100.0),
    ] {
        let found = zoo
            .ends_with(
                0,
                &[
                    "score",
                    "--hypotheses",
                    "hyp",
                    "--references",
                    "ref",
                    "--metric",
                    metric,
                    "--format",
                    "json",
                ],
            )
            .json();
        let difference = found["value"].as_f64().unwrap() - value;
        assert!(difference.abs() < 1e-9, "{metric}: {found}");
    }
}

/// The example of sacreBLEU's own README: BLEU 48.53 with two reference streams.
#[test]
fn two_reference_streams_give_the_known_bleu() {
    let zoo = Zoo::new();
    zoo.file("hyp", "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n");
    zoo.file("a", "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n");
    zoo.file("b", SECOND);
    let arguments = ["score", "--hypotheses", "hyp", "--references", "a", "--references", "b"];
    let text = zoo.ends_with(0, &arguments).stdout;
    assert!(text.starts_with("bleu 48.53\n"), "{text}");
    let signature = "signature nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:";
    assert!(text.lines().any(|line| line.starts_with(signature)), "{text}");
}

#[test]
fn records_are_scored_by_their_signature() {
    let zoo = Zoo::new();
    zoo.file("classes", "{\"scores\": [0.1, 2.5, 1]}\n{\"classes\": [2, 0, 1]}\n0\n");
    zoo.file("labels", "1\n0\n0\n");
    let top1 = "metric:accuracy|nrefs:1|top:1|classes:3|ties:first";
    let call = ["score", "--hypotheses", "classes", "--references", "labels", "--signature", top1];
    let text = zoo.ends_with(0, &call).stdout;
    assert!(text.starts_with(&format!("accuracy 66.67\nsignature {top1}|version:zoo.")), "{text}");
    let f1 = ["score", "--hypotheses", "classes", "--references", "labels", "--metric", "f1"];
    let told = zoo.ends_with(2, &f1).stderr;
    assert!(told.contains("--classes <N>"), "{told}");
    // Class 0: 1 of 2 records, 1 of 1 answers; class 1: 1 of 1, 1 of 1; class 2: no record, 1
    // answer.
    let text = zoo.ends_with(0, &[&f1[..], &["--classes", "3"]].concat()).stdout;
    assert!(text.starts_with("f1 55.56\nby class: 0 66.67, 1 100.00, 2 0.00\n"), "{text}");
    // Classes that no record has cost neither time nor memory.
    zoo.file("answers", "1\n2\n0\n");
    let answers = ["score", "--hypotheses", "answers", "--references", "labels", "--metric", "f1"];
    let many =
        zoo.ends_with(0, &[&answers[..], &["--classes", "18446744073709551615", "--interval"]].concat());
    assert!(many.stdout.starts_with("f1 55.56"), "{}", many.stdout);
    let accuracy = [&f1[..6], &["accuracy", "--classes", "3"]].concat();
    assert!(zoo.ends_with(0, &accuracy).stdout.starts_with("accuracy 66.67\n"));
    zoo.ends_with(2, &[&f1[..6], &["wer", "--classes", "3"]].concat()).says("wer has no --classes");
    // What a likelihood is made of stands in its record.
    zoo.file("costs", "{\"nats\": 2, \"tokens\": 3}\n{\"nats\": 1, \"tokens\": 1, \"state\": \"reset\"}\n");
    let perplexity = "metric:perplexity|unit:token|unk:none|end:yes|state:reset";
    let call = ["score", "--hypotheses", "costs", "--signature", perplexity];
    let text = zoo.ends_with(0, &call).stdout;
    assert!(text.starts_with("perplexity 2.12\n"), "{text}");
    zoo.file("wrong", "{\"nats\": 2, \"tokens\": 3}\n{\"nats\": 1}\n");
    let call = ["score", "--hypotheses", "wrong", "--signature", perplexity];
    zoo.ends_with(4, &call).says("wrong:2: no `tokens`");
    zoo.ends_with(2, &["score", "--hypotheses", "classes", "--signature", top1]).says("no references");
}

#[test]
fn a_line_that_costs_too_much_is_named_with_its_file() {
    let zoo = Zoo::new();
    zoo.file("ref", "a\nb\n");
    zoo.file("hyp", "a\nb\n");
    let lost = format!("a\n{}\n", "word ".repeat(2_000_000));
    zoo.file("long", &lost);
    let score = |metric: &str, hypotheses: &str, references: &str| {
        let call = ["score", "--metric", metric, "--hypotheses", hypotheses, "--references", references];
        zoo.ends_with(4, &call)
    };
    for metric in ["bleu", "multi-bleu", "chrf", "ter"] {
        score(metric, "long", "ref").says("cannot score long:2: ");
        score(metric, "hyp", "long").says("cannot score long:2: ");
    }
    zoo.file("other", &lost.replace("word", "other"));
    for metric in ["wer", "cer"] {
        score(metric, "long", "other").says("cannot score long:2: ");
    }
}

#[test]
fn stdin_is_read_and_the_interval_is_drawn() {
    let zoo = Zoo::new();
    zoo.file("ref", SECOND);
    let arguments = ["score", "--references", "ref", "--interval", "--samples", "200", "--format", "json"];
    let found = zoo.run_with_input(&arguments, HYPOTHESES);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let found = found.json();
    let (low, high) = (&found["interval"]["lower"], &found["interval"]["upper"]);
    assert!(low.as_f64().unwrap() <= high.as_f64().unwrap(), "{found}");
    assert!(found["signature"].as_str().unwrap().contains("bs:200|seed:12345"), "{found}");
}

#[test]
fn what_cannot_be_scored_says_why() {
    let zoo = Zoo::new();
    zoo.file("hyp", HYPOTHESES);
    zoo.file("two", "a\nb\n");
    zoo.file("empty", "");
    let score =
        |code: i32, rest: &[&str]| zoo.ends_with(code, &[&["score", "--hypotheses", "hyp"], rest].concat());
    score(4, &["--references", "two"]).says("reference stream 1 has 2 lines, the hypotheses have 3");
    score(4, &["--references", "none"]).says("none");
    score(2, &["--references", "hyp", "--tokenizer", "13b"]).says("unknown tokenizer `13b`");
    score(2, &["--references", "hyp", "--metric", "ter", "--tokenizer", "13a"])
        .says("ter has no --tokenizer");
    score(2, &["--references", "hyp", "--smoothing-value", "0.1"])
        .says("--smoothing-value without --smoothing");
    score(2, &["--references", "hyp", "--signature", "tok:13a"]).says("signature");
    let ended = zoo.ends_with(4, &["score", "--hypotheses", "empty", "--references", "two"]);
    ended.says("there are no hypotheses to score");
    std::fs::write(zoo.home().join("bad"), b"a\nb\xff\nc\n").unwrap();
    zoo.ends_with(4, &["score", "--hypotheses", "bad", "--references", "two"]).says("bad:2: not UTF-8");
}
