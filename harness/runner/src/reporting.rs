//! Content of run folders, prepared for a report.

mod evaluations;
mod profiles;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use zoo_recipes::{ClaimSpec, Document, Moment, Recipe, Selection};
use zoo_results::exit::Exit;
use zoo_results::ledger::{Entry, Judgement, Record, RunEnd, utc_now};
use zoo_results::report::page::{JudgedPart, Page, RecipePart, RunPart, TrainingLog, VerdictsPart};
use zoo_results::report::{Earlier, duration, grouped, uncounted};
use zoo_results::verdict::{Outcome, Verdict, listed, rejudge};

pub use self::evaluations::evaluations;
use self::evaluations::parts;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Failure, Result};
use crate::files::{read_json, write_whole};
use crate::run::evaluate::Evaluation;
use crate::run::folder::{Card, Run, Trained};
use crate::run::trajectory::kept as kept_points;
use crate::runs::{below, run_or_recipe};
use crate::stages::{Found, judge_found, opened};
use crate::wording::{claim_line_in, ended};
use crate::{records, tasks};

/// Selection of runs.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Folders or names of runs, or names or paths of recipes.
    pub runs: Vec<String>,
    /// Arms; empty selects all.
    pub arms: Vec<String>,
    /// Seeds; empty selects all.
    pub seeds: Vec<u64>,
    /// Tier of the runs of a recipe.
    pub tier: Option<String>,
    /// The ledger; `None` is the home's.
    pub ledger: Option<PathBuf>,
}

/// An opened run with the content of its folder.
struct Opened {
    run: Run,
    recipe: Recipe,
    trained: Option<Trained>,
    evaluations: Vec<Evaluation>,
    on_the_way: BTreeMap<Moment, Vec<Evaluation>>,
}

/// The report on the selected runs.
///
/// # Errors
/// There are no such runs, they belong to several recipes, or a ledger that the user named is
/// damaged.
pub fn page(context: &Context, wanted: &Wanted) -> Result<Page> {
    let mut missing = Vec::new();
    let opened = open(context, wanted, &mut missing)?;
    let first = &opened[0];
    let entries = entries(context, wanted, &mut missing)?;
    let record = record_of(&entries, &opened);
    let mut shown = Vec::new();
    for (at, one) in opened.iter().enumerate() {
        shown.extend(parts(context, at, one, &mut missing));
    }
    let recipe = &first.recipe;
    let toml = opened.iter().map(|one| {
        let text = fs::read_to_string(one.run.folder.join("recipe.toml")).unwrap_or_default();
        (one.run.card.arm.clone(), text)
    });
    let mut recipes: Vec<(String, String)> = Vec::new();
    for (arm, text) in toml {
        if !recipes.iter().any(|(known, _)| *known == arm) {
            recipes.push((arm, text));
        }
    }
    let current = Environment::current("none", context.threads);
    Ok(Page {
        recipe: RecipePart {
            name: recipe.recipe.name.clone(),
            tier: first.run.card.tier.clone(),
            task: recipe.recipe.task.to_string(),
            summary: recipe.recipe.summary.clone(),
            origin: recipe.recipe.origin.clone(),
            claims: recipe.claim.clone(),
            overrides: first.run.card.overrides.clone(),
            toml: recipes,
        },
        program: format!("zoo {}, commit {}", current.version, current.sources()),
        made: utc_now(),
        verdicts: verdicts(&opened, record, &entries)?,
        runs: opened.iter().map(|one| run_part(one, record, &entries, &mut missing)).collect(),
        profiles: profiles::profiles(opened.iter().map(|one| &one.run), &mut missing),
        evaluations: shown,
        missing,
    })
}

/// The runs sorted by arm and seed, in the order of the recipe's arms.
fn open(context: &Context, wanted: &Wanted, missing: &mut Vec<String>) -> Result<Vec<Opened>> {
    let mut found: Vec<Opened> = Vec::new();
    for name in &wanted.runs {
        let folders = match run_or_recipe(context, name)? {
            Some(folder) => vec![folder],
            None => folders_of(context, name, wanted)?,
        };
        for folder in folders {
            let (run, recipe) = opened(&folder)?;
            let card = &run.card;
            let is_wanted = (wanted.arms.is_empty() || wanted.arms.contains(&card.arm))
                && (wanted.seeds.is_empty() || wanted.seeds.contains(&card.seed));
            if is_wanted && !found.iter().any(|known| known.run.folder == run.folder) {
                let trained = if run.is_trained(true)? { Some(run.trained()?) } else { None };
                found.push(Opened {
                    run,
                    recipe,
                    trained,
                    evaluations: Vec::new(),
                    on_the_way: BTreeMap::new(),
                });
            }
        }
    }
    let Some(first) = found.first() else {
        return Err(Failure::usage("no run matches the given arms and seeds")
            .hint("omit --arms and --seeds to include all runs"));
    };
    let of = |one: &Opened| (one.run.card.recipe.clone(), one.run.card.tier.clone());
    if let Some(other) = found.iter().find(|one| of(one) != of(first)) {
        let message = format!(
            "{} and {} are of different recipes or tiers",
            context.shown(&first.run.folder),
            context.shown(&other.run.folder)
        );
        return Err(
            Failure::usage(message).hint("a report covers one recipe and tier; write one report for each")
        );
    }
    for one in &mut found {
        one.evaluations = evaluations(&one.run.folder.join("eval"), missing);
        match kept_points(&one.run, &one.recipe) {
            Ok(found) => one.on_the_way = found,
            Err(failure) => missing.push(format!("Interim scores are omitted. {}", failure.parts().0)),
        }
    }
    Ok(found)
}

/// The folders of a recipe's runs: for each arm and seed, the one that was written last.
fn folders_of(context: &Context, name: &str, wanted: &Wanted) -> Result<Vec<PathBuf>> {
    let document = Document::load(name)?;
    let tiered = |tier: Option<&str>| match tier {
        None => document.name().to_owned(),
        Some(tier) => format!("{}.{tier}", document.name()),
    };
    let runs = context.runs_dir();
    let mut found: Vec<(Card, PathBuf)> = Vec::new();
    for run in below(&runs, &tiered(wanted.tier.as_deref())) {
        match read_json(&run.folder.join("run.json")) {
            Ok(card) => found.push((card, run.folder)),
            Err(failure) => {
                context.progress.note(&format!("{} is skipped: {failure}", context.shown(&run.folder)));
            }
        }
    }
    let arms = document.arms();
    let order = |card: &Card| (arms.iter().position(|arm| *arm == card.arm).unwrap_or(arms.len()), card.seed);
    // A stable sort: the newest of an arm and seed stays first.
    found.sort_by_key(|(card, _)| order(card));
    let all = found.len();
    found.dedup_by(|(older, _), (newer, _)| (&older.arm, older.seed) == (&newer.arm, newer.seed));
    if found.len() < all {
        context.progress.note(&format!(
            "{} older runs of the same arms and seeds are skipped; give their folders to include them",
            all - found.len()
        ));
    }
    if found.is_empty() {
        let failure = Failure::usage(format!(
            "no run of {name} is in {}",
            context.shown(&runs.join(tiered(wanted.tier.as_deref())))
        ));
        let tiers = document.tiers();
        let other = tiers.iter().find(|tier| wanted.tier.is_none() && runs.join(tiered(Some(tier))).is_dir());
        return Err(match other {
            Some(tier) => failure.hint(format!("--tier {tier} has some")),
            None => failure.hint(format!("`zoo reproduce {name}` makes them, or name a run's folder")),
        });
    }
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The ledger's entries. A damaged ledger is ignored unless the user named it.
fn entries(context: &Context, wanted: &Wanted, missing: &mut Vec<String>) -> Result<Vec<Entry>> {
    match records::ledger(context, wanted.ledger.as_deref()).entries() {
        Ok(entries) => Ok(entries),
        Err(error) if wanted.ledger.is_some() => Err(error.into()),
        Err(error) => {
            let why = format!("The ledger of this home is left aside: {error}");
            context.progress.note(&why);
            missing.push(why);
            Ok(Vec::new())
        }
    }
}

/// The record that covers most of these runs; the newest if several do. A run is identified by its
/// training time.
fn record_of<'e>(entries: &'e [Entry], opened: &[Opened]) -> Option<&'e Entry> {
    let card = &opened.first()?.run.card;
    let matches = |record: &Record| opened.iter().filter(|one| is_on(record, one)).count();
    let of_these = entries.iter().filter(|entry| {
        let record = &entry.record;
        record.recipe == card.recipe
            && record.tier == card.tier
            && matches!(record.end, RunEnd::Finished | RunEnd::Failed)
            && record.without_outputs().is_empty()
    });
    let best = of_these.map(|entry| (matches(&entry.record), entry.sequence, entry));
    best.filter(|(matches, ..)| *matches > 0)
        .max_by_key(|(matches, at, _)| (*matches, *at))
        .map(|(.., entry)| entry)
}

fn is_on(record: &Record, one: &Opened) -> bool {
    let card = &one.run.card;
    let recorded = record.durations.get(&format!("train {} seed {}", card.arm, card.seed));
    one.trained.as_ref().is_some_and(|trained| recorded == Some(&trained.seconds))
}

/// The recorded verdicts, else verdicts on these runs.
fn verdicts(opened: &[Opened], record: Option<&Entry>, entries: &[Entry]) -> Result<VerdictsPart> {
    let claims = &opened[0].recipe.claim;
    if let Some(entry) = record {
        let record = &entry.record;
        let covered = opened.iter().filter(|one| is_on(record, one)).count();
        let part = match covered == opened.len() {
            true => String::new(),
            false => format!(" It is on {covered} of the {} runs of this page.", opened.len()),
        };
        let commit = record.commit.as_deref().unwrap_or("unknown");
        let from = format!(
            "As recorded: entry {} of the ledger, {}, seeds {}, commit {commit}, hash {}.{part}",
            entry.sequence,
            record.time,
            records::seeds(record),
            &entry.hash[..12.min(entry.hash.len())]
        );
        let from = match uncounted(record) {
            Some(why) => format!("{from} These verdicts are {why}."),
            None => from,
        };
        // The current built-in recipe, if there is one: runs may be older than the marks of its
        // claims.
        let present = Document::load(&record.recipe)
            .and_then(|document| Ok(document.resolve(&Selection::default())?.recipe.claim.clone()));
        let present = present.unwrap_or_else(|_| claims.clone());
        let judged = record.judgements.iter().map(|judgement| {
            let arm = judgement.evidence.arm.clone().unwrap_or_default();
            let at = claims.iter().position(|claim| claim.claims_the_same(&judgement.claim));
            JudgedPart {
                number: at.map_or(0, |at| at + 1),
                statement: claim_line_in(&judgement.claim, &arm),
                verdict: today(judgement, &present, entry, entries),
                arm,
            }
        });
        return Ok(VerdictsPart { from, judged: judged.collect() });
    }
    let ended: Vec<Found<'_>> = (opened.iter())
        .filter_map(|one| {
            let trained = one.trained.as_ref()?;
            let (evaluations, on_the_way) = (&one.evaluations[..], &one.on_the_way);
            Some(Found { run: &one.run, trained, evaluations, on_the_way })
        })
        .collect();
    let judged = judge_found(&ended, claims)?;
    let from = format!(
        "Judged for this page, on the {} of {} runs that have ended: the ledger has no record of them. Speed was not timed, and \
         the device's product precision was not probed.",
        ended.len(),
        opened.len()
    );
    let judged = judged.into_iter().map(|one| JudgedPart {
        number: one.number,
        arm: one.arm.clone(),
        statement: claims
            .get(one.number.wrapping_sub(1))
            .map_or_else(String::new, |claim| claim_line_in(claim, &one.arm)),
        verdict: match claims.get(one.number.wrapping_sub(1)) {
            Some(claim) => listed(claim, &one.verdict),
            None => one.verdict,
        },
    });
    Ok(VerdictsPart { from, judged: judged.collect() })
}

/// A recorded verdict under the current rules, with notes on the recorded outcome if it differs,
/// and on earlier verdicts on the same claim.
fn today(judgement: &Judgement, present: &[ClaimSpec], entry: &Entry, entries: &[Entry]) -> Verdict {
    let (own, extends) = match present.iter().find(|claim| claim.claims_the_same(&judgement.claim)) {
        Some(claim) => (claim.own.clone(), claim.extends.clone()),
        None => (judgement.claim.own.clone(), judgement.claim.extends.clone()),
    };
    let claim = ClaimSpec { own, extends, ..judgement.claim.clone() };
    let mut verdict = listed(&claim, &rejudge(&entry.record.recipe, &claim, &judgement.evidence));
    let was = judgement.verdict.outcome;
    if verdict.outcome != was && verdict.outcome != Outcome::NotJudgeable {
        verdict.notes.push(format!("recorded as {was} under the rules of that time"));
    }
    let before =
        entries.iter().take_while(|known| known.sequence != entry.sequence).map(|known| &known.record);
    let arm = judgement.evidence.arm.clone().or_else(|| judgement.verdict.arm.clone()).unwrap_or_default();
    if entry.record.tier.is_none() {
        verdict.notes.extend(Earlier::of(before, &entry.record.recipe, &claim, &arm).text());
    }
    verdict
}

fn run_part(one: &Opened, record: Option<&Entry>, entries: &[Entry], missing: &mut Vec<String>) -> RunPart {
    let Opened { run, recipe, trained, .. } = one;
    let card = &run.card;
    let path = run.folder.join("log.jsonl");
    let log = match File::open(&path).and_then(|file| TrainingLog::read(BufReader::new(file))) {
        Ok(log) => Some(log),
        Err(error) => {
            missing.push(format!("{}, seed {}: its log cannot be read: {error}", card.arm, card.seed));
            None
        }
    };
    let updates =
        trained.as_ref().map_or_else(|| log.as_ref().map_or(0, |log| log.updates), |trained| trained.updates);
    let of = recipe.train.max_updates.map_or_else(String::new, |most| format!(" of {}", grouped(most)));
    let seconds = trained.as_ref().map(|trained| trained.seconds).or(log.as_ref().map(|log| log.seconds));
    let exactly = log.as_ref().and_then(|log| log.parameters).map(grouped);
    let parameters = exactly.or_else(|| tasks::of(recipe).size().map(|size| size.parameters()));
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    let count =
        |of: fn(&Trained) -> u64| trained.as_ref().map_or_else(String::new, |trained| grouped(of(trained)));
    let numbers = [
        ("updates", format!("{}{of}", grouped(updates))),
        ("epochs", count(|trained| trained.epochs)),
        (
            "skipped for overflow",
            log.as_ref().map_or_else(|| count(|trained| trained.skipped), |log| grouped(log.skipped)),
        ),
        ("training took", seconds.map_or_else(String::new, duration)),
        ("last loss", number(trained.as_ref().and_then(|trained| trained.last_loss))),
        ("best validation loss", number(trained.as_ref().and_then(|trained| trained.best_valid_loss))),
        ("parameters", parameters.unwrap_or_default()),
        ("sessions", log.as_ref().map_or_else(String::new, |log| grouped(log.sessions))),
        ("key", card.key.chars().take(12).collect()),
    ];
    let record = record.map(|entry| &entry.record).filter(|record| is_on(record, one));
    RunPart {
        arm: card.arm.clone(),
        seed: card.seed,
        state: state(one, entries),
        numbers: named(numbers),
        environment: environment(one, record),
        log,
    }
}

fn named<const N: usize>(pairs: [(&str, String); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// How a run ended, or the ledger's reason why it did not.
fn state(one: &Opened, entries: &[Entry]) -> String {
    let card = &one.run.card;
    if let Some(trained) = &one.trained {
        return ended(&trained.ending);
    }
    let of_this = entries.iter().rev().map(|entry| &entry.record).find(|record| {
        (&record.recipe, &record.tier, record.arm.as_ref(), record.seeds.as_slice())
            == (&card.recipe, &card.tier, Some(&card.arm), &[card.seed][..])
    });
    match of_this {
        Some(record) if record.end == RunEnd::Interrupted => {
            "interrupted: the same command resumes it".to_owned()
        }
        Some(Record { end: RunEnd::Failed, reason: Some(reason), .. }) => {
            format!("failed: {}", reason.lines().next().unwrap_or_default())
        }
        _ => "not ended".to_owned(),
    }
}

fn environment(one: &Opened, record: Option<&Record>) -> Vec<(String, String)> {
    let card = &one.run.card;
    let Environment {
        version,
        commit,
        dirty,
        dirt,
        lock,
        profile,
        platform,
        processor,
        instructions,
        threads,
        device,
    } = &card.environment;
    let proved = record.and_then(|record| record.precision.get(&card.arm));
    let commits = one.trained.as_ref().map_or_else(String::new, |trained| trained.commits.join(", "));
    named([
        ("device", device.clone()),
        ("hardware", record.and_then(|record| record.hardware.clone()).unwrap_or_else(|| processor.clone())),
        ("products asked for", card.compute.clone()),
        ("products proved", proved.cloned().unwrap_or_else(|| "no record".to_owned())),
        ("threads", threads.to_string()),
        ("instructions", instructions.join(" ")),
        ("platform", platform.clone()),
        ("program", format!("zoo {version}, {profile} build")),
        ("commit", format!("{commit}{}", if *dirty { ", changed" } else { "" })),
        ("changed sources", dirt.as_ref().map(|dirt| format!("sha256 {dirt}")).unwrap_or_default()),
        (
            "commits of all sessions",
            if commits == one.run.card.environment.sources() { String::new() } else { commits },
        ),
        ("dependency lock", lock.chars().take(12).collect()),
    ])
}

/// Writes a report. Overwrites an existing file only if it is a report.
///
/// # Errors
/// The existing file is not a report, or the file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<()> {
    match fs::read(path) {
        Ok(there) if !zoo_results::report::page::is_page(&there) => {
            return Err(Failure::usage(format!("{} exists and is not a report", path.display()))
                .hint("choose another path with --out FILE; only reports are overwritten"));
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Failure::new(Exit::Usage, format!("cannot write {}: {error}", path.display()))
                .hint("--out FILE names another place"));
        }
        _ => {}
    }
    write_whole(path, text.as_bytes())
}
