//! `zoo regress`: compares current results with claims and with recorded results.

use std::io::Write;

use serde_json::json;
use zoo_results::exit::Exit;
use zoo_results::ledger::Record;
use zoo_results::regress::{Limits, Row, annotations, compare, junit, summary, table};
use zoo_results::report::{ByStatement, Tally};
use zoo_results::verdict::Outcome;

use crate::cli::RegressArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::write_whole;
use crate::output::{self, Format};
use crate::regressing::{Ours, entries, locate, newest, run as run_recipe, selected};

pub fn run(context: &Context, args: &RegressArgs) -> Result<Exit> {
    let limits = limits(args)?;
    let documents = selected(&args.select)?;
    let tier = Some(args.tier.as_str()).filter(|tier| *tier != "full");
    // Reads the baseline before running anything, so that a missing file is reported first.
    let recorded = entries(context, Some(&args.baseline))?;
    let mut failed: Vec<(&str, Failure)> = Vec::new();
    let (mut ours, mut missing): (Vec<Ours>, Vec<&str>) = (Vec::new(), Vec::new());
    let given = args.results.as_deref().map(|path| entries(context, Some(path))).transpose()?;
    for document in &documents {
        context.check_stop()?;
        let Some(given) = &given else {
            match run_recipe(context, document, tier, args.seeds) {
                Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
                // The other recipes still run, and the report lists the failure.
                Err(failure) => failed.push((document.name(), failure)),
                Ok(run) => ours.push(run),
            }
            continue;
        };
        match newest(given, document, tier) {
            Some(record) => ours.push(Ours { record: record.clone(), run: None }),
            None => missing.push(document.name()),
        }
    }
    let recorded: Vec<&Record> = recorded.iter().map(|entry| &entry.record).collect();
    let mut rows = compare(&ours.iter().map(|ours| &ours.record).collect::<Vec<_>>(), &recorded, &limits);
    for row in &mut rows {
        row.run = ours.iter().find(|ours| ours.record.recipe == row.recipe).and_then(|ours| ours.run.clone());
    }
    rows.extend(failed.iter().map(|(name, failure)| Row::failed(name, tier, &failure.to_string())));
    locate(&mut rows, &documents)?;
    if !missing.is_empty() {
        context.progress.note(&format!("these recipes were not run: {}", missing.join(", ")));
    }
    if let Some(path) = &args.junit {
        write_whole(path, junit(&rows).as_bytes())?;
    }
    if args.github {
        report_to_github(&rows)?;
    }
    print(context, &rows, &missing)?;
    if let Some((name, failure)) = failed.into_iter().next() {
        return Err(failure.about(name));
    }
    Ok(Exit::of_outcomes(rows.iter().map(|row| row.outcome)))
}

fn limits(args: &RegressArgs) -> Result<Limits> {
    let share = |option: &str, value: f64, most: f64| match value > 0.0 && value <= most {
        true => Ok(value),
        false => Err(Failure::usage(format!("{option} {value} is not above 0 and at most {most}"))
            .hint(format!("{option} 0.05"))),
    };
    Ok(Limits {
        alarm_rate: share("--alarm-rate", args.alarm_rate, 0.5)?,
        speed_tolerance: share("--speed-tolerance", args.speed_tolerance, 0.9)?,
        any_device: args.any_device,
    })
}

/// Writes annotations to stderr, which the GitHub runner parses like stdout, and the table to the
/// step summary.
fn report_to_github(rows: &[Row]) -> Result<()> {
    // A closed stderr is not an error.
    let _ = std::io::stderr().lock().write_all(annotations(rows).as_bytes());
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = std::path::PathBuf::from(path);
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path)?;
        file.write_all(summary(rows).as_bytes())
    };
    write().map_err(|error| Failure::io("write", &path, &error))
}

fn print(context: &Context, rows: &[Row], missing: &[&str]) -> Result<()> {
    let table = table(rows);
    if context.format != Format::Human {
        return match context.format {
            Format::Json => {
                let mut compared = table.objects();
                for (cells, row) in compared.as_array_mut().into_iter().flatten().zip(rows) {
                    cells["recipe"] = json!(row.recipe);
                    cells["tier"] = json!(row.tier);
                    cells["outcome"] = json!(row.outcome);
                    cells["file"] = json!(row.place.as_ref().map(|place| &place.file));
                    cells["line"] = json!(row.place.as_ref().map(|place| place.line));
                }
                output::write_document("regress", &json!({ "comparisons": compared, "not_run": missing }))
            }
            format => output::write(&table.render(format)),
        };
    }
    let mut tallies = ByStatement::<Tally>::default();
    for row in rows {
        if let Some(statement) = row.statement {
            tallies.of_mut(statement).add(row.outcome);
        }
    }
    let others = || rows.iter().filter(|row| row.statement.is_none());
    let count = |outcome: Outcome| others().filter(|row| row.outcome == outcome).count();
    let mut text = table.render(Format::Human);
    text.push('\n');
    tallies.lines().iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text.push_str(&format!(
        "comparisons with earlier results: {}: {} alarms, {} undecided, {} not comparable\n",
        others().count(),
        count(Outcome::NotReproduced),
        count(Outcome::Inconclusive),
        count(Outcome::NotComparable)
    ));
    output::write_painted(&text)
}
