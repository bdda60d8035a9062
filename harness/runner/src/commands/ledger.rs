//! `zoo ledger`: verifies, rechecks, merges, lists and shows recorded results.

use std::path::Path;

use serde_json::json;
use zoo_results::exit::Exit;
use zoo_results::ledger::{Contradiction, Entry, GENESIS, Ledger, recheck};
use zoo_results::report::{ledger_table, score_rows, verdict_rows};

use crate::cli::{
    LedgerCommand, LedgerExportArgs, LedgerFile, LedgerListArgs, LedgerMergeArgs, LedgerRows, LedgerShowArgs,
    LedgerVerifyArgs,
};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::exporting;
use crate::merging::{self, Merged};
use crate::output::{self, Cell, Format};
use crate::records;
use crate::rescore::{FromRecipes, Held, held_against_recipes};
use crate::run_folders;
use crate::wording::{claim_line, verdict_text};

pub fn run(context: &Context, command: &LedgerCommand) -> Result<Exit> {
    match command {
        LedgerCommand::Verify(args) => verify(context, args),
        LedgerCommand::Recheck(args) => match &args.bundle {
            Some(bundle) => super::bundle::recheck(context, bundle, args),
            None => check_again(context, &args.file),
        },
        LedgerCommand::Merge(args) => merge(context, args),
        LedgerCommand::List(args) => list(context, args),
        LedgerCommand::Export(args) => export(context, args),
        LedgerCommand::Show(args) => show(context, args),
    }
}

fn verify(context: &Context, args: &LedgerVerifyArgs) -> Result<Exit> {
    let ledger = records::open(context, args.file.ledger.as_deref())?;
    let (count, head) = ledger.verify(args.head.as_deref())?;
    let entries = ledger.entries()?;
    if let Some(earlier) = &args.holds {
        holds(context, &ledger, &entries, earlier)?;
    }
    for entry in &entries {
        if let Some(Contradiction { what, how }) = entry.record.contradictions().into_iter().next() {
            let path = context.shown(ledger.path());
            return Err(Failure::new(Exit::Damaged, format!("{path}:{}: {what}: {how}", entry.sequence + 1))
                .hint("the record contradicts itself: it was edited and the chain was re-hashed"));
        }
    }
    match context.format {
        Format::Human => {
            let path = context.shown(ledger.path());
            output::write(&format!("{path}: {count} records, intact; last hash {head}\n"))?;
        }
        Format::Json => {
            let members = json!({ "ledger": ledger.path(), "records": count, "head": head });
            output::write_document("ledger verify", &members)?;
        }
        format => {
            let mut table = output::columns(["#records", "head"]);
            table.push(vec![Cell::count(count as u64), Cell::words(head)]);
            output::write(&table.render(format))?;
        }
    }
    Ok(Exit::Ok)
}

/// Checks that an earlier last hash is still in the chain. A prefix must have at least twelve
/// digits to identify a record.
fn holds(context: &Context, ledger: &Ledger, entries: &[Entry], earlier: &str) -> Result<()> {
    const LEAST: usize = 12;
    if earlier.len() < LEAST {
        return Err(Failure::usage(format!("--holds {earlier} has less than {LEAST} digits"))
            .hint("give the hash that `zoo reproduce` or `zoo ledger verify` printed"));
    }
    if earlier == GENESIS || entries.iter().any(|entry| entry.hash.starts_with(earlier)) {
        return Ok(());
    }
    let message = format!("no record of {} has the hash {earlier}", context.shown(ledger.path()));
    Err(Failure::new(Exit::Damaged, message)
        .hint("records were removed or the file was rewritten; restore it from version control"))
}

fn check_again(context: &Context, args: &LedgerFile) -> Result<Exit> {
    let ledger = records::open(context, args.ledger.as_deref())?;
    let entries = ledger.entries()?;
    let folder = ledger.path().parent().unwrap_or(Path::new("")).join(records::HYPOTHESES);
    let mut found = recheck(&entries, &folder, &mut FromRecipes::new(context, &folder));
    let Held { disagreements, other_versions } = held_against_recipes(&entries);
    found.disagreements.extend(disagreements);
    found.disagreements.extend(run_folders::disagreements(context, &entries));
    let mut table = output::columns(["#record", "recipe", "what", "how"]);
    for one in &found.disagreements {
        table.push(vec![
            Cell::count(one.sequence),
            Cell::words(one.recipe.clone()),
            Cell::words(one.what.clone()),
            Cell::words(one.how.clone()),
        ]);
    }
    match context.format {
        Format::Human => {
            let mut text = format!(
                "{}: {} scores and {} verdicts derived again",
                context.shown(ledger.path()),
                found.scores,
                found.verdicts
            );
            if found.scores_without_hypotheses > 0 {
                text.push_str(&format!("; {} scores came from outside", found.scores_without_hypotheses));
            }
            if found.taken_from_record > 0 {
                text.push_str(&format!("; {} numbers taken as recorded", found.taken_from_record));
            }
            if other_versions > 0 {
                text.push_str(&format!("; {other_versions} records are of other versions of their recipes"));
            }
            text.push('\n');
            if !found.disagreements.is_empty() {
                text.push_str(&table.render(Format::Human));
            }
            output::write(&text)?;
        }
        Format::Json => output::write_document(
            "ledger recheck",
            &json!({
                "ledger": ledger.path(),
                "scores": found.scores,
                "scores_without_hypotheses": found.scores_without_hypotheses,
                "verdicts": found.verdicts,
                "taken_from_record": found.taken_from_record,
                "other_versions": other_versions,
                "disagreements": table.objects(),
            }),
        )?,
        format => output::write(&table.render(format))?,
    }
    match found.disagreements.as_slice() {
        [] => Ok(Exit::Ok),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            let message = format!("record {}: {}: {}{more}", first.sequence, first.what, first.how);
            // If references were missing for all disagreements, this is missing data and not
            // damage.
            if found.disagreements.iter().all(|one| one.unseen) {
                return Err(Failure::new(Exit::Data, message)
                    .hint("get the references with `zoo fetch RECIPE` or --mirror; all other values match"));
            }
            Err(Failure::new(Exit::Damaged, message)
                .hint("the hypotheses, references or program differ from those of the record"))
        }
    }
}

fn merge(context: &Context, args: &LedgerMergeArgs) -> Result<Exit> {
    let other = records::open(context, Some(&args.other))?;
    let ledger = records::open(context, args.file.ledger.as_deref())?;
    let merged = merging::merge(&ledger, &other)?;
    let Merged { records, known, files, head } = &merged;
    match context.format {
        Format::Human => {
            let path = context.shown(ledger.path());
            output::write(&format!(
                "{path}: {records} records and {files} files taken over, {known} records were there; last hash {head}\n"
            ))?;
        }
        Format::Json => output::write_document("ledger merge", &merged)?,
        format => {
            let mut table = output::columns(["#records", "#known", "#files", "head"]);
            let count = |n: usize| Cell::count(n as u64);
            table.push(vec![count(*records), count(*known), count(*files), Cell::words(head.clone())]);
            output::write(&table.render(format))?;
        }
    }
    Ok(Exit::Ok)
}

/// The entries of a ledger, or those of one recipe.
fn entries(context: &Context, file: &LedgerFile, recipe: Option<&str>) -> Result<Vec<Entry>> {
    let mut entries = records::open(context, file.ledger.as_deref())?.entries()?;
    entries.retain(|entry| recipe.is_none_or(|recipe| recipe == entry.record.recipe));
    Ok(entries)
}

fn export(context: &Context, args: &LedgerExportArgs) -> Result<Exit> {
    let entries = entries(context, &args.file, args.recipe.as_deref())?;
    let (key, table) = match args.rows {
        LedgerRows::Verdicts => ("verdicts", verdict_rows(&entries)),
        LedgerRows::Scores => ("scores", score_rows(&entries)),
    };
    exporting::write("ledger export", key, &table, context.format, args.out.as_deref())?;
    if args.out.is_some() || table.rows.is_empty() {
        context.progress.note(&format!("{} {key} of {} records", table.rows.len(), entries.len()));
    }
    Ok(Exit::Ok)
}

fn list(context: &Context, args: &LedgerListArgs) -> Result<Exit> {
    let table = ledger_table(&entries(context, &args.file, args.recipe.as_deref())?);
    output::write_table("ledger list", "records", &table, context.format)?;
    Ok(Exit::Ok)
}

fn show(context: &Context, args: &LedgerShowArgs) -> Result<Exit> {
    let ledger = records::open(context, args.file.ledger.as_deref())?;
    let Some(entry) = ledger.find(&args.entry)? else {
        return Err(Failure::usage(format!(
            "there is no entry {} in {}",
            args.entry,
            context.shown(ledger.path())
        ))
        .hint("`zoo ledger list` shows their numbers and hashes"));
    };
    match context.format {
        Format::Json => output::write_document(
            "ledger show",
            &json!({
                "sequence": entry.sequence,
                "previous": entry.previous,
                "hash": entry.hash,
                "record": entry.record,
            }),
        )?,
        Format::Human => output::write_painted(&text(&entry))?,
        format => output::write(&ledger_table([&entry]).render(format))?,
    }
    Ok(Exit::Ok)
}

fn text(entry: &Entry) -> String {
    let record = &entry.record;
    let mut text = format!("record {} of {}\n", entry.sequence, record.time);
    let map = |pairs: Vec<String>| pairs.join(", ");
    let facts = [
        ("hash", entry.hash.clone()),
        ("recipe", format!("{} ({})", record.recipe, record.recipe_hash)),
        ("arm", record.arm.clone().unwrap_or_default()),
        ("tier", record.tier.clone().unwrap_or_default()),
        ("seeds", records::seeds(record)),
        ("end", record.end.to_string()),
        ("reason", record.reason.clone().unwrap_or_default()),
        (
            "commit",
            record.commit.as_ref().map_or_else(String::new, |commit| {
                format!("{commit}{}", if record.dirty { ", with changes" } else { "" })
            }),
        ),
        ("crossed", record.commits_crossed.join(", ")),
        ("device", record.device.clone().unwrap_or_default()),
        ("hardware", record.hardware.clone().unwrap_or_default()),
        ("driver", record.driver.clone().unwrap_or_default()),
        ("precision", map(record.precision.iter().map(|(arm, found)| format!("{arm} {found}")).collect())),
        ("set", map(record.overrides.iter().map(|(key, value)| format!("{key}={value}")).collect())),
        ("seconds", map(record.durations.iter().map(|(stage, s)| format!("{stage} {s:.1}")).collect())),
        ("notes", record.notes.join("; ")),
    ];
    for (key, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("  {key:<9} {value}\n"));
    }
    for score in &record.scores {
        let place =
            [score.arm.as_str(), &format!("seed {}", score.seed), &score.eval, &score.decode].join(" ");
        let file = score.hypotheses.as_ref().map_or_else(String::new, |file| format!(" ({})", file.path));
        text.push_str(&format!(
            "  score     {place}: {} {:.2} {}{file}\n",
            score.metric, score.value, score.signature
        ));
    }
    for (at, judgement) in record.judgements.iter().enumerate() {
        text.push('\n');
        text.push_str(&verdict_text(at + 1, &claim_line(&judgement.claim), &judgement.verdict));
    }
    text
}
