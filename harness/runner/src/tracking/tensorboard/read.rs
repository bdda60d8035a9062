//! Reading scalars from folders of event files.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use zoo_recipes::untrusted;
use zoo_results::exit::Exit;

use super::event;
use super::record::{Found, RecordError, Records};
use crate::error::{Failure, Result};
use crate::tracking::series::{MOST_POINTS, MOST_RUNS, Point, Series};

/// Depth of the folders that are searched.
const DEEPEST: usize = 16;

/// Maximum number of tags in a message.
const MOST_LISTED: usize = 12;

/// The runs that have a tag, with its values, by name. As in TensorBoard, a run is a folder with
/// event files, and its name is the path below `place`.
///
/// # Errors
/// A folder or file cannot be read, a checksum differs, or no event file is there.
pub fn tag(place: &Path, tag: &str) -> Result<Vec<Series>> {
    let mut files = BTreeMap::new();
    search(place, 0, &mut files)?;
    if files.is_empty() {
        return Err(Failure::new(Exit::Data, format!("{} has no event files", place.display()))
            .hint("name a folder that TensorBoard shows; the names of event files contain `tfevents`"));
    }
    let (mut found, mut others) = (Vec::<Series>::new(), Vec::new());
    // Notes on runs without a value, which may have lost it.
    let mut lost = Vec::new();
    for (folder, files) in &files {
        let below = folder.strip_prefix(place).unwrap_or(folder);
        let run = if below.as_os_str().is_empty() { ".".into() } else { below.display().to_string() };
        let mut series = Series { run, folder: folder.clone(), points: Vec::new(), notes: Vec::new() };
        for file in files {
            read(file, tag, &mut series, &mut others)?;
        }
        match series.points.is_empty() {
            true => lost.append(&mut series.notes),
            false => found.push(series),
        }
    }
    if found.is_empty() {
        let more = if others.len() == MOST_LISTED { ", …" } else { "" };
        return Err(Failure::new(Exit::Data, format!("no run in {} has the tag `{tag}`", place.display()))
            .hint(format!("the scalars there are {}{more}", others.join(", "))));
    }
    if let Some(first) = found.first_mut() {
        first.notes.append(&mut lost);
    }
    Ok(found)
}

/// Event files by their folders, in the order of their names. Links to folders are not followed.
fn search(folder: &Path, depth: usize, found: &mut BTreeMap<PathBuf, Vec<PathBuf>>) -> Result<()> {
    let reading = |error: &std::io::Error| Failure::io("read", folder, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| reading(&error))? {
        let entry = entry.map_err(|error| reading(&error))?;
        let kind = entry.file_type().map_err(|error| reading(&error))?;
        if kind.is_dir() && depth < DEEPEST {
            search(&entry.path(), depth + 1, found)?;
        } else if !kind.is_dir() && entry.file_name().to_string_lossy().contains("tfevents") {
            files.push(entry.path());
        }
    }
    if !files.is_empty() {
        files.sort_unstable();
        found.insert(folder.to_owned(), files);
    }
    if found.len() > MOST_RUNS {
        return Err(Failure::new(Exit::Data, format!("{} has more than {MOST_RUNS} runs", folder.display()))
            .hint("name the folder of fewer runs"));
    }
    Ok(())
}

/// Adds the values of a tag. Other tags of scalars are listed for a message.
fn read(file: &Path, tag: &str, series: &mut Series, others: &mut Vec<String>) -> Result<()> {
    let opened = untrusted::open(file).map_err(|error| Failure::io("read", file, &error))?;
    let mut records = Records::of(BufReader::new(opened));
    loop {
        let at = records.at();
        let damaged = |why: &str| {
            Failure::new(Exit::Damaged, format!("{}: {why}", file.display()))
                .hint("copy the file again, or move it out of the folder")
        };
        let data = match records.next() {
            Ok(Found::Data(data)) => data,
            Ok(Found::TooLarge) => continue,
            Ok(Found::End) => return Ok(()),
            Ok(Found::Truncated) => {
                series.notes.push(format!(
                    "{} ends within a record at byte {at}: its writer was stopped, or still writes",
                    file.display()
                ));
                return Ok(());
            }
            Err(RecordError::Io(error)) => return Err(Failure::io("read", file, &error)),
            Err(error) => return Err(damaged(&error.to_string())),
        };
        let (step, scalars) =
            event::read(&data).map_err(|error| damaged(&format!("the record at byte {at}: {error}")))?;
        for scalar in scalars {
            if scalar.tag != tag {
                if others.len() < MOST_LISTED && !others.iter().any(|known| known == scalar.tag) {
                    others.push(scalar.tag.to_owned());
                }
                continue;
            }
            // A program that was resumed writes steps again, which replace the former ones.
            let step = step.cast_signed();
            while series.points.last().is_some_and(|last| last.step >= step) {
                series.points.pop();
            }
            if series.points.len() == MOST_POINTS {
                return Err(damaged(&format!("the run has more than {MOST_POINTS} values of {tag}")));
            }
            series.points.push(Point { step, value: scalar.value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::write;
    use super::*;

    fn events(points: &[(u64, f64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &event::version(1.0));
        for &(step, value) in points {
            write(&mut bytes, &event::scalars(2.0, step, [("acc", value), ("loss", 1.0)]));
        }
        bytes
    }

    fn file(root: &Path, run: &str, name: &str, bytes: &[u8]) -> PathBuf {
        let folder = root.join(run);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn points(series: &Series) -> Vec<(i64, f64)> {
        series.points.iter().map(|point| (point.step, point.value)).collect()
    }

    #[test]
    fn each_folder_with_events_is_a_run_and_its_files_are_one_series() {
        let root = tempfile::tempdir().unwrap();
        file(root.path(), "b/eval", "events.out.tfevents.1.host", &events(&[(1, 0.5), (2, 0.75)]));
        // Resumed after step 2, from a state of step 1.
        file(root.path(), "a", "events.out.tfevents.1.host", &events(&[(1, 0.25), (2, 0.5), (3, 0.5)]));
        file(root.path(), "a", "events.out.tfevents.2.host", &events(&[(2, 1.0), (3, 2.0)]));
        file(root.path(), "a", "notes.txt", b"not events");
        let found = tag(root.path(), "acc").unwrap();
        assert_eq!(found.iter().map(|one| one.run.as_str()).collect::<Vec<_>>(), ["a", "b/eval"]);
        assert_eq!(points(&found[0]), [(1, 0.25), (2, 1.0), (3, 2.0)]);
        assert_eq!(points(&found[1]), [(1, 0.5), (2, 0.75)]);
        assert_eq!(tag(&root.path().join("b/eval"), "acc").unwrap()[0].run, ".");
        let error = tag(root.path(), "bleu").unwrap_err().to_string();
        assert!(error.contains("has the tag `bleu`") && error.contains("acc, loss"), "{error}");
    }

    #[test]
    fn a_torn_end_is_noted_and_damage_names_file_and_byte() {
        let root = tempfile::tempdir().unwrap();
        let bytes = events(&[(1, 0.5), (2, 0.75)]);
        let path = file(root.path(), "a", "x.tfevents.1", &bytes[..bytes.len() - 3]);
        let found = tag(root.path(), "acc").unwrap().remove(0);
        assert_eq!((points(&found), found.notes.len()), (vec![(1, 0.5)], 1));
        assert!(found.notes[0].contains("ends within a record at byte "), "{:?}", found.notes);
        let mut damaged = bytes.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 1;
        fs::write(&path, damaged).unwrap();
        let error = tag(root.path(), "acc").unwrap_err();
        assert_eq!(error.exit, Exit::Damaged);
        let text = error.to_string();
        assert!(text.contains("x.tfevents.1: the data of the record at byte "), "{text}");
        // A record with the right checksum that is not an event.
        let mut other = Vec::new();
        write(&mut other, b"no event");
        fs::write(&path, other).unwrap();
        let text = tag(root.path(), "acc").unwrap_err().to_string();
        assert!(text.contains("the record at byte 0: it is not a Protocol Buffers message"), "{text}");
    }

    #[test]
    fn a_folder_without_events_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(tag(root.path(), "acc").unwrap_err().to_string().contains("has no event files"));
        assert!(tag(&root.path().join("none"), "acc").is_err());
    }
}
