//! The project's own ledger: every record, including those of earlier programs, agrees with itself,
//! with its recipe and with the texts that the present program derives.

use std::path::{Path, PathBuf};

use zoo_recipes::Document;
use zoo_results::ledger::{
    AgainstRecipe, Ledger, NoReferences, Record, Rescored, Rescorer, ScoreRecord, against_recipe, recheck,
};
use zoo_results::verdict::Interval;

/// Texts and verdicts are derived from the recorded scores here; `zoo ledger recheck` also derives
/// the scores.
struct WithoutReferences;

impl Rescorer for WithoutReferences {
    fn references(&mut self, _: &Record, eval: &str) -> Result<Vec<String>, NoReferences> {
        Err(NoReferences::Absent(eval.to_owned()))
    }

    fn score(&mut self, _: &ScoreRecord, _: &[String], _: &[String]) -> Result<Rescored, String> {
        unreachable!("there are no references")
    }

    fn difference(
        &mut self,
        _: &ScoreRecord,
        _: &[String],
        _: &[String],
        _: &[String],
        _: f64,
    ) -> Result<Interval, String> {
        unreachable!("there are no references")
    }
}

fn ledger() -> (Ledger, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    (Ledger::at(folder.join("ledger.jsonl")), folder.join("hypotheses"))
}

#[test]
fn every_record_agrees_with_itself_and_with_the_texts_that_are_derived_now() {
    let (ledger, kept) = ledger();
    let entries = ledger.entries().unwrap();
    assert!(entries.len() > 300);
    let found = recheck(&entries, &kept, &mut WithoutReferences);
    let wrong: Vec<_> = found.disagreements.iter().filter(|one| !one.unseen).collect();
    assert!(wrong.is_empty(), "{} of them, first: {:#?}", wrong.len(), wrong.first());
    assert!(found.verdicts > 400, "{}", found.verdicts);
}

#[test]
fn records_of_a_recipe_s_present_version_agree_with_it() {
    // Most records are of earlier versions: the hash covers the claims, and the spreads in the
    // claims have changed.
    let mut seen = 0;
    for entry in ledger().0.entries().unwrap() {
        let Ok(document) = Document::load(&entry.record.recipe) else { continue };
        if let AgainstRecipe::Compared(found) = against_recipe(&entry.record, &document) {
            assert_eq!(found, vec![], "record {}", entry.sequence);
        }
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn the_committed_head_is_the_last_record_s() {
    let (ledger, _) = ledger();
    let file = ledger.path().with_extension("head");
    let head = std::fs::read_to_string(&file).unwrap();
    ledger.verify(Some(head.trim())).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
