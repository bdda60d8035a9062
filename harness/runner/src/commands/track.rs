//! `zoo track`: writes runs to experiment trackers.

use std::path::PathBuf;

use serde_json::json;
use zoo_results::exit::Exit;

use crate::cli::TrackArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::{self, Cell, Format};
use crate::run::folder::Run;
use crate::runs::{all, folder_of};
use crate::tracking::track;

pub fn run(context: &Context, args: &TrackArgs) -> Result<Exit> {
    let folders = args.track.folders();
    if folders.is_empty() {
        return Err(Failure::usage("no tracker is named")
            .hint("--tensorboard DIR, --mlflow DIR, or both: where to write the runs"));
    }
    let runs: Vec<PathBuf> = match args.all {
        true => all(&context.runs_dir()).into_iter().map(|found| found.folder).rev().collect(),
        false => {
            let named = args.runs.iter().map(|run| Run::folder_of(&folder_of(context, run)?));
            named.collect::<Result<_>>()?
        }
    };
    if runs.is_empty() {
        context.progress.note("this home has no runs; `zoo reproduce RECIPE` makes one");
    }
    let mut notes = Vec::new();
    let mut note = |text: String| {
        context.progress.note(&text);
        notes.push(text);
    };
    let mut table = output::columns(["run", "tracker", "#values", "written", "folder"]);
    for run in runs {
        context.check_stop()?;
        let found = match track(&folders, &run) {
            Ok(found) => found,
            // One damaged run of a home does not keep the others back.
            Err(failure) if args.all && matches!(failure.exit, Exit::Damaged | Exit::Data) => {
                note(format!("{} is left out: {failure}", context.shown(&run)));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        found.missing.iter().cloned().for_each(&mut note);
        for (tracker, folder, changed) in &found.places {
            table.push(vec![
                Cell::words(found.run.clone()),
                Cell::words(*tracker),
                Cell::count(found.values),
                Cell::words(if *changed { "new" } else { "unchanged" }),
                Cell::words(context.shown(folder)),
            ]);
        }
    }
    match context.format {
        Format::Json => output::write_document("track", &json!({ "runs": table.objects(), "notes": notes }))?,
        format => output::write(&table.render(format))?,
    }
    Ok(Exit::Ok)
}
