//! `zoo judge`: verdicts on external scores, hypotheses and points.

use crate::binary::{Zoo, in_root};

#[test]
fn scores_from_outside_are_judged() {
    let zoo = Zoo::new();
    let ended = zoo.run(&["judge", "transformer-big", "--scores", "27.4,27.5,27.6", "--record"]);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let mut lines = ended.stdout.lines();
    assert_eq!(lines.next(), Some("PUBLISHED CLAIMS"));
    let verdict = lines.next().unwrap();
    assert!(verdict.starts_with("REPRODUCED  claim 1: bleu 27.5"), "{}", ended.stdout);
    assert!(ended.stdout.contains("taken to be the claim's"), "{}", ended.stdout);
    // Checks by this project have their own heading, and the summary counts them separately.
    assert!(ended.stdout.contains("\nOWN CHECKS\nNOT RUN  claim 3"), "{}", ended.stdout);
    assert!(
        ended
            .stdout
            .ends_with("published claims: 2 REPRODUCED, 1 NOT RUN, 1 NOT JUDGEABLE\nown checks: 1 NOT RUN\n"),
        "{}",
        ended.stdout
    );
    assert!(ended.stderr.contains("recorded as entry 0"), "{}", ended.stderr);
    let listed = zoo.ends_with(0, &["ledger", "list", "--format", "json"]).part("records");
    assert_eq!(listed[0]["recipe"], "transformer-big");
    assert_eq!(listed[0]["end"], "external");
}

#[test]
fn the_exit_code_is_the_verdict() {
    let zoo = Zoo::new();
    let judge = |scores: &str, code: i32| {
        zoo.ends_with(code, &["judge", "transformer-big", "--scores", scores]);
    };
    judge("27.4,27.5,27.6", 0);
    // With a single score the stated spread counts three times, so only scores far from the margin
    // are decided.
    judge("27.5", 11);
    judge("30.0", 0);
    judge("20.0", 10);
    judge("27.0", 11);
    assert!(!zoo.home().join("ledger.jsonl").exists());
    // Parity needs a baseline. From scores alone, without a test set to resample, it cannot be
    // REPRODUCED.
    let parity = |code: i32, rest: &[&str]| {
        let arguments = [&["judge", "transformer-big", "--claim", "3"], rest].concat();
        zoo.ends_with(code, &arguments)
    };
    parity(12, &["--scores", "27.4"]);
    let three = ["--scores", "27.9,28.0,28.1", "--baseline-scores", "27.4,27.4,27.4"];
    let ended = parity(11, &three);
    assert!(ended.stdout.contains("give the hypotheses of both arms"), "{}", ended.stdout);
    parity(10, &["--scores", "25.1,25.0,25.2", "--baseline-scores", "27.4,27.4,27.4"]);
    let ended = parity(12, &["--scores", "27.4", "--baseline-scores", "27.4,27.4"]);
    assert!(ended.stdout.contains("cannot be paired"), "{}", ended.stdout);
}

#[test]
fn parity_is_judged_from_the_hypotheses_of_both_arms() {
    let zoo = Zoo::new();
    let reference: Vec<String> =
        (0..200).map(|i| format!("a{} b{i} c{} d e{} f", i % 7, i % 5, i % 3)).collect();
    // Every n-th line is wrong.
    let wrong = |n: usize| -> String {
        reference
            .iter()
            .enumerate()
            .map(|(i, line)| if i % n == 0 { "x y\n".into() } else { format!("{line}\n") })
            .collect()
    };
    zoo.file("ref", &reference.iter().map(|line| format!("{line}\n")).collect::<String>());
    let judge = |ours: usize, baseline: usize, code: i32| {
        zoo.file("ours", &wrong(ours));
        zoo.file("baseline", &wrong(baseline));
        let arguments = [
            "judge",
            "transformer-big",
            "--claim",
            "3",
            "--references",
            "ref",
            "--hypotheses",
            "ours",
            "--baseline-hypotheses",
            "baseline",
            "--record",
            "--format",
            "json",
        ];
        zoo.ends_with(code, &arguments).part("claims")[0]["verdict"].clone()
    };
    let better = judge(50, 10, 0);
    assert_eq!(better["outcome"], "REPRODUCED");
    assert!(better["measured"].as_f64().unwrap() > 5.0, "{better}");
    let worse = judge(4, 50, 10);
    assert_eq!(worse["outcome"], "NOT-REPRODUCED");
    // All results can be recomputed, including the paired resampling.
    let again = zoo.ends_with(0, &["ledger", "recheck", "--format", "json"]).json();
    assert_eq!(
        (again["scores"].as_u64(), again["taken_from_record"].as_u64()),
        (Some(4), Some(0)),
        "{again}"
    );
}

#[test]
fn unlike_conditions_are_not_comparable() {
    let zoo = Zoo::new();
    let other = "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp";
    let ended = zoo.ends_with(
        12,
        &["judge", "transformer-big", "--scores", "27.5", "--signature", other, "--claim", "1"],
    );
    assert!(ended.stdout.contains("NOT COMPARABLE"), "{}", ended.stdout);
    assert!(ended.stdout.contains("case:lc"), "{}", ended.stdout);
    let ended =
        zoo.ends_with(12, &["judge", "transformer-big", "--scores", "27.5", "--arm", "fp32", "--claim", "2"]);
    assert!(ended.stdout.contains("the claim is on arm mixed, ours is fp32"), "{}", ended.stdout);
}

#[test]
fn hypotheses_are_scored_against_generated_references() {
    let zoo = Zoo::new();
    // Scoring other text first stores the references of the reversal test set.
    let wrong = "α\n".repeat(2000);
    let wrong = zoo.file("wrong", &wrong);
    let ended = zoo.ends_with(
        10,
        &[
            "judge",
            "reversal-transformer",
            "--hypotheses",
            wrong.to_str().unwrap(),
            "--claim",
            "1",
            "--record",
            "--format",
            "json",
        ],
    );
    let found = ended.part("claims");
    assert_eq!(found[0]["verdict"]["outcome"], "NOT-REPRODUCED");
    assert_eq!(found[0]["verdict"]["measured"], 0.0);

    // The references were stored with the record. They are the perfect hypotheses.
    let entry = zoo.ends_with(0, &["ledger", "show", "0", "--format", "json"]).json();
    let digest = entry["record"]["data"]["references.test"].as_str().unwrap().to_owned();
    let references = zoo.home().join(format!("hypotheses/external/{digest}.txt"));
    let perfect = zoo.ends_with(
        0,
        &[
            "judge",
            "reversal-transformer",
            "--hypotheses",
            references.to_str().unwrap(),
            "--claim",
            "1",
            "--record",
            "--format",
            "json",
        ],
    );
    assert_eq!(perfect.part("claims")[0]["verdict"]["outcome"], "REPRODUCED");
    // Both results can be recomputed.
    let again = zoo.ends_with(0, &["ledger", "recheck"]).stdout;
    assert!(again.contains("2 scores and 2 verdicts derived again"), "{again}");
    // A changed hypothesis is reported by name.
    let text = std::fs::read_to_string(&references).unwrap();
    std::fs::write(&references, text.replacen('α', "β", 1)).unwrap();
    zoo.ends_with(7, &["ledger", "recheck"]).says("record ");
}

#[test]
fn what_cannot_be_judged_says_why() {
    let zoo = Zoo::new();
    zoo.ends_with(2, &["judge", "transformer-big", "--scores", "NaN"]).says("is not a valid score");
    zoo.ends_with(2, &["judge", "transformer-big", "--scores", "27", "--claim", "9"])
        .says("there is no claim 9");
    zoo.ends_with(2, &["judge", "transformer-big", "--scores", "27", "--arm", "fp8"]).says("has no arm fp8");
    let short = zoo.file("short", "α\n");
    let ended = zoo.ends_with(
        4,
        &["judge", "reversal-transformer", "--hypotheses", short.to_str().unwrap(), "--claim", "1"],
    );
    ended.says("short: it has 1 lines, the references have 2000");
    let offline = zoo.ends_with(
        4,
        &["judge", "multi30k-transformer-tiny", "--hypotheses", short.to_str().unwrap(), "--offline"],
    );
    offline.says("test_2016_flickr");
}

#[test]
fn what_cannot_be_a_result_is_refused() {
    let zoo = Zoo::new();
    let judge = |code: i32, rest: &[&str]| {
        zoo.ends_with(code, &[&["judge", "transformer-big", "--claim", "1"], rest].concat())
    };
    judge(2, &["--scores", "150"]).says("150 is not a valid score: it is not between 0 and 100");
    judge(2, &["--scores", "27.4", "--signature", "nrefs:1|case:mixed|case:lc|tok:13a"]).says("signature");
    // The same convention on another test set gives another quantity.
    let signature = |set: &str| format!("nrefs:1|eval:{set}|case:mixed|eff:no|tok:13a|smooth:exp");
    let other = judge(12, &["--scores", "27.4", "--signature", &signature("newstest2017")]);
    assert!(other.stdout.contains("ours is newstest2017"), "{}", other.stdout);
    judge(0, &["--scores", "27.4,27.5", "--signature", &signature("test")]);

    zoo.file("ref", "a b c d\ne f g h\n");
    for (name, text) in [("one", "a b c d\ne f g h\n"), ("two", "a b c d\ne f g h\n"), ("short", "a b c d\n")]
    {
        zoo.file(name, text);
    }
    let hypotheses = |files: &[&'static str]| {
        let files = files.iter().flat_map(|file| ["--hypotheses", file]);
        [&["--references", "ref"][..], &files.collect::<Vec<_>>()].concat()
    };
    judge(2, &hypotheses(&["one", "two"])).says("one and two have the same text");
    judge(4, &hypotheses(&["one", "short"])).says("short: it has 1 lines, the references have 2");
}

/// Claims may be on sets of different lengths. A file belongs to one set and is judged by the
/// claims on it.
#[test]
fn hypotheses_of_one_of_several_sets_are_judged_on_it() {
    let zoo = Zoo::new();
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    let claim = "\n[[claim]]\nkind = \"bound\"\nmetric = \"bleu\"\nvalue = 90.0\ndirection = \"higher\"\n\
                 signature = \"nrefs:1|case:mixed|eff:no|tok:none|smooth:none\"\neval = \"valid\"\ndecode = \"beam5\"\n\
                 arm = \"fp32\"\nsigma = 1.5\nn = 9\nmargin = 0.0\nmargin_reason = \"x\"\nsource = \"x\"\n";
    zoo.file("reversal-transformer.toml", &(text + claim));
    zoo.file("hypotheses", &"α\n".repeat(1000));
    let call = ["judge", "./reversal-transformer.toml", "--arm", "fp32", "--hypotheses", "hypotheses"];
    let ended = zoo.ends_with(10, &call);
    assert!(ended.stdout.contains("NOT RUN  claim 1"), "{}", ended.stdout);
    assert!(ended.stdout.contains("NOT REPRODUCED  claim 3"), "{}", ended.stdout);
}

#[test]
fn scores_on_the_way_are_held_against_a_published_trajectory() {
    let zoo = Zoo::new();
    let verdict = |points: &[&str]| {
        let options = points.iter().flat_map(|row| ["--points", row]);
        let all: Vec<&str> = ["judge", "gnmt-v2", "--format", "json"].into_iter().chain(options).collect();
        let found = zoo.run(&all).part("claims");
        let of_kind = |one: &&serde_json::Value| one["verdict"]["kind"] == "trajectory";
        let verdict = found.as_array().unwrap().iter().find(of_kind).unwrap()["verdict"].clone();
        (verdict["outcome"].as_str().unwrap().to_owned(), verdict["at"].as_u64(), verdict["seeds"].as_u64())
    };
    let published = "19.959,21.772,22.435,23.167,24.233,24.416";
    let alike = ["19.96,21.78,22.44,23.17,24.24,24.42", "19.95,21.76,22.43,23.16,24.22,24.41"];
    assert_eq!(verdict(&[published, alike[0], alike[1]]).0, "REPRODUCED");
    assert_eq!(verdict(&[published]).0, "INCONCLUSIVE", "one score counts the published sigmas three times");
    assert_eq!(verdict(&["19.9,21.7,22.4,23.1,24.2,21.0"]), ("NOT-REPRODUCED".into(), Some(6), Some(1)));
    // Two seeds, of which one ended early.
    assert_eq!(verdict(&["10.0,21.772", "10.1"]), ("NOT-REPRODUCED".into(), Some(1), Some(2)));
    assert_eq!(verdict(&[published, "19.959,21.772"]).0, "INCONCLUSIVE");
    assert_eq!(verdict(&["11,12,13,14,15,16,17"]).0, "NOT-RUN");
    let ended = zoo.run(&["judge", "gnmt-v2", "--points", "19.9,x"]);
    assert!(ended.code != 0 && ended.stderr.contains("`x` is not a valid score"), "{}", ended.stderr);
}

#[test]
fn verdicts_are_recorded_only_with_the_option_for_it() {
    let zoo = Zoo::new();
    let call = ["judge", "transformer-big", "--scores", "27.4,27.5,27.6"];
    let ended = zoo.ends_with(0, &call);
    assert!(ended.stderr.contains("not recorded; --record writes"), "{}", ended.stderr);
    assert!(!zoo.home().join("ledger.jsonl").exists());
    let ended = zoo.ends_with(0, &[&call[..], &["--record"]].concat());
    assert!(ended.stderr.contains("recorded as entry 0"), "{}", ended.stderr);
    assert!(zoo.home().join("ledger.jsonl").exists());
}

#[test]
fn a_score_that_looks_like_a_fraction_is_doubted_and_not_recorded() {
    let zoo = Zoo::new();
    let judge = |code: i32, rest: &[&str]| {
        zoo.ends_with(code, &[&["judge", "transformer-big", "--record"], rest].concat())
    };
    let value = ["--claim", "1", "--scores", "0.271"];
    let ended = judge(2, &value);
    ended.says("the score 0.271 looks like a fraction; bleu of claim 1 is in percent");
    assert!(ended.stderr.contains("hint: write 27.1, or pass --as-given"), "{}", ended.stderr);
    // Any two fractions are within a margin of half a point.
    judge(2, &["--claim", "3", "--scores", "0.15,0.16", "--baseline-scores", "0.27,0.28"])
        .says("the score 0.15 looks like a fraction");
    judge(2, &["--claim", "1", "--scores", "27.1,0.274"]).says("the score 0.274");
    zoo.ends_with(2, &["judge", "gnmt-v2", "--points", "0.199,0.216"]).says("the score 0.199");
    assert!(!zoo.home().join("ledger.jsonl").exists());
    judge(10, &[&value[..], &["--as-given"]].concat());
}

/// A task without searches records the name that its own evaluations have.
#[test]
fn a_claim_without_a_search_is_recorded_as_direct() {
    let zoo = Zoo::new();
    let classes: String = (0..100).map(|at| format!("{}\n", at % 10)).collect();
    zoo.file("labels", &classes);
    zoo.file("answers", &classes.replacen("7\n", "1\n", 1));
    let judge = ["judge", "mnist-mlp-keras", "--claim", "1", "--record", "--format", "json"];
    let answers = ["--hypotheses", "answers", "--references", "labels"];
    let found = zoo.run(&[&judge[..], &answers].concat()).part("claims");
    assert_eq!(found[0]["verdict"]["measured"], 99.0, "{found}");
    let entry = zoo.ends_with(0, &["ledger", "show", "0", "--format", "json"]).json();
    let score = &entry["record"]["scores"][0];
    assert_eq!((&score["eval"], &score["decode"]), (&"test".into(), &"direct".into()), "{entry}");
    let again = zoo.ends_with(0, &["ledger", "recheck"]).stdout;
    assert!(again.contains("1 scores and 1 verdicts derived again"), "{again}");
}
