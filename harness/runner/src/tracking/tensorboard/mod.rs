//! TensorBoard: event files.

mod event;
pub mod read;
mod record;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};

use super::course::Points;
use super::grown::{Grown, Written};
use super::subject::Subject;
use crate::error::{Failure, Result};

/// Beginning of the names of event files. TensorBoard reads files whose names contain `tfevents`.
const PREFIX: &str = "events.out.tfevents.";

/// End of the names of our event files. A number follows if a file replaced another one.
const SUFFIX: &str = ".zoo";

/// The event file of a run: `DIR/NAME/ARM-seedN-KEY/events.out.tfevents.TIME.zoo`.
///
/// TensorBoard reads an event file on from where it stopped, so a file is never changed before its
/// end. A resumed run that lost its last lines gets a new file in the place of the old one.
#[derive(Debug)]
pub struct Events {
    folder: PathBuf,
    file: Grown,
    /// Whether the first event was made.
    begun: bool,
}

impl Events {
    /// The events of a run in a folder of TensorBoard, before the first one.
    pub fn new(folder: &Path, subject: &Subject) -> Self {
        let folder = folder.join(&subject.place);
        Self { file: Grown::new(PathBuf::new()), folder, begun: false }
    }

    /// The folder of the run.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds points. `started` is the time of the first session.
    ///
    /// # Errors
    /// The folder of the run cannot be read.
    pub fn add(&mut self, subject: &Subject, started: f64, points: &[Points]) -> Result<()> {
        if !self.begun {
            self.begun = true;
            let path = match self.own()?.pop() {
                Some((_, path)) => path,
                None => self.folder.join(format!("{PREFIX}{}{SUFFIX}", started as u64)),
            };
            self.file = Grown::new(path);
            self.push(&event::version(started));
            self.push(&event::texts(started, 0, subject.texts()));
        }
        for Points { step, time, values } in points {
            let values = values.iter().map(|(name, value)| (name.as_str(), *value));
            self.push(&event::scalars(*time, *step, values));
        }
        Ok(())
    }

    fn push(&mut self, event: &[u8]) {
        let mut bytes = Vec::new();
        record::write(&mut bytes, event);
        self.file.push(&bytes);
    }

    /// Appends the new events to the file. If the file of an earlier call has other events, a new
    /// file takes its place.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn write(&mut self) -> Result<Written> {
        let first = self.file.is_first();
        match self.file.write()? {
            Written::Differs if first => {
                self.replace()?;
                Ok(Written::Appended)
            }
            written => Ok(written),
        }
    }

    /// Writes all events into a new file, and removes the former ones.
    fn replace(&mut self) -> Result<()> {
        let former = self.own()?;
        let number = former.last().map_or(1, |(number, _)| number + 1);
        let name = self.file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.find(SUFFIX).map_or(name.as_str(), |at| &name[..at]);
        let end = if number == 1 { String::new() } else { format!(".{number}") };
        self.file.replace(self.folder.join(format!("{stem}{SUFFIX}{end}")))?;
        for (_, path) in former {
            fs::remove_file(&path).map_err(|error| Failure::io("remove", &path, &error))?;
        }
        Ok(())
    }

    /// Our event files of the run by their numbers, from 1.
    fn own(&self) -> Result<Vec<(u64, PathBuf)>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Failure::io("read", &self.folder, &error)),
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            found
                .extend(number_of(&entry.file_name().to_string_lossy()).map(|number| (number, entry.path())));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// The number in the name of one of our event files: 1 without one.
fn number_of(name: &str) -> Option<u64> {
    let (time, end) = name.strip_prefix(PREFIX)?.split_once(SUFFIX)?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(time) {
        return None;
    }
    match end.strip_prefix('.') {
        Some(number) if digits(number) => number.parse().ok(),
        None if end.is_empty() => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_event_files_have_a_number() {
        assert_eq!(number_of("events.out.tfevents.1700000000.zoo"), Some(1));
        assert_eq!(number_of("events.out.tfevents.1700000000.zoo.12"), Some(12));
        for other in [
            "events.out.tfevents.1700000000.host.123.0",
            "events.out.tfevents.1700000000.zoo-machine",
            "events.out.tfevents..zoo",
            "events.out.tfevents.17.zoo.x",
            "model.zoo",
        ] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
