//! Checks of a bundle's parts against each other, before anything is derived.

use std::collections::BTreeSet;

use zoo_recipes::Document;

use super::file::{Bundle, BundleError, RunEnvironment};
use crate::ledger::{AgainstRecipe, Contradiction, Record, against_arms, against_recipe, references_key};

/// Contradictions between the parts of a bundle: record, recipe as resolved, recipe as written,
/// environments, references. Nothing is generated or read, so this runs before any data that the
/// recipe requests is made.
///
/// # Errors
/// The record's line is incomplete or changed, or the recipe does not parse.
pub fn contradictions(bundle: &Bundle) -> Result<Vec<String>, BundleError> {
    let record = bundle.entry()?.record;
    let arms = bundle.recipes()?;
    let text = |found: Vec<Contradiction>| found.into_iter().map(|one| one.how);
    let mut faults: Vec<String> = text(against_arms(&record, &arms)).collect();
    if faults.is_empty() {
        faults.extend(written(bundle, &record));
    }
    faults.extend(environments(&bundle.environments, &record));
    let mut known = BTreeSet::new();
    for one in &bundle.references {
        if !known.insert(&one.eval) {
            faults.push(format!("the bundle names the references of {} twice", one.eval));
        }
        // The record of an external judgement names the references itself.
        let recorded = record.data.get(&references_key(&one.eval));
        if recorded.is_some_and(|recorded| *recorded != one.sha256) {
            faults.push(format!("record and bundle name different references of {}", one.eval));
        }
    }
    let scored = record.all_scores().filter(|score| score.hypotheses.is_some());
    let unnamed: BTreeSet<&String> =
        scored.map(|score| &score.eval).filter(|eval| !known.contains(eval)).collect();
    faults.extend(unnamed.iter().map(|eval| format!("the bundle does not name the references of {eval}")));
    Ok(faults)
}

/// The recipe as written must resolve to the recipe as resolved, because people read the text.
fn written(bundle: &Bundle, record: &Record) -> Vec<String> {
    let recipe = &bundle.recipe;
    let document = match Document::parse_sealed(&recipe.text, &recipe.file, &recipe.bases) {
        Ok(document) => document,
        Err(found) => {
            let first = found.to_string().lines().next().unwrap_or_default().to_owned();
            return vec![format!("recipe.text is not a recipe: {first}")];
        }
    };
    match against_recipe(record, &document) {
        AgainstRecipe::OtherVersion => vec!["recipe.text does not resolve to recipe.resolved".to_owned()],
        AgainstRecipe::Compared(found) => found.into_iter().map(|one| one.how).collect(),
    }
}

/// The environments must equal the record's. Records of earlier programs contain only parts of
/// them, and runs whose folders no longer existed have none.
fn environments(given: &[RunEnvironment], record: &Record) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for one in given {
        let RunEnvironment { arm, seed, environment } = one;
        let place = format!("the environment of {arm} seed {seed}");
        if !seen.insert((arm, seed)) {
            faults.push(format!("{place} appears twice"));
        }
        if !record.all_scores().any(|score| score.arm == *arm && score.seed == *seed) {
            faults.push(format!("{place} does not belong to a run of the record"));
        }
        let differs = match record.runs.iter().find(|run| run.arm == *arm && run.seed == *seed) {
            Some(run) => {
                (run.environment != *environment).then(|| "the record has a different one".to_owned())
            }
            None => of_earlier_record(environment, record),
        };
        faults.extend(differs.map(|how| format!("{place}: {how}")));
    }
    for run in record.runs.iter().filter(|run| !seen.contains(&(&run.arm, &run.seed))) {
        faults.push(format!("the environment of {} seed {} is missing", run.arm, run.seed));
    }
    faults
}

/// How an environment contradicts a record that does not contain it.
fn of_earlier_record(environment: &serde_json::Value, record: &Record) -> Option<String> {
    let text = |key: &str| environment[key].as_str();
    let commit = text("commit")?;
    let changes = if environment["dirty"] == true { "+changes" } else { "" };
    let sources = format!("{commit}{changes}");
    let changes = if record.dirty { "+changes" } else { "" };
    let own = record.commit.as_ref().map(|commit| format!("{commit}{changes}"));
    if own.as_ref() != Some(&sources) && !record.commits_crossed.contains(&sources) {
        return Some(format!("commit {sources} is not a commit of the record"));
    }
    if let (Some(device), Some(recorded)) = (text("device"), &record.device)
        && device != recorded
    {
        return Some(format!("device {device}, recorded {recorded}"));
    }
    match (text("processor"), &record.hardware, text("device")) {
        (Some(processor), Some(recorded), Some("cpu")) if processor != recorded => {
            Some(format!("processor {processor}, recorded {recorded}"))
        }
        _ => None,
    }
}
