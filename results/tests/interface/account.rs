//! Which verdicts of a ledger are listed, and which are counted.

use serde_json::json;
use zoo_recipes::{ClaimSpec, Statement};
use zoo_results::ledger::{Entry, HypothesesFile, Judgement, Ledger, Record, RunEnd, ScoreRecord};
use zoo_results::report::{Account, Earlier, RecipeStanding, render};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Evidence, Outcome, RunScore};

const SIGNATURE: &str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

fn claim(fields: serde_json::Value) -> ClaimSpec {
    let mut all = json!({
        "kind": "value", "metric": "bleu", "signature": SIGNATURE, "eval": "test", "decode": "beam4", "arm": "any",
        "value": 27.0, "direction": "higher", "sigma": 0.1, "n": 30, "margin": 2.0, "source": "synthetic",
    });
    for (key, value) in fields.as_object().unwrap() {
        all[key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

/// A record of one seed whose verdict was recorded as `outcome`.
fn record(claim: &ClaimSpec, score: f64, outcome: Outcome) -> Record {
    let sha256 = "c".repeat(64);
    let run = RunScore { hypotheses: Some(sha256.clone()), ..RunScore::scored(1, score) };
    let evidence = Evidence {
        arm: Some("fp32".into()),
        eval: Some("test".into()),
        decode: Some("beam4".into()),
        signature: Some(SIGNATURE.into()),
        runs: vec![run],
        plan: LookPlan::fixed(1),
        ..Evidence::default()
    };
    let mut judgement = Judgement::of(claim.clone(), evidence);
    judgement.verdict.outcome = outcome;
    Record {
        recipe: "synthetic".into(),
        recipe_hash: "ab".repeat(32),
        arm: Some("fp32".into()),
        end: RunEnd::Finished,
        seeds: vec![1],
        scores: vec![ScoreRecord {
            eval: "test".into(),
            decode: "beam4".into(),
            arm: "fp32".into(),
            seed: 1,
            moment: None,
            metric: "bleu".into(),
            signature: SIGNATURE.into(),
            value: score,
            interval: None,
            hypotheses: Some(HypothesesFile { path: "x".into(), sha256 }),
        }],
        judgements: vec![judgement],
        ..Record::default()
    }
}

fn entries(records: &[Record]) -> Vec<Entry> {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path().join("ledger.jsonl")).unwrap();
    for record in records {
        ledger.append(record).unwrap();
    }
    ledger.entries().unwrap()
}

fn standing(claims: Vec<ClaimSpec>) -> Vec<RecipeStanding> {
    vec![RecipeStanding {
        recipe: "synthetic".into(),
        hashes: ["ab".repeat(32)].into(),
        claims,
        evidence: "full-run".into(),
        generated: false,
        free: vec!["train.log_every".into()],
    }]
}

#[test]
fn a_changed_working_tree_is_listed_and_not_counted() {
    let clean = record(&claim(json!({})), 30.0, Outcome::Reproduced);
    let dirty = Record { dirty: true, ..record(&claim(json!({})), 20.0, Outcome::NotReproduced) };
    let crossed = Record { commits_crossed: vec!["abc+changes".into()], ..clean.clone() };
    for (record, why) in [(&dirty, "had changes"), (&crossed, "a part of the run")] {
        let (recipes, ledger) = (standing(vec![claim(json!({}))]), entries(std::slice::from_ref(record)));
        let account = Account::of(&recipes, &ledger);
        assert_eq!(account.claims[0].outcome, None);
        assert!(account.claims[0].listed[0].uncounted.unwrap().contains(why));
        let text = render(&recipes, &ledger).results;
        assert!(text.contains("\n| published claims | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |\n"), "{text}");
        assert!(
            text.contains(&format!("{} (not counted: ", account.claims[0].listed[0].verdict.outcome)),
            "{text}"
        );
    }
    // The record of the clean program still counts if a later one does not.
    let (recipes, ledger) = (standing(vec![claim(json!({}))]), entries(&[clean, dirty]));
    let account = Account::of(&recipes, &ledger);
    assert_eq!(account.claims[0].listed.len(), 2);
    assert_eq!(account.claims[0].outcome, Some(account.claims[0].listed[0].verdict.outcome));
    assert_eq!(account.claims[0].listed[0].uncounted, None);
}

#[test]
fn earlier_verdicts_stand_beside_the_last_whatever_the_version() {
    let narrow = claim(json!({"margin": 0.1, "note": "another text"}));
    let old = Record { recipe_hash: "cd".repeat(32), ..record(&narrow, 26.0, Outcome::Inconclusive) };
    let none = record(&claim(json!({})), 26.5, Outcome::NotComparable);
    let other = record(&claim(json!({"value": 28.0})), 26.5, Outcome::Inconclusive);
    let smoke =
        Record { tier: Some("smoke".into()), ..record(&claim(json!({})), 1.0, Outcome::NotReproduced) };
    let last = record(&claim(json!({})), 30.0, Outcome::Reproduced);
    let records = [old.clone(), old, none, other, smoke, last];
    let (recipes, ledger) = (standing(vec![claim(json!({}))]), entries(&records));
    let account = Account::of(&recipes, &ledger);
    let listed = &account.claims[0].listed;
    assert_eq!((listed.len(), listed[0].record), (1, Some(5)));
    let text = "third verdict; before: INCONCLUSIVE twice";
    assert_eq!(listed[0].earlier.text().as_deref(), Some(text));
    assert_eq!(
        Earlier::of(&records[..5], "synthetic", &claim(json!({})), "fp32").text().as_deref(),
        Some(text)
    );
    assert!(render(&recipes, &ledger).results.contains(&format!("| {text} | 5 |")));
}

#[test]
fn a_margin_that_was_changed_after_the_result_counts_nothing() {
    let ran = record(&claim(json!({"margin": 0.1})), 26.0, Outcome::Inconclusive);
    let (recipes, ledger) = (standing(vec![claim(json!({}))]), entries(&[ran]));
    let account = Account::of(&recipes, &ledger);
    assert_eq!(account.claims[0].outcome, Some(Outcome::NotRun));
    assert_eq!(account.others[0].uncounted, Some("earlier version"));
    assert_eq!(account.others[0].verdict.margin, Some(0.1));
    let relative = |margin: f64| claim(json!({"margin": null, "margin_of_error": margin}));
    let ran = record(&relative(0.1), 26.0, Outcome::Inconclusive);
    let (recipes, ledger) = (standing(vec![relative(0.5)]), entries(&[ran]));
    assert_eq!(Account::of(&recipes, &ledger).claims[0].outcome, Some(Outcome::NotRun));
}

/// A change of a key that the recipe declares free still runs the recipe, whatever its present
/// version.
#[test]
fn an_earlier_version_with_a_free_key_changed_is_listed() {
    let listed = |key: &str| {
        let ran = record(&claim(json!({})), 30.0, Outcome::Reproduced);
        let ran = Record {
            recipe_hash: "cd".repeat(32),
            overrides: [(key.to_owned(), "7".to_owned())].into(),
            ..ran
        };
        let (recipes, ledger) = (standing(vec![claim(json!({}))]), entries(&[ran]));
        Account::of(&recipes, &ledger).others.len()
    };
    assert_eq!(listed("train.log_every"), 1);
    assert_eq!(listed("train.max_updates"), 0);
}

#[test]
fn a_claim_that_was_marked_as_a_check_since_is_listed_as_one() {
    let mark = json!({"own": "why"});
    let ran = record(&claim(json!({})), 30.0, Outcome::Reproduced);
    let (recipes, ledger) = (standing(vec![claim(mark)]), entries(&[ran]));
    let account = Account::of(&recipes, &ledger);
    assert_eq!(account.claims[0].listed[0].statement, Statement::Own);
    assert_eq!(account.claims[0].listed[0].verdict.statement(), Statement::Own);
    let text = render(&recipes, &ledger);
    assert!(
        text.results.contains("\n| published claims | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |\n"),
        "{}",
        text.results
    );
    assert!(text.runs.starts_with("No value that was published for real data has been reproduced yet.\n"));
    assert!(text.runs.contains("\nOwn checks of this project: 1 "), "{}", text.runs);
    assert!(!text.runs.contains("| own |"), "counted, not listed: {}", text.runs);
}

#[test]
fn what_the_error_rate_means_for_all_verdicts_stands_beside_the_totals() {
    let ran = record(&claim(json!({})), 0.0, Outcome::NotReproduced);
    let (recipes, ledger) = (standing(vec![claim(json!({}))]), entries(&[ran]));
    let decided = match Account::of(&recipes, &ledger).claims[0].outcome {
        Some(Outcome::Reproduced | Outcome::NotReproduced) => "0.05 of 1 verdict on published claims",
        _ => "0.00 of 0 verdicts on published claims",
    };
    let text = render(&recipes, &ledger).results;
    assert!(text.contains("wrong 5 times in 100") && text.contains(decided), "{text}");
}

#[test]
fn the_short_table_has_a_line_for_each_claim_with_its_worst_arm() {
    let one = |arm: &str, score: f64| {
        let mut record = record(&claim(json!({})), score, Outcome::Reproduced);
        record.judgements[0].evidence.arm = Some(arm.into());
        record.scores[0].arm = arm.into();
        record
    };
    let (recipes, ledger) =
        (standing(vec![claim(json!({}))]), entries(&[one("fp32", 30.0), one("mixed", 5.0)]));
    let text = render(&recipes, &ledger).runs;
    assert_eq!(text.matches("\n| synthetic |").count(), 1, "{text}");
    let worst = Account::of(&recipes, &ledger).claims[0].outcome.unwrap();
    assert!(text.contains("| fp32, mixed | 27.00 |") && text.contains(&format!("{worst} |")), "{text}");
}
