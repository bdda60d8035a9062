//! Recorded results: the project's ledger, which is built into the program, and the ledger of the
//! home.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zoo_recipes::Document;
use zoo_results::exit::Exit;
use zoo_results::ledger::{
    Entry, HypothesesFile, Judgement, Ledger, LedgerError, Record, RunEnd, ScoreRecord, utc_now,
};
use zoo_results::report::{score_value, uncounted};

use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::evidence::RecordedRun;
use crate::files::{is_below, write_whole};
use crate::output::{self, Cell, Table};

/// The project's ledger at the time of the build.
const PROJECT: &str = include_str!(concat!(env!("OUT_DIR"), "/ledger.jsonl"));

/// Folder of stored hypotheses next to a ledger.
pub const HYPOTHESES: &str = "hypotheses";

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let exit = match error {
            LedgerError::Damaged { .. } | LedgerError::Torn { .. } | LedgerError::OtherHead { .. } => {
                Exit::Damaged
            }
            LedgerError::Io { .. } | LedgerError::Encode(_) => Exit::Internal,
        };
        Self::new(exit, error.to_string())
    }
}

/// The ledger that `--ledger` names, else the home's.
pub fn ledger(context: &Context, chosen: Option<&Path>) -> Ledger {
    Ledger::at(chosen.map_or_else(|| context.ledger_path(), Path::to_owned))
}

/// The ledger `named`, or that of the home.
///
/// # Errors
/// The user named a file that does not exist.
pub fn open(context: &Context, named: Option<&Path>) -> Result<Ledger> {
    let ledger = ledger(context, named);
    if named.is_some() && !ledger.path().is_file() {
        return Err(Failure::new(Exit::Data, format!("there is no ledger {}", ledger.path().display()))
            .hint("the project's ledger is results/data/ledger.jsonl; the default is the ledger in --home"));
    }
    Ok(ledger)
}

/// A record of a recipe in one of the two ledgers.
pub struct Kept {
    /// `project` or `here`.
    pub whose: &'static str,
    pub entry: Entry,
}

/// Position and hash of a line of a ledger.
#[derive(Deserialize)]
struct Place {
    sequence: u64,
    previous: String,
    hash: String,
}

/// The records of both ledgers, or those of one recipe. A damaged ledger of the home is reported on
/// stderr and ignored, because it cannot be trusted.
pub fn kept(context: &Context, recipe: Option<&str>) -> Vec<Kept> {
    // Only lines that name the recipe are parsed. Lines that this version cannot read are skipped:
    // `zoo ledger verify` in CI reads the file itself.
    let named = recipe.map(|recipe| format!("\"recipe\":{}", Value::from(recipe)));
    let lines: Vec<&str> =
        PROJECT.lines().filter(|line| named.as_ref().is_none_or(|named| line.contains(named))).collect();
    let project = lines.par_iter().filter_map(|line| {
        let record: Record = serde_json::from_str(line).ok()?;
        let Place { sequence, previous, hash } = serde_json::from_str(line).ok()?;
        Some(Kept { whose: "project", entry: Entry { sequence, previous, hash, record } })
    });
    let mut all: Vec<Kept> = project.collect();
    all.extend(own(context, recipe).into_iter().map(|entry| Kept { whose: "here", entry }));
    all.retain(|kept| recipe.is_none_or(|recipe| kept.entry.record.recipe == recipe));
    all
}

/// The entries of the home's ledger, or those of one recipe.
fn own(context: &Context, recipe: Option<&str>) -> Vec<Entry> {
    let ledger = ledger(context, None);
    let entries = recipe.map_or_else(|| ledger.entries(), |recipe| ledger.entries_of(recipe));
    entries.unwrap_or_else(|error| {
        context.progress.note(&format!("the ledger of this home is left aside: {error}"));
        Vec::new()
    })
}

/// Whether a record counts as evidence: a completed run of this program with stored outputs.
pub fn is_own_run(record: &Record) -> bool {
    record.is_own_evidence()
}

/// The runs of records that count as evidence. Runs of a working tree with changes do not count,
/// because no commit reproduces them.
pub fn runs_of<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<RecordedRun> {
    let finished = records.into_iter().filter(|record| is_own_run(record) && uncounted(record).is_none());
    finished
        .map(|record| RecordedRun {
            recipe: record.recipe.clone(),
            hash: record.recipe_hash.clone(),
            tier: record.tier.clone(),
            overrides: record.changes(),
            claims: record.claims(),
        })
        .collect()
}

/// Runs of both ledgers that count as evidence.
pub fn known_runs(context: &Context) -> Result<Vec<RecordedRun>> {
    let all = kept(context, None);
    Ok(runs_of(all.iter().map(|kept| &kept.entry.record)))
}

/// Table of records.
pub fn table(records: &[Kept]) -> Table {
    let mut table = output::columns(["ledger", "time", "tier", "seeds", "end", "scores", "verdicts"]);
    for Kept { whose, entry } in records {
        let record = &entry.record;
        let outcomes = record.judgements.iter().map(verdict_value).collect::<Vec<_>>();
        table.push(vec![
            Cell::words(*whose),
            Cell::words(record.time.clone()),
            Cell::of(record.tier.as_deref().unwrap_or("full"), record.tier.clone()),
            Cell::list(record.seeds.iter().copied(), " "),
            Cell::words(record.end.to_string()),
            Cell::of(scores(record), record.scores.iter().map(score_value).collect::<Vec<_>>()),
            Cell::of(verdicts(record), outcomes),
        ]);
    }
    table
}

/// Seeds of a record, like `1 2 3`.
pub fn seeds(record: &Record) -> String {
    record.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// Scores of a record, like `fp32 seed 1 test beam5: bleu 41.02; …`.
pub fn scores(record: &Record) -> String {
    let one = |score: &ScoreRecord| {
        let place: Vec<&str> = [&score.arm, &score.eval, &score.decode]
            .into_iter()
            .map(String::as_str)
            .filter(|s| !s.is_empty())
            .collect();
        let seed = score.seed;
        format!("{}, seed {seed}: {} {:.2}", place.join(" "), score.metric, score.value)
    };
    record.scores.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Verdicts of a record, like `REPRODUCED bound fp32; …`.
pub fn verdicts(record: &Record) -> String {
    let one = |judgement: &Judgement| {
        let kind = judgement.claim.kind.name();
        let arm = judgement.evidence.arm.clone().or_else(|| judgement.claim.arm.clone()).unwrap_or_default();
        format!("{} ({kind} {arm})", judgement.verdict.outcome).replace(" )", ")")
    };
    record.judgements.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A verdict of a record for programs.
fn verdict_value(judgement: &Judgement) -> Value {
    let Judgement { claim, evidence, verdict } = judgement;
    json!({
        "kind": claim.kind, "metric": claim.metric, "arm": evidence.arm.as_ref().or(claim.arm.as_ref()),
        "verdict": verdict.outcome.word(), "measured": verdict.measured,
    })
}

/// SHA-256 of a file of these lines, each with a line feed.
pub fn digest_of(lines: &[String]) -> String {
    hex::encode(Sha256::digest(text_of(lines).as_bytes()))
}

fn text_of(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Path of a file that [`keep`] writes, relative to the folder of stored files.
pub fn kept_path(sha256: &str) -> String {
    format!("external/{sha256}.txt")
}

/// Path of a stored file of the home's ledger. `None` if the path that the record names leads out of
/// the folder of stored files.
pub fn kept_file(context: &Context, below: &str) -> Option<PathBuf> {
    is_below(below).then(|| context.home.join(HYPOTHESES).join(below))
}

/// Stores lines in a file next to the home's ledger. The file is named after its digest.
///
/// # Errors
/// The file cannot be written.
pub fn keep(context: &Context, lines: &[String]) -> Result<HypothesesFile> {
    let sha256 = digest_of(lines);
    let path = kept_path(&sha256);
    let file: PathBuf = context.home.join(HYPOTHESES).join(&path);
    if !file.exists() {
        write_whole(&file, text_of(lines).as_bytes())?;
    }
    Ok(HypothesesFile { path, sha256 })
}

/// External results with their verdicts.
pub struct External {
    /// Digests of references by name.
    pub data: BTreeMap<String, String>,
    pub scores: Vec<ScoreRecord>,
    pub judgements: Vec<Judgement>,
    /// Where the results come from.
    pub notes: Vec<String>,
}

/// Records verdicts on external results in the home's ledger. Returns a description of the new
/// entry.
///
/// # Errors
/// The ledger is damaged or cannot be written.
pub fn record_external(
    context: &Context,
    document: &Document,
    arm: Option<&str>,
    External { data, scores, judgements, notes }: External,
) -> Result<String> {
    let outside = "results from outside; only their judgement is this program's".to_owned();
    let environment = Environment::current("none", context.threads);
    let ledger = ledger(context, None);
    let entry = ledger.append(&Record {
        time: utc_now(),
        recipe: document.name().to_owned(),
        recipe_hash: document.hash(None, &[])?,
        arm: arm.map(str::to_owned),
        end: RunEnd::External,
        commit: Some(environment.commit),
        dirty: environment.dirty,
        lock_hash: Some(environment.lock),
        data,
        scores,
        judgements,
        notes: std::iter::once(outside).chain(notes).collect(),
        ..Record::default()
    })?;
    Ok(format!("recorded as entry {} of {}", entry.sequence, context.shown(ledger.path())))
}
