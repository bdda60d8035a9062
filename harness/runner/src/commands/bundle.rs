//! `zoo bundle`, which packs a recorded run, and `zoo ledger recheck BUNDLE`.

use std::path::{Path, PathBuf};

use serde_json::json;
use zoo_results::bundle::{Bundle, BundleError, Checked, MAX_BYTES, check};
use zoo_results::exit::Exit;

use crate::bundling::{self, Found, entry_of, gather, references_if_sound};
use crate::cli::{BundleArgs, LedgerRecheckArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Cell, Format};
use crate::records;
use crate::wording::claim_line;

pub fn run(context: &Context, args: &BundleArgs) -> Result<Exit> {
    let ledger = records::open(context, args.file.ledger.as_deref())?;
    let entry = entry_of(context, &ledger, &args.run)?;
    let (bundle, references) = gather(context, &ledger, &entry, args.recipe.as_deref())?;
    // Checks the bundle before it is written.
    let checked = check(&bundle, &references)?;
    refuse(&checked)?;
    let text = bundle
        .encode()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot write the bundle: {error}")))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(BundleError::TooLarge.into());
    }
    let name = format!("{}-{}.bundle.json", entry.record.recipe, &entry.hash[..12]);
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(name));
    match std::fs::read(&path) {
        Ok(there) if there == text.as_bytes() => {
            context.progress.note(&format!("{} was there already", path.display()));
        }
        Ok(_) => {
            return Err(Failure::usage(format!("{} exists with other content", path.display()))
                .hint("--out FILE names another place; nothing is overwritten"));
        }
        Err(_) => write_whole(&path, text.as_bytes())?,
    }
    let (scores, verdicts) = (checked.recheck.scores, checked.recheck.verdicts);
    match context.format {
        Format::Json => output::write_document(
            "bundle",
            &json!({
                "file": path, "record": entry.sequence, "hash": entry.hash, "bytes": text.len(),
                "hypotheses": bundle.hypotheses.len(), "references": bundle.references, "scores": scores, "verdicts": verdicts,
            }),
        )?,
        Format::Human => output::write(&format!(
            "{}: entry {} of {}, {} files of hypotheses, {} bytes; {scores} scores and {verdicts} verdicts derived again\n",
            path.display(),
            entry.sequence,
            entry.record.recipe,
            bundle.hypotheses.len(),
            text.len()
        ))?,
        format => {
            let mut table = output::columns(["file", "#record", "#bytes", "#scores", "#verdicts"]);
            let counts = [entry.sequence, text.len() as u64, scores as u64, verdicts as u64];
            let mut row = vec![Cell::words(path.display().to_string())];
            row.extend(counts.map(Cell::count));
            table.push(row);
            output::write(&table.render(format))?;
        }
    }
    Ok(Exit::Ok)
}

/// Runs `zoo ledger recheck BUNDLE`.
pub fn recheck(context: &Context, path: &Path, args: &LedgerRecheckArgs) -> Result<Exit> {
    let named = |failure: Failure| failure.about(&path.display().to_string());
    let bundle = bundling::read(path)?;
    let found = references_if_sound(context, &bundle, &args.references).map_err(named)?;
    let checked = check(&bundle, &found.lines).map_err(|error| named(error.into()))?;
    print(context, path, &bundle, &found, &checked)?;
    refuse(&checked).map_err(named)?;
    match found.missing.first() {
        Some((set, _)) if !args.without_references => Err(Failure::new(
            Exit::Data,
            format!("the references of {set} are missing, so its scores were not recomputed"),
        )
        .hint(format!(
            "pass --references {set}=FILE, or `zoo fetch` the recipe's data, or accept it with --without-references"
        ))),
        _ => Ok(Exit::Ok),
    }
}

/// Fails if the check found faults or disagreements.
fn refuse(checked: &Checked) -> Result<()> {
    let disagreements = checked.recheck.disagreements.iter();
    let mut all = checked.faults.clone();
    all.extend(disagreements.map(|one| format!("record {}: {}: {}", one.sequence, one.what, one.how)));
    match all.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            Err(Failure::new(Exit::Damaged, format!("{first}{more}"))
                .hint("the recipe, hypotheses, references or verdicts differ from the recorded ones"))
        }
    }
}

fn print(context: &Context, path: &Path, bundle: &Bundle, found: &Found, checked: &Checked) -> Result<()> {
    let record = &checked.entry.record;
    let recheck = &checked.recheck;
    let disagreements: Vec<String> =
        recheck.disagreements.iter().map(|one| format!("{}: {}", one.what, one.how)).collect();
    let mut table = output::columns(["claim|text", "arm", "recorded verdict|verdict", "explanation"]);
    for judgement in &record.judgements {
        let arm = judgement.evidence.arm.clone().unwrap_or_default();
        table.push(vec![
            Cell::words(claim_line(&judgement.claim)),
            Cell::words(arm),
            Cell::outcome(judgement.verdict.outcome),
            Cell::words(judgement.verdict.explanation.clone()),
        ]);
    }
    match context.format {
        Format::Json => output::write_document(
            "ledger recheck",
            &json!({
                "file": path, "record": checked.entry.sequence, "recipe": record.recipe, "hash": checked.entry.hash,
                "scores": recheck.scores, "verdicts": recheck.verdicts, "taken_from_record": recheck.taken_from_record,
                "without_references": checked.without_references, "faults": checked.faults, "disagreements": disagreements,
                "claims": table.objects(),
            }),
        ),
        Format::Human => {
            let tier = record.tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
            let mut text = format!(
                "{}: entry {} of {}, {}{tier}, seeds {}\n",
                path.display(),
                checked.entry.sequence,
                record.time,
                record.recipe,
                records::seeds(record)
            );
            let mut say = |key: &str, value: String| text.push_str(&format!("  {key:<11} {value}\n"));
            say("recipe", format!("{} ({})", bundle.recipe.file, record.recipe_hash));
            for one in &bundle.references {
                let missing = found.missing.iter().find(|(set, _)| *set == one.eval);
                let here = match missing {
                    Some((_, why)) => format!("missing: {}", why.lines().next().unwrap_or_default()),
                    None => format!("{} lines", one.lines),
                };
                say("references", format!("{}: {here}", one.eval));
            }
            for run in &bundle.environments {
                let part = |key: &str| run.environment[key].as_str().unwrap_or("unknown").to_owned();
                let made =
                    format!("zoo {}, commit {}, {}", part("version"), part("commit"), part("processor"));
                say("run", format!("{} seed {}: {made}", run.arm, run.seed));
            }
            say("scores", format!("{} derived again", recheck.scores));
            say("verdicts", format!("{} derived again", recheck.verdicts));
            if recheck.taken_from_record > 0 {
                say("as recorded", format!("{} numbers", recheck.taken_from_record));
            }
            text.push_str(&table.render(Format::Human));
            output::write_painted(&text)
        }
        format => output::write(&table.render(format)),
    }
}
