//! Reading metrics from a file store.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use super::meta;
use crate::error::{Failure, Result};
use crate::tracking::series::{MOST_POINTS, MOST_RUNS, Point, Series};

/// Largest `meta.yaml`, in bytes. A larger one counts as none.
const MOST_META: u64 = 1 << 20;

/// Largest line of a metric, in bytes.
const MOST_LINE: u64 = 4096;

/// Name of an experiment's or run's description.
const META: &str = "meta.yaml";

/// The experiments of a store: identifiers, and the keys of their descriptions.
///
/// # Errors
/// The folder cannot be read.
pub fn experiments(root: &Path) -> Result<Vec<(String, BTreeMap<String, String>)>> {
    Ok(described(root)?.into_iter().map(|(folder, keys)| (name(&folder), keys)).collect())
}

/// The runs that have a metric, with its values, by name. `place` is a store, or the folder of an
/// experiment or run in it. Deleted runs are left out.
///
/// # Errors
/// The folder cannot be read or is not a store, or a metric cannot be read.
pub fn metric(place: &Path, metric: &str) -> Result<Vec<Series>> {
    let is_key = metric.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !is_key || metric.contains(['\\', '\0']) {
        return Err(Failure::usage(format!("`{metric}` is not a valid name of a metric"))
            .hint("the folder metrics of a run has one file for each metric, e.g. val/accuracy"));
    }
    let own = description(place);
    let runs = match &own {
        Some(keys) if keys.contains_key("run_id") => vec![(place.to_owned(), keys.clone())],
        Some(_) => described(place)?,
        None => {
            let mut runs = Vec::new();
            for (experiment, _) in described(place)? {
                runs.extend(described(&experiment)?);
            }
            runs
        }
    };
    let runs: Vec<_> = runs.into_iter().filter(|(_, keys)| keys.contains_key("run_id")).collect();
    if runs.is_empty() {
        return Err(Failure::new(Exit::Data, format!("{} has no runs of MLflow", place.display()))
            .hint("name a folder of the file store, e.g. mlruns; a database is read by `mlflow` only"));
    }
    let mut found = Vec::new();
    for (folder, keys) in runs {
        if keys.get("lifecycle_stage").is_some_and(|stage| stage == "deleted") {
            continue;
        }
        let file = folder.join("metrics").join(metric);
        if file.is_file() {
            let run = keys.get("run_name").filter(|name| !name.is_empty());
            let id = name(&folder);
            let run = run.map_or_else(|| id.clone(), |run| format!("{run} ({id})"));
            let (points, notes) = points(&file)?;
            found.push(Series { run, folder, points, notes });
        }
    }
    found.sort_by(|one, other| one.run.cmp(&other.run));
    Ok(found)
}

/// The values of a metric's file, in its order: `TIME VALUE [STEP …]` a line. A last line without its
/// end is left out with a note: a part of a number is another number.
fn points(file: &Path) -> Result<(Vec<Point>, Vec<String>)> {
    let reading = |error: &std::io::Error| Failure::io("read", file, error);
    let mut lines = BufReader::new(untrusted::open(file).map_err(|error| reading(&error))?);
    let (mut found, mut line) = (Vec::new(), Vec::new());
    for number in 1_u64.. {
        line.clear();
        let count = lines.by_ref().take(MOST_LINE).read_until(b'\n', &mut line);
        let count = count.map_err(|error| reading(&error))?;
        if count == 0 {
            break;
        }
        let damaged = |why: &str| {
            Failure::new(Exit::Data, format!("{}:{number}: {why}", file.display()))
                .hint("MLflow writes `TIME VALUE STEP` a line; the file was changed, or is not its")
        };
        if found.len() == MOST_POINTS {
            return Err(damaged(&format!("it has more than {MOST_POINTS} values")));
        }
        if line.last() != Some(&b'\n') && (count as u64) < MOST_LINE {
            let why = "ends within a line: its writer was stopped, or still writes";
            return Ok((found, vec![format!("{} {why}", file.display())]));
        }
        let text = std::str::from_utf8(&line).map_err(|_| damaged("it is not UTF-8"))?;
        let mut words = text.split_whitespace();
        let (Some(_), Some(value)) = (words.next(), words.next()) else {
            return Err(damaged("it is not a value of a metric"));
        };
        let value = value.parse().map_err(|_| damaged(&format!("`{value}` is not a number")))?;
        // Files of the first versions have no step.
        let step = words.next().map_or(Ok(0), str::parse).map_err(|_| damaged("its step is not a number"))?;
        found.push(Point { step, value });
    }
    Ok((found, Vec::new()))
}

/// Folders below one that have a description, sorted.
fn described(folder: &Path) -> Result<Vec<(PathBuf, BTreeMap<String, String>)>> {
    let reading = |error: &std::io::Error| Failure::io("read", folder, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| reading(&error))? {
        let path = entry.map_err(|error| reading(&error))?.path();
        found.extend(description(&path).map(|keys| (path, keys)));
        if found.len() > MOST_RUNS {
            return Err(Failure::new(
                Exit::Data,
                format!("{} has more than {MOST_RUNS} folders of MLflow", folder.display()),
            )
            .hint("name the folder of one experiment"));
        }
    }
    found.sort();
    Ok(found)
}

fn description(folder: &Path) -> Option<BTreeMap<String, String>> {
    let mut text = String::new();
    let mut file = untrusted::open(&folder.join(META)).ok()?.take(MOST_META);
    file.read_to_string(&mut text).ok()?;
    Some(meta::keys(&text))
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(root: &Path, id: &str, meta: &str, lines: &str) -> PathBuf {
        let folder = root.join("5").join(id);
        fs::create_dir_all(folder.join("metrics/val")).unwrap();
        fs::write(root.join("5/meta.yaml"), "experiment_id: '5'\nname: toy\n").unwrap();
        fs::write(folder.join(META), format!("run_id: {id}\n{meta}")).unwrap();
        fs::write(folder.join("metrics/val/acc"), lines).unwrap();
        folder
    }

    #[test]
    fn a_metric_is_read_from_a_store_an_experiment_or_a_run() {
        let root = tempfile::tempdir().unwrap();
        run(root.path(), "b1", "run_name: ''\n", "1700 0.5\n");
        let one =
            run(root.path(), "a1", "run_name: second\n", "1700 0.25 1\n1800 NaN 2\n1900 0.75 3 data 1f\n");
        run(root.path(), "c1", "lifecycle_stage: deleted\n", "1 1 1\n");
        let of = |place: &Path| metric(place, "val/acc").unwrap();
        let found = of(root.path());
        let names: Vec<&str> = found.iter().map(|series| series.run.as_str()).collect();
        assert_eq!(names, ["b1", "second (a1)"]);
        let points: Vec<(i64, f64)> = found[1].points.iter().map(|point| (point.step, point.value)).collect();
        assert!(points[1].1.is_nan());
        assert_eq!((points[0], points[2], found[0].points[0].step), ((1, 0.25), (3, 0.75), 0));
        assert_eq!((of(&root.path().join("5")).len(), of(&one).len()), (2, 1));
        assert_eq!(metric(root.path(), "val/none").unwrap().len(), 0);
    }

    #[test]
    fn a_torn_last_line_is_not_a_value() {
        let root = tempfile::tempdir().unwrap();
        let folder = run(root.path(), "a1", "", "1 20.5 1\n2 18.5 2\n3 1");
        let found = metric(root.path(), "val/acc").unwrap().remove(0);
        assert_eq!((found.points.len(), found.points[1].value), (2, 18.5));
        assert!(found.notes[0].contains("acc ends within a line"), "{:?}", found.notes);
        assert_eq!(found.folder, folder);
    }

    #[test]
    fn what_is_not_a_metric_names_the_file_and_the_line() {
        let root = tempfile::tempdir().unwrap();
        assert!(metric(root.path(), "x").unwrap_err().to_string().contains("has no runs of MLflow"));
        for (lines, why) in [
            ("1 0.5 1\n1 x 2\n", "acc:2: `x` is not a number"),
            ("1\n", "acc:1: it is not a value of a metric"),
            ("1 2 z\n", "acc:1: its step is not a number"),
        ] {
            run(root.path(), "a1", "", lines);
            let error = metric(root.path(), "val/acc").unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("hint: "), "{error}");
        }
        for name in ["../x", "/etc/passwd", "", "a//b", "."] {
            assert!(
                metric(root.path(), name).unwrap_err().to_string().contains("not a valid name"),
                "{name}"
            );
        }
    }
}
