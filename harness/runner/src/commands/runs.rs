//! `zoo runs`: lists the runs of the home.

use std::io::{self, IsTerminal};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use rayon::prelude::*;
use zoo_datasets::corpora::ByteCount;
use zoo_recipes::{Statement, nearest};
use zoo_results::exit::Exit;
use zoo_results::report::duration;

use crate::cli::RunsArgs;
use crate::context::Context;
use crate::error::Result;
use crate::output::{self, Cell, Column, Format, Table};
use crate::runs::{FULL, Found, Recorded, Remembered, Summary, Verdicts, all_with, called};

pub fn run(context: &Context, args: &RunsArgs) -> Result<Exit> {
    match args.watch {
        Some(seconds) => watch(context, args, Duration::from_secs(seconds.into())),
        None => {
            let listed = listed(context, args);
            output::write_table("runs", "runs", &listed.table, context.format)?;
            listed.notes.iter().for_each(|note| context.progress.note(note));
            Ok(Exit::Ok)
        }
    }
}

/// Lists the runs until Ctrl-C, or until the reader closes the pipe.
fn watch(context: &Context, args: &RunsArgs, pause: Duration) -> Result<Exit> {
    let redraws = io::stdout().is_terminal() && context.format == Format::Human;
    let mut first = true;
    loop {
        let Listed { table, notes } = listed(context, args);
        let mut text = output::table_text("runs", "runs", &table, context.format)?;
        if context.format == Format::Human {
            notes.iter().for_each(|note| text += &format!("{note}\n"));
        }
        let is_open = match redraws {
            true => output::redraw(&text)?,
            false if first => output::send(&text)?,
            false => output::send(&format!("\n{text}"))?,
        };
        if !is_open {
            return Ok(Exit::Ok);
        }
        first = false;
        sleep(pause);
    }
}

/// The table, and notes for stderr.
struct Listed {
    table: Table,
    notes: Vec<String>,
}

/// A run with its shortest name and its summary.
struct Row {
    found: Found,
    called: String,
    summary: Summary,
}

fn listed(context: &Context, args: &RunsArgs) -> Listed {
    let mut remembered = Remembered::of(&context.home, SystemTime::now());
    let found = all_with(&context.runs_dir(), &remembered);
    let recipes: Vec<Wanted<'_>> = args.recipes.iter().map(|name| Wanted::new(name, &found)).collect();
    let named = found.iter().zip(called(&found));
    let mut wanted: Vec<(&Found, String)> =
        named.filter(|(found, _)| is_wanted(args, &recipes, found)).collect();
    if args.state.is_empty() {
        wanted.truncate(args.newest.unwrap_or(usize::MAX));
    }
    let rows = wanted.into_par_iter().map(|(found, called)| {
        let summary = Summary::of(found);
        Row { found: found.clone(), called, summary }
    });
    let mut rows: Vec<Row> = rows.collect();
    let read: Vec<(&Found, &Summary)> = rows.iter().map(|row| (&row.found, &row.summary)).collect();
    remembered.update(&found, &read);
    rows.retain(|row| args.state.is_empty() || args.state.contains(&row.summary.state));
    rows.truncate(args.newest.unwrap_or(usize::MAX));
    let mut notes = Vec::new();
    let verdicts = remembered.verdicts(&context.ledger_path()).unwrap_or_else(|error| {
        notes.push(format!("the ledger of this home cannot be read: {error}"));
        Verdicts::default()
    });
    remembered.keep(&context.home);
    let for_people = matches!(context.format, Format::Human | Format::Md);
    let now = SystemTime::now();
    let mut table = Table::new(if for_people { columns_for_people() } else { columns_for_programs() });
    for row in &rows {
        let verdict = verdicts.on(&row.found, row.summary.seconds);
        let age = now.duration_since(row.found.written).unwrap_or_default();
        table.push(match for_people {
            true => for_people_cells(row, verdict, age),
            false => for_programs_cells(row, verdict, age),
        });
    }
    if rows.is_empty() {
        notes.push(why_none(context, args, &found));
    }
    Listed { table, notes }
}

/// A recipe that the user named.
struct Wanted<'n> {
    name: &'n str,
    /// Whether it is the name of a recipe of which there are runs, and so not the beginning of
    /// others.
    is_exact: bool,
}

impl<'n> Wanted<'n> {
    fn new(name: &'n str, all: &[Found]) -> Self {
        Self { name, is_exact: all.iter().any(|found| is_exactly(found, name)) }
    }

    fn fits(&self, found: &Found) -> bool {
        if self.is_exact { is_exactly(found, self.name) } else { found.name.starts_with(self.name) }
    }
}

/// Whether the filters besides `--state` select a run.
fn is_wanted(args: &RunsArgs, recipes: &[Wanted<'_>], found: &Found) -> bool {
    let of_recipe = recipes.is_empty() || recipes.iter().any(|recipe| recipe.fits(found));
    let Some(identity) = &found.identity else {
        return of_recipe && args.arms.is_empty() && args.seeds.is_empty() && args.tier.is_none();
    };
    let tier = identity.tier.as_deref().unwrap_or(FULL);
    of_recipe
        && (args.arms.is_empty() || args.arms.contains(&identity.arm))
        && (args.seeds.is_empty() || args.seeds.contains(&identity.seed))
        && args.tier.as_ref().is_none_or(|wanted| wanted == tier)
}

fn is_exactly(found: &Found, recipe: &str) -> bool {
    found.name == recipe || found.identity.as_ref().is_some_and(|identity| identity.recipe == recipe)
}

/// Reason for an empty list.
fn why_none(context: &Context, args: &RunsArgs, all: &[Found]) -> String {
    if all.is_empty() {
        let runs = context.shown(&context.runs_dir());
        return format!(
            "no run is in {runs}; `zoo reproduce RECIPE` makes one, `zoo list` shows the recipes"
        );
    }
    let unknown =
        args.recipes.iter().find(|recipe| all.iter().all(|found| !found.name.starts_with(recipe.as_str())));
    if let Some(recipe) = unknown {
        let known = all.iter().filter_map(|found| Some(found.identity.as_ref()?.recipe.as_str()));
        let hint = match nearest(recipe, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`zoo runs` lists all".to_owned(),
        };
        return format!("no run has a name that begins with `{recipe}`; {hint}");
    }
    format!("none of the {} runs matches all of these filters; `zoo runs` lists all", all.len())
}

fn columns_for_people() -> Vec<Column> {
    output::columns(["run", "state", "#updates", "#score", "verdict", "#size", "#age"]).columns
}

fn for_people_cells(row: &Row, verdict: Option<Recorded>, age: Duration) -> Vec<Cell> {
    let Summary { state, updates, of, score, bytes, .. } = &row.summary;
    let updates = match of {
        Some(of) if updates != of => format!("{updates} of {of}"),
        _ => updates.to_string(),
    };
    let score = score.as_ref();
    let score = score.map_or_else(|| "-".to_owned(), |score| format!("{} {:.2}", score.metric, score.value));
    let verdict = verdict.map(|Recorded { outcome, statement, .. }| match statement {
        Statement::Published => outcome.to_string(),
        Statement::Extended => format!("{outcome} (extended)"),
        Statement::Own => format!("{outcome} (own check)"),
    });
    output::words([
        row.called.clone(),
        state.word(),
        updates,
        score,
        verdict.unwrap_or_else(|| "-".to_owned()),
        ByteCount { known: *bytes, unknown: 0 }.to_string(),
        duration(age.as_secs_f64()),
    ])
}

fn columns_for_programs() -> Vec<Column> {
    output::columns([
        "run",
        "recipe",
        "tier",
        "arm",
        "seed",
        "state",
        "updates",
        "of",
        "metric",
        "score",
        "eval",
        "decode",
        "verdict",
        "statement",
        "bytes",
        "age seconds",
        "folder",
    ])
    .columns
}

fn for_programs_cells(row: &Row, verdict: Option<Recorded>, age: Duration) -> Vec<Cell> {
    let Row { found, called, summary } = row;
    let identity = found.identity.as_ref();
    let word = |text: Option<&str>| Cell::words(text.unwrap_or_default());
    let count = |number: Option<u64>| number.map_or_else(|| Cell::words(""), Cell::count);
    let score = summary.score.as_ref();
    vec![
        Cell::words(called),
        word(Some(identity.map_or(found.name.as_str(), |identity| identity.recipe.as_str()))),
        word(identity.and_then(|identity| identity.tier.as_deref())),
        word(identity.map(|identity| identity.arm.as_str())),
        count(identity.map(|identity| identity.seed)),
        Cell::words(summary.state.word()),
        Cell::count(summary.updates),
        count(summary.of),
        word(score.map(|score| score.metric.as_str())),
        Cell::number(score.map(|score| score.value)),
        word(score.map(|score| score.eval.as_str())),
        word(score.map(|score| score.decode.as_str())),
        verdict.map_or_else(|| Cell::words(""), |verdict| Cell::outcome(verdict.outcome)),
        word(verdict.map(|verdict| verdict.statement.name())),
        Cell::count(summary.bytes),
        Cell::count(age.as_secs()),
        Cell::words(found.folder.display().to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn run(name: &str) -> Found {
        let folder = PathBuf::from(name);
        Found {
            name: name.to_owned(),
            folder,
            identity: None,
            written: SystemTime::UNIX_EPOCH,
            remembered: None,
        }
    }

    #[test]
    fn a_recipes_own_name_is_not_the_beginning_of_others() {
        let all = ["toy", "toy-big", "reversal"].map(run);
        let fits = |name: &str| -> Vec<&str> {
            let wanted = Wanted::new(name, &all);
            all.iter().filter(|found| wanted.fits(found)).map(|found| found.name.as_str()).collect()
        };
        assert_eq!(fits("toy"), ["toy"]);
        assert_eq!(fits("to"), ["toy", "toy-big"]);
        assert_eq!(fits("rev"), ["reversal"]);
        assert_eq!(fits("yesno"), [""; 0]);
    }
}
