//! Packing of a ledger entry into a bundle, and the references to check a bundle with.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use zoo_recipes::{Document, Resolved, Selection};
use zoo_results::bundle::{
    Bundle, BundleError, BundledHypotheses, BundledRecipe, BundledReferences, FORMAT, MAX_BYTES,
    RunEnvironment, VERSION, contradictions, may_derive_references,
};
use zoo_results::exit::Exit;
use zoo_results::ledger::{Entry, HypothesesFile, Kept, Ledger, Record, RunEnd, RunRecord};

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::records::HYPOTHESES;
use crate::runs::named_run;
use crate::{lines, references, rescore};

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let exit = match error {
            BundleError::Changed(_) => Exit::Damaged,
            BundleError::Foreign(_) | BundleError::Version(_) | BundleError::TooLarge => Exit::Data,
        };
        Self::new(exit, error.to_string())
    }
}

/// Reads a bundle's file, up to the maximum length of bundles.
///
/// # Errors
/// The file cannot be read, is too large, or is not a bundle.
pub fn read(path: &Path) -> Result<Bundle> {
    let named = |failure: Failure| failure.about(&path.display().to_string());
    let mut bytes = Vec::new();
    let file = zoo_recipes::untrusted::open(path).map_err(|error| Failure::io("read", path, &error))?;
    // One byte more than the limit shows that the file is too large.
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::io("read", path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(named(BundleError::TooLarge.into()));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(Exit::Data, format!("{}: not UTF-8", path.display())))?;
    Bundle::decode(&text).map_err(|error| named(error.into()))
}

/// References by evaluation set.
pub type References = BTreeMap<String, Vec<String>>;

/// The ledger entry that `which` names: a run's folder, a number, the start of a hash, or a run's
/// name.
///
/// # Errors
/// There is no such entry, or the ledger is damaged.
pub fn entry_of(context: &Context, ledger: &Ledger, which: &str) -> Result<Entry> {
    let shown = context.shown(ledger.path());
    let path = Path::new(which);
    let mut listed = None;
    let mut folder = path.exists().then(|| run_folder(path)).flatten();
    if folder.is_none() {
        listed = ledger.find(which)?;
        if listed.is_none() {
            folder = named_run(context, which)?.and_then(|folder| run_folder(&folder));
        }
    }
    let found = match folder {
        Some(folder) => {
            let found = newest_entry(ledger, &folder)?;
            found.ok_or_else(|| {
                Failure::new(Exit::Data, format!("no entry of {shown} is about the run {which}"))
                    .hint("`zoo reproduce` records a run after judging it; --ledger selects another ledger")
            })?
        }
        None => listed.ok_or_else(|| {
            Failure::usage(format!("{which} is neither a run nor an entry of {shown}"))
                .hint("give a run that `zoo runs` lists, or a number of `zoo ledger list`")
        })?,
    };
    if found.record.end == RunEnd::Started {
        let message = format!("entry {} only says that a run was begun", found.sequence);
        return Err(Failure::usage(message).hint("`zoo ledger list` shows the entries; take one that ended"));
    }
    Ok(found)
}

/// The newest entry about a run, or `None`. `below` is the run's folder below the folder of runs.
fn newest_entry(ledger: &Ledger, below: &Path) -> Result<Option<Entry>> {
    // The record of a run refers to its hypotheses by the run's folder.
    let prefix = format!("{}/", below.display());
    let names = |record: &Record| {
        let mut files = record.scores.iter().filter_map(|score| score.hypotheses.as_ref());
        files.any(|file| file.path.starts_with(&prefix))
    };
    Ok(ledger.entries()?.into_iter().rev().find(|entry| names(&entry.record)))
}

/// The newest entry about the run in a folder, or `None`.
///
/// # Errors
/// The ledger is damaged.
pub fn entry_about(ledger: &Ledger, run: &Path) -> Result<Option<Entry>> {
    match run_folder(run) {
        Some(below) => newest_entry(ledger, &below),
        None => Ok(None),
    }
}

/// The part `NAME/ARM-seedN-KEY` of a path in a run.
fn run_folder(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let folder = path.ancestors().find(|folder| folder.join("run.json").is_file())?;
    Some(Path::new(folder.parent()?.file_name()?).join(folder.file_name()?))
}

/// Collects everything about an entry, and the references that it was scored against.
///
/// # Errors
/// The recipe no longer matches the record, hypotheses are missing or changed, or the references
/// cannot be obtained.
pub fn gather(
    context: &Context,
    ledger: &Ledger,
    entry: &Entry,
    recipe: Option<&str>,
) -> Result<(Bundle, References)> {
    let record = &entry.record;
    let document = Document::load(recipe.unwrap_or(&record.recipe))?;
    let overrides = record.changes();
    let tier = record.tier.as_deref();
    let found = document.hash(tier, &overrides)?;
    if found != record.recipe_hash {
        let message = format!(
            "{} is not the recipe of entry {} any more: hash {found}, recorded {}",
            document.file(),
            entry.sequence,
            record.recipe_hash
        );
        return Err(Failure::new(Exit::Data, message)
            .hint("pass the version that was run with --recipe FILE; restore it from version control"));
    }
    let mut resolved = BTreeMap::new();
    for (arm, recipe) in document.resolve_arms(tier, &overrides)? {
        let toml = recipe.to_toml().map_err(|error| Failure::new(Exit::Recipe, error.to_string()))?;
        resolved.insert(arm, toml);
    }
    let folder = ledger.path().parent().unwrap_or(Path::new("")).join(HYPOTHESES);
    let selection = Selection { arm: record.arm.clone(), tier: record.tier.clone(), overrides };
    let one = document.resolve(&selection)?;
    let mut bundle = Bundle {
        format: FORMAT.to_owned(),
        version: VERSION,
        record: ledger.line(entry)?,
        recipe: BundledRecipe {
            file: document.file().to_owned(),
            text: document.text().to_owned(),
            bases: document.base_texts().to_vec(),
            resolved,
        },
        environments: environments(context, record)?,
        hypotheses: Vec::new(),
        references: Vec::new(),
    };
    let mut texts = References::new();
    for score in record.all_scores() {
        let Some(file) = &score.hypotheses else { continue };
        if !bundle.hypotheses.iter().any(|known| known.file == *file) {
            bundle.hypotheses.push(BundledHypotheses { file: file.clone(), text: kept(&folder, file)? });
        }
        if !texts.contains_key(&score.eval) {
            let lines = rescore::references_of(context, &folder, record, &one, &score.eval);
            let lines = lines.map_err(|why| {
                Failure::new(Exit::Data, why.to_string())
                    .hint("a bundle names the references by digest, so they are needed once")
            })?;
            bundle.references.push(BundledReferences::of(&score.eval, &lines));
            texts.insert(score.eval.clone(), lines);
        }
    }
    Ok((bundle, texts))
}

fn kept(folder: &PathBuf, file: &HypothesesFile) -> Result<String> {
    let damaged = |why: String| {
        Failure::new(Exit::Damaged, why).hint("`zoo ledger recheck` says what else does not fit the ledger")
    };
    let bytes = folder.bytes(file).map_err(damaged)?;
    String::from_utf8(bytes).map_err(|_| damaged(format!("{} is not UTF-8", file.path)))
}

/// Program and machine of each run, from the record. For records by earlier versions they come from
/// the folders of the runs, and missing folders are skipped.
fn environments(context: &Context, record: &Record) -> Result<Vec<RunEnvironment>> {
    let of = |run: &RunRecord| RunEnvironment {
        arm: run.arm.clone(),
        seed: run.seed,
        environment: run.environment.clone(),
    };
    let mut found: Vec<RunEnvironment> = record.runs.iter().map(of).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    for score in &record.scores {
        let Some(file) = &score.hypotheses else { continue };
        let Some(run) = Path::new(&file.path).parent() else { continue };
        let card = context.runs_dir().join(run).join("run.json");
        let known = found.iter().any(|one| (&one.arm, one.seed) == (&score.arm, score.seed));
        if known || !card.is_file() {
            continue;
        }
        let bytes = std::fs::read(&card).map_err(|error| Failure::io("read", &card, &error))?;
        let mut json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::new(Exit::Damaged, format!("{}: {error}", card.display()))
                .hint("the file was changed; move the run's folder away to leave it out")
        })?;
        found.push(RunEnvironment {
            arm: score.arm.clone(),
            seed: score.seed,
            environment: json["environment"].take(),
        });
    }
    Ok(found)
}

/// References to check a bundle with, and reasons for missing ones.
#[derive(Debug, Default)]
pub struct Found {
    /// Reference lines by evaluation set.
    pub lines: References,
    /// Evaluation sets without references, with the reason.
    pub missing: Vec<(String, String)>,
}

/// References to check a bundle with. If the bundle contradicts itself, no references are looked
/// for.
///
/// # Errors
/// As for [`references_of`].
pub fn references_if_sound(context: &Context, bundle: &Bundle, given: &[String]) -> Result<Found> {
    let found = contradictions(bundle)?;
    if found.is_empty() {
        return references_of(context, bundle, given);
    }
    let missing = |set: &BundledReferences| (set.eval.clone(), "not looked for".to_owned());
    Ok(Found { missing: bundle.references.iter().map(missing).collect(), ..Found::default() })
}

/// References for every evaluation set of a bundle: those given as `SET=FILE` (or `FILE` if there
/// is one set), else those of the recipe's data, if they are on this machine. Opens no network
/// connection.
///
/// # Errors
/// A given file cannot be read, or its set is not in the bundle.
fn references_of(context: &Context, bundle: &Bundle, given: &[String]) -> Result<Found> {
    let sets: Vec<&str> = bundle.references.iter().map(|one| one.eval.as_str()).collect();
    let mut found = Found::default();
    for text in given {
        let (set, file) = match (text.split_once('='), sets.as_slice()) {
            (Some((set, file)), _) if sets.contains(&set) => (set, file),
            (None, [only]) => (*only, text.as_str()),
            _ => {
                return Err(Failure::usage(format!("{text} does not name an evaluation set of this bundle"))
                    .hint(format!("--references SET=FILE, with a set of {}", sets.join(", "))));
            }
        };
        found.lines.insert(set.to_owned(), lines::read(Path::new(file))?);
    }
    let offline = context.quiet_within(&context.home);
    let resolved = resolved(bundle)?;
    for set in sets {
        if found.lines.contains_key(set) {
            continue;
        }
        let lines = match &resolved {
            Some(resolved) => may_derive_references(&resolved.recipe, set).and_then(|()| {
                references::of(&offline, resolved, set).map_err(|failure| failure.to_string())
            }),
            None => Err("the bundle has no recipe".to_owned()),
        };
        match lines {
            Ok(lines) => {
                found.lines.insert(set.to_owned(), lines);
            }
            Err(why) => found.missing.push((set.to_owned(), why)),
        }
    }
    Ok(found)
}

/// The bundle's recipe, resolved for one arm. Its data block is the same for every arm.
fn resolved(bundle: &Bundle) -> Result<Option<Resolved>> {
    let record = bundle.entry()?.record;
    let Some((arm, recipe)) = bundle.recipes()?.into_iter().next_back() else { return Ok(None) };
    Ok(Some(Resolved {
        toml: bundle.recipe.resolved.get(&arm).cloned().unwrap_or_default(),
        hash: recipe.hash(),
        recipe,
        arm: Some(arm).filter(|arm| !arm.is_empty()),
        tier: record.tier,
        overrides: Vec::new(),
        binding_overrides: Vec::new(),
        folder: PathBuf::new(),
    }))
}
