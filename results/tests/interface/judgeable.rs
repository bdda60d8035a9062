//! Which claims of the shipped recipes can be judged.

use std::collections::BTreeMap;

use serde_json::json;
use zoo_recipes::{ClaimKind, ClaimSpec, Document, Selection};
use zoo_results::metrics::Entry;
use zoo_results::verdict::{Evidence, Outcome, RunScore, judge, judgeable, listed};

fn claims() -> Vec<ClaimSpec> {
    let of = |name: &str| {
        Document::load(name).unwrap().resolve(&Selection::default()).unwrap().recipe.claim.clone()
    };
    zoo_recipes::names().into_iter().flat_map(of).collect()
}

#[test]
fn thirty_five_claims_of_the_recipes_can_not_be_judged() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for claim in claims() {
        assert!(Entry::find(&claim.metric).is_some(), "{}", claim.metric);
        if judgeable(&claim).is_err() {
            let kind = serde_json::to_value(claim.kind).unwrap();
            let of = match claim.kind {
                ClaimKind::Relation | ClaimKind::Memory => kind.as_str().unwrap().to_owned(),
                _ => format!("{} {}", kind.as_str().unwrap(), claim.metric),
            };
            *counts.entry(of).or_default() += 1;
        }
    }
    let expected = [
        ("memory", 3),
        ("ratio time-to-train", 17),
        ("relation", 5),
        ("trajectory train-loss", 4),
        ("trajectory valid-perplexity", 1),
        ("value latency-ms", 3),
        ("value scaling-efficiency", 2),
    ];
    assert_eq!(counts, expected.map(|(of, count)| (of.to_owned(), count)).into());
}

fn claim(fields: serde_json::Value) -> ClaimSpec {
    let mut all = json!({
        "kind": "value", "metric": "bleu", "signature": "nrefs:1|case:lc|eff:no|tok:none|smooth:none", "eval": "test",
        "arm": "fp32", "value": 41.0, "direction": "higher", "margin": 0.5, "source": "a test",
    });
    for (key, value) in fields.as_object().unwrap() {
        all[key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

#[test]
fn why_a_claim_can_not_be_judged_is_said() {
    for (fields, why) in [
        (json!({"kind": "relation"}), "two recipes"),
        (json!({"kind": "memory"}), "memory"),
        (json!({"kind": "ratio", "metric": "time-to-train"}), "whole runs"),
        (json!({"kind": "ratio"}), "a ratio of bleu"),
        (json!({"metric": "tokens-per-second"}), "a ratio of two arms"),
        (json!({"metric": "bleu-4"}), "no metric `bleu-4`"),
        (json!({"signature": null}), "without a signature"),
    ] {
        let reason = judgeable(&claim(fields.clone())).unwrap_err();
        assert!(reason.contains(why), "{fields}: {reason}");
    }
    for fields in
        [json!({}), json!({"kind": "ratio", "metric": "mel-frames-per-second"}), json!({"kind": "diverges"})]
    {
        assert_eq!(judgeable(&claim(fields)), Ok(()));
    }
}

#[test]
fn not_judgeable_is_listed_and_never_recorded() {
    let relation = claim(json!({"kind": "relation"}));
    let recorded = judge(&relation, &Evidence::default());
    assert_eq!(recorded.outcome, Outcome::NotRun);
    let shown = listed(&relation, &recorded);
    assert_eq!(shown.outcome, Outcome::NotJudgeable);
    assert_eq!(shown.outcome.to_string(), "NOT JUDGEABLE");
    assert_eq!(serde_json::to_value(shown.outcome).unwrap(), "NOT-JUDGEABLE");
    // A claim that was merely not run keeps this outcome.
    let open = claim(json!({}));
    assert_eq!(listed(&open, &judge(&open, &Evidence::default())).outcome, Outcome::NotRun);
    // External scores are judged even if no run of this program produces such scores.
    let outside = claim(json!({"signature": null, "sigma": 0.1}));
    let evidence = Evidence { external: true, runs: vec![RunScore::external(41.0)], ..Evidence::default() };
    let verdict = judge(&outside, &evidence);
    assert_ne!(verdict.outcome, Outcome::NotRun);
    assert_eq!(listed(&outside, &verdict).outcome, verdict.outcome);
}
