//! `zoo explain`: the parts of a gap, for files and for runs.

use crate::binary::Zoo;

/// German-like lines with compounds, and a system's output for them.
fn texts(zoo: &Zoo) -> (String, String) {
    let compounds = ["Ex-Freund", "SPD-Politiker", "E-Mail-Adresse", "Haus", "Wetter"];
    let line = |i: usize| {
        let (one, two) = (compounds[i % 5], compounds[(i / 3) % 5]);
        match i % 3 {
            0 => format!("Der {one} sieht den {two}, und das ist gut.\n"),
            1 => format!("„{one}“, sagte er, „hört z.B. nie den {two} in der Saison 2012-{}.“\n", 13 + i % 6),
            _ => format!("Am {}. Mai kauft die {one} einen {two}; dann war Ruhe.\n", 1 + i % 28),
        }
    };
    let reference: String = (0..150).map(line).collect();
    let spoilt: String = (0..150)
        .map(|i| match i % 6 {
            0 => line(i).replace("Ex-Freund", "Ex-Mann").replace("und das", "aber das"),
            1 => line(i).replace("SPD-Politiker", "CDU-Politiker").replace("-15", "-16"),
            2 => line(i).to_lowercase(),
            _ => line(i),
        })
        .collect();
    let path = |name, text: &str| zoo.file(name, text).to_str().unwrap().to_owned();
    (path("hyp.de", &spoilt), path("ref.de", &reference))
}

#[test]
fn planted_causes_come_first() {
    let zoo = Zoo::new();
    let (hypotheses, references) = texts(&zoo);
    let score = |arguments: &[&str]| {
        let all = [
            &["score", "--hypotheses", &hypotheses, "--references", &references, "--format", "json"],
            arguments,
        ];
        zoo.ends_with(0, &all.concat()).json()["value"].as_f64().unwrap()
    };
    let explain = |claimed: f64, arguments: &[&str]| {
        let claimed = format!("{claimed:.2}");
        let all = [
            "explain",
            "--hypotheses",
            &hypotheses,
            "--references",
            &references,
            "--claimed",
            &claimed,
            "--format",
            "json",
        ];
        let found = zoo.ends_with(0, &[&all[..], arguments].concat()).json();
        let parts = found["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["contribution"].as_f64().unwrap()).sum();
        let number = |key: &str| found[key].as_f64().unwrap();
        assert!(
            (number("claimed") + sum + number("unexplained") - number("measured")).abs() < 1e-9,
            "{found}"
        );
        found
    };
    let first =
        |found: &serde_json::Value| found["parts"][0]["causes"][0].as_str().unwrap_or("nothing").to_owned();
    let found = explain(score(&["--case", "lower"]), &[]);
    assert_eq!(first(&found), "case", "{found}");
    let found = explain(score(&["--tokenizer", "intl"]), &["--language", "de"]);
    assert_eq!(first(&found), "tokenisation", "{found}");
    // The published number is computed on tokenised text with split compounds, as the script does
    // it.
    let all = explain(0.0, &["--language", "de"]);
    let points = all["points"].as_array().unwrap();
    assert_eq!(points.len(), 12);
    let point = |tokens: &str, compounds: &str| {
        let fits = |p: &&serde_json::Value| {
            p["tokenisation"] == tokens && p["compound_splitting"] == compounds && p["case"] == "cased"
        };
        points.iter().find(fits).unwrap()["score"].as_f64().unwrap()
    };
    let found = explain(point("tokenised (Moses)", "split"), &["--language", "de"]);
    assert_eq!(first(&found), "compound-splitting", "{found}");
    // The claim comes from a better search.
    let better = std::fs::read_to_string(&references).unwrap().replacen("Wetter", "Regen", 9);
    let better = zoo.file("beam.de", &better);
    let claimed = zoo.ends_with(
        0,
        &["score", "--hypotheses", better.to_str().unwrap(), "--references", &references, "--format", "json"],
    );
    let search = format!("beam10={}", better.display());
    let found = explain(claimed.json()["value"].as_f64().unwrap(), &["--search", &search]);
    assert_eq!(first(&found), "search", "{found}");
    assert_eq!(found["parts"][0]["published"], "beam10");

    let all = ["explain", "--hypotheses", &hypotheses, "--references", &references, "--claimed", "90"];
    let text = zoo.ends_with(0, &all).stdout;
    for line in
        ["claimed", "not explained", "measured", "under every convention", "note: the language is unknown"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_run_is_explained_with_every_search_and_weight_it_stores() {
    let zoo = Zoo::new();
    let name = "multi30k-transformer-tiny";
    let arguments = ["reproduce", name, "--tier", "smoke", "--arms", "fp32", "--offline", "--format", "json"];
    let outcome = zoo.ends_with(0, &arguments).json();
    let run = outcome["runs"][0]["folder"].as_str().unwrap();
    let found = zoo.ends_with(0, &["explain", run, "--format", "json"]).json();
    assert_eq!(found["claimed"], 41.02);
    assert_eq!(found["measured"], outcome["claims"][0]["verdict"]["measured"]);
    assert!(found["notes"].to_string().contains("not decoded"), "{found}");
    let weights = |found: &serde_json::Value| {
        let mut all: Vec<String> = (found["points"].as_array().unwrap().iter())
            .map(|p| p["weights"].as_str().unwrap().to_owned())
            .collect();
        all.dedup();
        all
    };
    assert_eq!(weights(&found), ["mean of 2 epochs"]);
    let found = zoo.ends_with(0, &["explain", run, "--decode", "--format", "json"]).json();
    assert_eq!(weights(&found), ["mean of 2 epochs", "last"]);
    // The decodings are stored now.
    let again = zoo.ends_with(0, &["explain", run, "--format", "json"]).json();
    assert_eq!(again["points"], found["points"]);
    zoo.ends_with(2, &["explain", run, "--claim", "2"]).says("claim 2 states no score");
    zoo.ends_with(2, &["explain", run, "--eval", "tset"]).says("was not decoded");
}

#[test]
fn what_cannot_be_explained_says_why() {
    let zoo = Zoo::new();
    let (hypotheses, references) = texts(&zoo);
    let explain = |code: i32, arguments: &[&str]| {
        zoo.ends_with(code, &[&["explain", "--hypotheses", &hypotheses], arguments].concat())
    };
    explain(2, &["--references", &references]).says("no claimed score");
    explain(2, &["--claimed", "30"]).says("no references");
    explain(2, &["--claimed", "NaN", "--references", &references]).says("is not a valid score");
    explain(2, &["--claimed", "30", "--references", &references, "--search", "beam"]).says("not NAME=FILE");
    explain(2, &["--claimed", "30", "--references", &references, "--language", "xx"]).says("xx");
    explain(2, &["--recipe", "transformer-big", "--claim", "9", "--references", &references])
        .says("there is no claim 9");
    let short = zoo.file("short", "a\n");
    explain(4, &["--claimed", "30", "--references", short.to_str().unwrap()]).says("1 lines");
    zoo.ends_with(2, &["explain"]);
    zoo.ends_with(2, &["explain", "none"]).says("is not a run folder");
}
