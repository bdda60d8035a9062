//! `zoo cache`: shows, verifies and removes what lies in the home.

use std::collections::BTreeSet;
use std::time::SystemTime;

use zoo_datasets::corpora::ByteCount;
use zoo_results::exit::Exit;
use zoo_results::report::duration;

use crate::cache::{
    Checked, Choice, Entry, Extent, Kind, Needs, Planned, Removal, entries, plan, remove, verify,
};
use crate::cli::{CacheArgs, CacheCommand, CacheGcArgs, CacheLsArgs, CacheVerifyArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::gate;
use crate::output::{self, Cell, Format, Table};

pub fn run(context: &Context, args: &CacheArgs) -> Result<Exit> {
    match &args.command {
        None => list(context, &args.ls),
        Some(CacheCommand::Ls(args)) => list(context, args),
        Some(CacheCommand::Verify(args)) => check(context, args),
        Some(CacheCommand::Gc(args)) => collect(context, args),
    }
}

/// Whether a format is read by people.
fn for_people(context: &Context) -> bool {
    matches!(context.format, Format::Human | Format::Md)
}

fn size(context: &Context, bytes: u64) -> Cell {
    match for_people(context) {
        true => Cell::words(ByteCount { known: bytes, unknown: 0 }.to_string()),
        false => Cell::count(bytes),
    }
}

fn age(context: &Context, extent: &Extent, now: SystemTime) -> Cell {
    match (extent.age(now), for_people(context)) {
        (Some(age), true) => Cell::words(duration(age.as_secs_f64())),
        (Some(age), false) => Cell::count(age.as_secs()),
        (None, _) => Cell::words(""),
    }
}

/// Titles for people and for programs.
fn titles<'t>(context: &Context, people: &[&'t str], programs: &[&'t str]) -> Table {
    output::columns(if for_people(context) { people } else { programs }.iter().copied())
}

fn list(context: &Context, args: &CacheLsArgs) -> Result<Exit> {
    if !args.entries && args.kinds.is_empty() {
        return sizes(context);
    }
    let kinds = if args.kinds.is_empty() { Kind::ALL.to_vec() } else { args.kinds.clone() };
    // A damaged ledger does not keep the user from looking.
    let records = Needs::ledger(context).unwrap_or_else(|failure| {
        context.progress.note(&format!("the ledger of this home cannot be read: {failure}"));
        Vec::new()
    });
    let found = entries(context, &kinds, &Needs::of(context, &records));
    let now = SystemTime::now();
    let mut table = titles(
        context,
        &["kind", "entry", "#files", "#size", "#age", "of", "needed by"],
        &["kind", "entry", "files", "bytes", "age seconds", "of", "needed by", "paths"],
    );
    for entry in &found {
        let mut row = vec![
            Cell::words(entry.kind.word()),
            Cell::words(&entry.name),
            Cell::count(entry.extent.files),
            size(context, entry.extent.bytes),
            age(context, &entry.extent, now),
            Cell::words(&entry.of),
            Cell::list(entry.needed.clone(), "; "),
        ];
        if !for_people(context) {
            row.push(Cell::list(entry.paths.iter().map(|path| path.display().to_string()), "\n"));
        }
        table.push(row);
    }
    output::write_table("cache ls", "entries", &table, context.format)?;
    if found.is_empty() {
        context.progress.note(&format!("{} has nothing of these kinds", context.shown(&context.home)));
    }
    Ok(Exit::Ok)
}

fn sizes(context: &Context) -> Result<Exit> {
    // What needs an entry does not change its size; the runs have the checkpoints.
    let found = entries(context, &Kind::ALL, &Needs::of_runs(context));
    let mut table =
        titles(context, &["kind", "#entries", "#files", "#size"], &["kind", "entries", "files", "bytes"]);
    let mut all = Extent::default();
    let mut count = 0;
    for kind in Kind::ALL {
        let mut sum = Extent::default();
        let of_kind: Vec<&Entry> = found.iter().filter(|entry| entry.kind == kind).collect();
        of_kind.iter().for_each(|entry| sum.add(entry.extent));
        // The checkpoints of a run can be two entries.
        let names: BTreeSet<&str> = of_kind.iter().map(|entry| entry.name.as_str()).collect();
        table.push(sums(context, &kind.word(), names.len(), sum));
        all.add(sum);
        count += names.len();
    }
    if for_people(context) {
        table.push(sums(context, "total", count, all));
    }
    output::write_table("cache ls", "kinds", &table, context.format)?;
    context.progress.note(&format!("home: {}", context.home.display()));
    Ok(Exit::Ok)
}

fn sums(context: &Context, kind: &str, entries: usize, sum: Extent) -> Vec<Cell> {
    let count = Cell::count(entries as u64);
    vec![Cell::words(kind), count, Cell::count(sum.files), size(context, sum.bytes)]
}

fn check(context: &Context, args: &CacheVerifyArgs) -> Result<Exit> {
    let kinds = if args.kinds.is_empty() { Kind::ALL.to_vec() } else { args.kinds.clone() };
    let mut table = output::columns(["kind", "file", "fault", "mend"]);
    let (mut exit, mut faults) = (Exit::Ok, 0);
    for kind in kinds {
        let Some(checked) = verify(context, kind)? else {
            if !args.kinds.is_empty() {
                context.progress.note(&format!("{}: these files have no digests", kind.word()));
            }
            continue;
        };
        context.progress.note(&summary(kind, &checked));
        checked.notes.iter().for_each(|note| context.progress.note(note));
        for fault in &checked.faults {
            table.push(output::words([
                fault.kind.word(),
                context.shown(&fault.path),
                fault.fault.clone(),
                fault.mend.clone(),
            ]));
        }
        faults += checked.faults.len();
        if checked.exit().code() > exit.code() {
            exit = checked.exit();
        }
    }
    if faults > 0 || context.format != Format::Human {
        output::write_table("cache verify", "faults", &table, context.format)?;
    }
    match exit {
        Exit::Ok => Ok(Exit::Ok),
        exit => {
            let files = if faults == 1 { "1 file is" } else { &format!("{faults} files are") };
            Err(Failure::new(exit, format!("{files} damaged or missing"))
                .hint("the table on stdout says how to mend each"))
        }
    }
}

fn summary(kind: Kind, checked: &Checked) -> String {
    let size = ByteCount { known: checked.bytes, unknown: 0 };
    let faults = match checked.faults.len() {
        0 => "all as recorded".to_owned(),
        faults => format!("{faults} damaged or missing"),
    };
    let files = if checked.files == 1 { "1 file".to_owned() } else { format!("{} files", checked.files) };
    format!("{}: {files}, {size}: {faults}", kind.word())
}

fn collect(context: &Context, args: &CacheGcArgs) -> Result<Exit> {
    let choice = choice(args)?;
    let mut planned = planned(context, &choice)?;
    if for_people(context) || args.plan {
        output::write_table("cache gc", "entries", &table(context, &planned), context.format)?;
    }
    if args.plan {
        context.progress.note(&totals("would be removed", &planned, |one| one.remove));
        return Ok(Exit::Ok);
    }
    if planned.iter().any(|one| one.remove) {
        let what = totals("", &planned, |one| one.remove);
        gate::confirm(context, &format!("removes {what} for good"))?;
        if !context.yes {
            // The answer may have taken hours.
            let now = self::planned(context, &choice)?;
            let paths: BTreeSet<_> =
                now.iter().filter(|one| one.remove).map(|one| &one.entry.paths).collect();
            for one in planned.iter_mut().filter(|one| one.remove && !paths.contains(&one.entry.paths)) {
                (one.remove, one.why) = (false, "it changed since the plan".to_owned());
            }
        }
    }
    let failures = carry_out(context, &mut planned);
    if !for_people(context) {
        output::write_table("cache gc", "entries", &table(context, &planned), context.format)?;
    }
    context.progress.note(&totals("removed", &planned, |one| one.remove));
    match failures.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(Exit::Ok),
    }
}

fn choice(args: &CacheGcArgs) -> Result<Choice> {
    let chosen = [
        (args.downloads, &[Kind::Downloads, Kind::Corpora][..]),
        (args.prepared, &[Kind::Prepared]),
        (args.checkpoints, &[Kind::Checkpoints]),
        (args.runs, &[Kind::Runs]),
        (args.hypotheses, &[Kind::Hypotheses]),
        (args.kernels, &[Kind::Kernels]),
    ];
    let kinds: Vec<Kind> = chosen
        .into_iter()
        .filter(|(chosen, _)| *chosen)
        .flat_map(|(_, kinds)| kinds.iter().copied())
        .collect();
    if kinds.is_empty() && (args.older.is_some() || args.force) {
        return Err(Failure::usage("--older and --force need a kind to remove")
            .hint("add --checkpoints, --runs, --prepared, --downloads, --hypotheses or --kernels"));
    }
    if args.runs && args.keep.is_none() && args.older.is_none() {
        return Err(Failure::usage("--runs needs --keep N or --older DAYS")
            .hint("`zoo cache gc --runs --keep 1` keeps the newest run of each recipe, arm and seed"));
    }
    let keep = args.keep.and_then(|keep| usize::try_from(keep).ok());
    Ok(Choice { kinds, older: args.older, keep, force: args.force })
}

fn planned(context: &Context, choice: &Choice) -> Result<Vec<Planned>> {
    let records = match Needs::ledger(context) {
        Ok(records) => records,
        // Nothing that a record may need is removed then.
        Err(failure) if choice.kinds.is_empty() || choice.force => {
            context.progress.note(&format!("the ledger of this home cannot be read: {failure}"));
            Vec::new()
        }
        Err(failure) => {
            return Err(failure
                .about("what records need is unknown")
                .hint("--force removes it nevertheless"));
        }
    };
    let kinds = [Kind::Temporary, Kind::Prepared].into_iter().chain(choice.kinds.iter().copied());
    let kinds: Vec<Kind> = kinds.collect();
    let needs = Needs::of(context, &records);
    Ok(plan(entries(context, &kinds, &needs), choice, SystemTime::now()))
}

/// Removes what the plan says. Entries that a process began to use, those after Ctrl-C, and those that
/// cannot be removed are kept, and the plan is corrected.
fn carry_out(context: &Context, planned: &mut [Planned]) -> Vec<Failure> {
    let mut failures = Vec::new();
    for one in planned.iter_mut().filter(|one| one.remove) {
        if let Err(stopped) = context.check_stop() {
            (one.remove, one.why) = (false, "interrupted".to_owned());
            if failures.is_empty() {
                failures.push(stopped);
            }
            continue;
        }
        context.progress.stage(&format!("remove {}", one.entry.name));
        match remove(context, &one.entry) {
            Ok(Removal::Removed) => {}
            Ok(Removal::Kept(why)) => {
                context.progress.note(&format!("kept {}: {why}", one.entry.name));
                (one.remove, one.why) = (false, why);
            }
            Err(failure) => {
                (one.remove, one.why) = (false, failure.parts().0.to_owned());
                failures.push(failure);
            }
        }
    }
    context.progress.end_stage();
    failures
}

fn table(context: &Context, planned: &[Planned]) -> Table {
    let mut table = titles(
        context,
        &["action", "kind", "entry", "#frees", "why"],
        &["action", "kind", "entry", "bytes", "why", "paths"],
    );
    for one in planned {
        let mut row = vec![
            Cell::words(if one.remove { "remove" } else { "keep" }),
            Cell::words(one.entry.kind.word()),
            Cell::words(&one.entry.name),
            size(context, one.entry.frees),
            Cell::words(&one.why),
        ];
        if !for_people(context) {
            row.push(Cell::list(one.entry.paths.iter().map(|path| path.display().to_string()), "\n"));
        }
        table.push(row);
    }
    table
}

/// `removed 3 entries, 1.2 GB`.
fn totals(verb: &str, planned: &[Planned], of: impl Fn(&Planned) -> bool) -> String {
    let chosen: Vec<&Planned> = planned.iter().filter(|one| of(one)).collect();
    let bytes = chosen.iter().map(|one| one.entry.frees).fold(0, u64::saturating_add);
    let entries = if chosen.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", chosen.len()) };
    let size = ByteCount { known: bytes, unknown: 0 };
    match verb {
        "" => format!("{entries}, {size}"),
        verb => format!("{verb}: {entries}, {size}"),
    }
}
