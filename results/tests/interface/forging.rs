//! Records and bundles edited and hashed again by someone who knows the format: every edit is
//! detected.

use crate::toy;

use std::collections::BTreeMap;

use toy::{bundle, hash, line_of};
use zoo_results::bundle::{Bundle, check};
use zoo_results::ledger::{
    Entry, Judgement, Ledger, NoReferences, Record, Rescored, Rescorer, RunEnd, ScoreRecord, System,
    difference_again, recheck, score_again, spent,
};
use zoo_results::report::{RecipeStanding, render};
use zoo_results::statistics::LookPlan;
use zoo_results::verdict::{Interval, Outcome, Precision, RunScore, Spent};

type References = BTreeMap<String, Vec<String>>;

struct Given<'a>(&'a References);

impl Rescorer for Given<'_> {
    fn references(&mut self, _: &Record, eval: &str) -> Result<Vec<String>, NoReferences> {
        self.0.get(eval).cloned().ok_or_else(|| NoReferences::Absent(format!("none of {eval}")))
    }

    fn score(&mut self, score: &ScoreRecord, ours: &[String], refs: &[String]) -> Result<Rescored, String> {
        score_again(score, ours, refs)
    }

    fn difference(
        &mut self,
        score: &ScoreRecord,
        ours: &[String],
        baseline: &[String],
        refs: &[String],
        level: f64,
    ) -> Result<Interval, String> {
        difference_again(score, ours, baseline, refs, level)
    }
}

/// The results of a recheck of the ledger and of a check of the bundle.
fn said(bundle: &Bundle, references: &References) -> (String, String) {
    let entry = Entry::parse(&bundle.record).unwrap();
    let of_ledger = recheck(&[entry], bundle, &mut Given(references)).disagreements;
    let words = |found: Vec<zoo_results::ledger::Disagreement>| {
        found.iter().map(|one| format!("{}: {}\n", one.what, one.how)).collect::<String>()
    };
    let of_bundle = match check(&Bundle::decode(&bundle.encode().unwrap()).unwrap(), references) {
        Ok(checked) => checked.faults.join("\n") + "\n" + &words(checked.recheck.disagreements),
        Err(error) => error.to_string(),
    };
    (words(of_ledger), of_bundle)
}

/// Judges again, as a forger would to make outcome, numbers and texts agree.
fn judged_anew(record: &mut Record) {
    for judgement in &mut record.judgements {
        *judgement = Judgement::of(judgement.claim.clone(), judgement.evidence.clone());
    }
}

type Edit = fn(&mut Record);

/// Edits of a record, and the message of both rechecks.
const EDITS: &[(&str, Edit, &str)] = &[
    (
        "no hypotheses at all, and no digests of them",
        |record| {
            record.scores.iter_mut().for_each(|score| score.hypotheses = None);
            let evidence = &mut record.judgements[0].evidence;
            let runs = evidence.runs.iter_mut().chain(&mut evidence.baseline_runs);
            runs.for_each(|run| (run.hypotheses, run.score) = (None, Some(99.0)));
            judged_anew(record);
        },
        "no outputs were kept",
    ),
    (
        "a row of spreads that the table does not have so",
        |record| {
            let evidence = &mut record.judgements[0].evidence;
            let row = evidence.spread.as_mut().expect("the claim names a row");
            (row.sd, row.carried) = (row.sd / 100.0, false);
            judged_anew(record);
        },
        "the table has sd",
    ),
    (
        "evidence without scores of the record",
        |record| {
            record.scores.clear();
            let evidence = &mut record.judgements[0].evidence;
            evidence.runs.iter_mut().for_each(|run| run.hypotheses = None);
            judged_anew(record);
        },
        "no outputs of mixed seed 1 were kept: such evidence is external",
    ),
    (
        "outputs of the other arm",
        |record| {
            let evidence = &mut record.judgements[0].evidence;
            evidence.runs[0] =
                RunScore { difference: evidence.runs[0].difference, ..evidence.baseline_runs[0].clone() };
            judged_anew(record);
        },
        "the outputs of mixed seed 1 do not belong to a score of that run",
    ),
    (
        "own evidence in an external record",
        |record| record.end = RunEnd::External,
        "its evidence calls itself own, the record is external",
    ),
    (
        "external evidence in a run's record",
        |record| {
            record.judgements[0].evidence.external = true;
            judged_anew(record);
        },
        "its evidence calls itself external, the record is a run",
    ),
    ("a score", |record| record.scores[0].value = 99.5, "recorded 99.5, derived"),
    (
        "the interval of a score",
        |record| record.scores[0].interval.as_mut().unwrap().low = 99.0,
        "interval: recorded 99",
    ),
    ("an interval left out", |record| record.scores[0].interval = None, "interval: recorded none"),
    (
        "a score in the evidence",
        |record| {
            record.judgements[0].evidence.runs[0].score = Some(99.5);
            judged_anew(record);
        },
        "evidence of seed 1: recorded 99.5, derived",
    ),
    (
        "a verdict",
        |record| record.judgements[0].verdict.outcome = Outcome::Reproduced,
        "recorded REPRODUCED, derived INCONCLUSIVE",
    ),
    (
        "an explanation",
        |record| {
            let verdict = &mut record.judgements[0].verdict;
            verdict.explanation = verdict.explanation.replace("lie on both sides of", "lie inside");
        },
        "explanation: recorded `mixed, over 1 seed",
    ),
    (
        "a note",
        |record| record.judgements[0].verdict.notes.push("confirmed by the authors".to_owned()),
        "notes: recorded",
    ),
    (
        "the source of a verdict",
        |record| record.judgements[0].verdict.source = "a better paper".to_owned(),
        "source: recorded \"a better paper\"",
    ),
    (
        "the seeds that are needed",
        |record| record.judgements[0].verdict.seeds_needed = None,
        "seeds needed: recorded None",
    ),
    (
        "the arm of a record",
        |record| record.arm = Some("mixed".to_owned()),
        "score bleu test beam5 fp32 seed 1: the record is of arm mixed",
    ),
    ("the seeds of a record", |record| record.seeds = vec![2], "the record has no such seed"),
    (
        "the seed of a run in the evidence",
        |record| record.judgements[0].evidence.runs[0].seed = Some(7),
        "the outputs of mixed seed 7 do not belong to a score of that run",
    ),
    (
        "a smoke run judged as the published size",
        |record| record.tier = Some("smoke".to_owned()),
        "judged as tier full, run as smoke",
    ),
    (
        "other hardware",
        |record| record.judgements[0].evidence.hardware = Some("8x V100".to_owned()),
        "judged as on 8x V100, run on a processor",
    ),
    (
        "another precision",
        |record| record.judgements[0].evidence.precision = Some(Precision::Bf16),
        "mixed was judged in bf16, recorded is fp16",
    ),
    (
        "a run that is not the scores'",
        |record| record.runs[1].folder = "toy/mixed-seed1-other".to_owned(),
        "are not those of the run toy/mixed-seed1-other",
    ),
    (
        "a run twice",
        |record| record.runs.push(record.runs[0].clone()),
        "the record does not have one run of this arm and seed",
    ),
];

#[test]
fn every_edit_of_a_record_is_caught_in_ledger_and_bundle() {
    let (whole, references) = bundle();
    let (of_ledger, of_bundle) = said(&whole, &references);
    assert_eq!(
        (of_ledger.as_str(), of_bundle.as_str()),
        ("", "\n"),
        "the record that is edited must be sound"
    );
    for (name, edit, expected) in EDITS {
        let mut record = whole.entry().unwrap().record;
        edit(&mut record);
        let forged = Bundle { record: line_of(&record), ..whole.clone() };
        let (of_ledger, of_bundle) = said(&forged, &references);
        assert!(of_ledger.contains(expected), "{name}, in the ledger: {of_ledger}");
        assert!(of_bundle.contains(expected), "{name}, in the bundle: {of_bundle}");
    }
}

type BundleEdit = fn(&mut Bundle);

/// Edits of a bundle, and the message of its check.
const BUNDLE_EDITS: &[(&str, BundleEdit, &str)] = &[
    (
        "another recipe's name",
        |bundle| edit_record(bundle, |record| record.recipe = "transformer-big".to_owned()),
        "the recipe is reversal-transformer, the record names transformer-big",
    ),
    (
        "another recipe's hash",
        |bundle| edit_record(bundle, |record| record.recipe_hash = "ab".repeat(32)),
        "the recipe has hash",
    ),
    (
        "a wider margin in the claim",
        |bundle| {
            edit_record(bundle, |record| {
                record.judgements[0].claim.margin = Some(99.0);
                judged_anew(record);
            });
        },
        "the recipe does not have the claim that was judged",
    ),
    (
        "another source of the claim",
        |bundle| {
            edit_record(bundle, |record| {
                record.judgements[0].claim.source = "a better paper".to_owned();
                judged_anew(record);
            });
        },
        "the recipe does not have the claim that was judged, from a better paper",
    ),
    (
        "an arm that the recipe does not have",
        |bundle| edit_record(bundle, |record| record.scores[0].arm = "fp64".to_owned()),
        "the recipe has no arm fp64",
    ),
    (
        "a change that is not said",
        |bundle| {
            let overrides = vec!["train.max_updates=900".to_owned()];
            let document = zoo_recipes::Document::load("reversal-transformer").unwrap();
            let arms = document.resolve_arms(None, &overrides).unwrap();
            bundle.recipe.resolved =
                arms.iter().map(|(arm, recipe)| (arm.clone(), recipe.to_toml().unwrap())).collect();
            edit_record(bundle, |record| {
                record.overrides = [("train.max_updates".to_owned(), "900".to_owned())].into();
                record.recipe_hash = zoo_recipes::Document::load("reversal-transformer")
                    .unwrap()
                    .hash(None, &record.changes())
                    .unwrap();
            });
        },
        "judged as if --set train.max_updates=900 had not been given",
    ),
    (
        "another text of the recipe",
        |bundle| {
            bundle.recipe.text = bundle.recipe.text.replacen("max_updates = 800", "max_updates = 80000", 1)
        },
        "recipe.text does not resolve to recipe.resolved",
    ),
    (
        "no recipe as its text",
        |bundle| bundle.recipe.text = "see the paper".to_owned(),
        "recipe.text is not a recipe",
    ),
    (
        "a base that is a file of the reader's",
        |bundle| {
            let base = "[recipe]\nbase = \"/dev/zero\"";
            bundle.recipe.text = bundle.recipe.text.replacen("[recipe]", base, 1);
        },
        "there is no recipe `/dev/zero` to build upon",
    ),
    (
        "the machine in an environment",
        |bundle| bundle.environments[0].environment["processor"] = "a GPU".into(),
        "the environment of fp32 seed 1: the record has a different one",
    ),
    (
        "an environment less",
        |bundle| bundle.environments.truncate(1),
        "the environment of mixed seed 1 is missing",
    ),
    (
        "an environment of a run that is not there",
        |bundle| bundle.environments[0].seed = 9,
        "the environment of fp32 seed 9 does not belong to a run of the record",
    ),
    (
        "an environment of a record that holds none",
        |bundle| {
            edit_record(bundle, |record| record.runs.clear());
            bundle.environments[1].environment["commit"] = "deadbeef".into();
        },
        "commit deadbeef is not a commit of the record",
    ),
    (
        "no references, so that nothing is derived",
        |bundle| bundle.references.clear(),
        "the bundle does not name the references of test",
    ),
    (
        "a better hypothesis with its own digest",
        |bundle| {
            let one = &mut bundle.hypotheses[0];
            one.text = one.text.replacen("x y", "c d", 1);
            one.file.sha256 = hash(&one.text);
        },
        "is not the file that was scored",
    ),
];

fn edit_record(bundle: &mut Bundle, edit: impl FnOnce(&mut Record)) {
    let mut record = bundle.entry().unwrap().record;
    edit(&mut record);
    bundle.record = line_of(&record);
}

#[test]
fn every_edit_of_a_bundle_is_caught() {
    let (whole, references) = bundle();
    for (name, edit, expected) in BUNDLE_EDITS {
        let mut forged = whole.clone();
        edit(&mut forged);
        let (_, found) = said(&forged, &references);
        assert!(found.contains(expected), "{name}: {found}");
        // Edits that do not concern the references are also detected without them.
        let (_, found) = said(&forged, &References::new());
        assert!(found.contains(expected), "{name}, without references: {found}");
    }
}

#[test]
fn what_has_no_kept_outputs_is_never_counted() {
    let (whole, _) = bundle();
    let record = whole.entry().unwrap().record;
    assert!(record.is_own_evidence());
    let bare = |edit: Edit| {
        let mut record = record.clone();
        edit(&mut record);
        record.is_own_evidence()
    };
    assert!(!bare(|record| record.scores.clear()));
    assert!(!bare(|record| record.scores.iter_mut().for_each(|score| score.hypotheses = None)));
    assert!(!bare(|record| record.judgements[0].evidence.runs[0].hypotheses = None));
    assert!(!bare(|record| record.end = RunEnd::External));
    assert!(!bare(|record| {
        record.scores.clear();
        record.judgements.clear();
    }));
    // The tables of results list such a verdict as external, and count the claim as not run.
    let standing = RecipeStanding {
        recipe: record.recipe.clone(),
        hashes: [record.recipe_hash.clone()].into(),
        claims: vec![record.judgements[0].claim.clone()],
        evidence: "full-run".to_owned(),
        generated: true,
        free: Vec::new(),
    };
    let table = |record: &Record| {
        render(std::slice::from_ref(&standing), &[Entry::parse(&line_of(record)).unwrap()]).results
    };
    let external = "INCONCLUSIVE (external: no outputs were kept)";
    assert!(!table(&record).contains(external) && !table(&record).contains("NOT RUN"), "{}", table(&record));
    let mut forged = record.clone();
    forged.judgements[0].evidence.runs[0].hypotheses = None;
    assert!(table(&forged).contains(external) && table(&forged).contains("NOT RUN"), "{}", table(&forged));
}

#[test]
fn what_earlier_plans_spent_is_what_the_ledger_says() {
    let (bundle, references) = bundle();
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger.jsonl"));
    let mut record = bundle.entry().unwrap().record;
    record.system = Some("a hash".into());
    judged_anew(&mut record);
    ledger.append(&record).unwrap();
    // Another plan for the same claim and system: the first look has spent the whole level.
    record.judgements[0].evidence.plan = LookPlan::try_from(vec![1, 3]).unwrap();
    let evidence = record.judgements[0].evidence.clone();
    let without_claims = "a hash";
    let system =
        System { recipe: &record.recipe.clone(), recipe_hash: "other", without_claims, with_words: None };
    let first = ledger.entries().unwrap().remove(0).record;
    let due = spent([&first], &system, &record.judgements[0].claim, &evidence);
    assert!(due.is_some());
    let said = |spent: Option<Spent>| {
        let mut record = record.clone();
        record.judgements[0].evidence.spent = spent;
        judged_anew(&mut record);
        let mut entries = ledger.entries().unwrap();
        let second = Entry { sequence: 1, record, ..entries[0].clone() };
        entries.push(second);
        let found = recheck(&entries, &bundle, &mut Given(&references)).disagreements;
        found.iter().map(|one| format!("{} {}: {}\n", one.sequence, one.what, one.how)).collect::<String>()
    };
    assert_eq!(said(due), "");
    let forged = said(None);
    assert!(
        forged.starts_with("1 verdict bleu") && forged.contains("spent before it: recorded nothing"),
        "{forged}"
    );
}
