//! Runs in the formats of experiment trackers: TensorBoard's event files and MLflow's file store.
//!
//! All content is derived from the files of a run: `run.json`, `recipe.toml`, `log.jsonl` and the
//! evaluations. During training the log is read as it grows. So the files are the same whether they
//! are written during training or afterwards, and writing them again changes nothing.

mod course;
mod grown;
mod live;
pub mod mlflow;
pub mod series;
mod subject;
pub mod tensorboard;

use std::path::{Path, PathBuf};

pub use self::live::Live;

use self::course::{Course, Points};
use self::grown::Written;
use self::mlflow::Store;
use self::subject::{Status, Subject};
use self::tensorboard::Events;
use crate::error::{Failure, Result};
use crate::run::log_reader::{Growth, LogReader};

/// Folders that runs are written to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    /// Folder that TensorBoard shows.
    pub tensorboard: Option<PathBuf>,
    /// Folder of MLflow's file store.
    pub mlflow: Option<PathBuf>,
}

impl Folders {
    /// Whether runs are written nowhere.
    pub fn is_empty(&self) -> bool {
        self.tensorboard.is_none() && self.mlflow.is_none()
    }
}

/// What was written of a run.
#[derive(Debug, Clone)]
pub struct Tracked {
    /// `NAME:ARM:SEED`.
    pub run: String,
    /// Trackers with the run's folders, and whether anything in them changed.
    pub places: Vec<(&'static str, PathBuf, bool)>,
    /// Number of values.
    pub values: u64,
    /// What could not be read.
    pub missing: Vec<String>,
}

/// Writes a run to trackers, as far as its log goes, with the scores of its evaluations.
///
/// # Errors
/// The run cannot be opened, or a file cannot be read or written.
pub fn track(folders: &Folders, run: &Path) -> Result<Tracked> {
    let mut tracker = Tracker::new(folders, run)?;
    tracker.read()?;
    let mut missing = Vec::new();
    let scores = tracker.subject.scores(tracker.course.now, &mut missing)?;
    tracker.add(&scores)?;
    let status = tracker.subject.status();
    let mut places = Vec::new();
    for sink in &mut tracker.sinks {
        let written = sink.write(&tracker.subject, status, &tracker.course)?;
        let folder = sink.folder();
        if written == Written::Differs {
            return Err(Failure::usage(format!("{} changed while it was written", folder.display()))
                .hint("run the command again when no other process writes there"));
        }
        places.push((sink.name(), folder, written != Written::Unchanged));
    }
    Ok(Tracked { run: tracker.subject.name(), places, values: tracker.values, missing })
}

/// Writer of one run.
#[derive(Debug)]
struct Tracker {
    folders: Folders,
    subject: Subject,
    log: LogReader,
    course: Course,
    sinks: Vec<Sink>,
    /// Number of values so far.
    values: u64,
}

/// A tracker's files of one run.
#[derive(Debug)]
enum Sink {
    TensorBoard(Events),
    MlFlow(Store),
}

impl Tracker {
    fn new(folders: &Folders, run: &Path) -> Result<Self> {
        let subject = Subject::open(run)?;
        let (log, course) =
            (LogReader::new(&subject.run.folder.join("log.jsonl")), Course::new(subject.created));
        let sinks = Sink::all(folders, &subject)?;
        Ok(Self { folders: folders.clone(), subject, log, course, sinks, values: 0 })
    }

    /// Reads the new lines of the log.
    fn read(&mut self) -> Result<()> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let read = self.log.read(|line| lines.push(line.to_owned()));
        let growth =
            read.map_err(|error| Failure::io("read", &self.subject.run.folder.join("log.jsonl"), &error))?;
        if growth == Growth::Rewritten {
            self.sinks = Sink::all(&self.folders, &self.subject)?;
            (self.course, self.values) = (Course::new(self.subject.created), 0);
        }
        let points: Vec<Points> = lines.iter().filter_map(|line| self.course.line(line)).collect();
        self.add(&points)
    }

    fn add(&mut self, points: &[Points]) -> Result<()> {
        self.values += points.iter().map(|points| points.values.len() as u64).sum::<u64>();
        self.sinks.iter_mut().try_for_each(|sink| sink.add(&self.subject, &self.course, points))
    }

    /// Appends what the log has gained. If another process changed a file, all of it is compared
    /// again.
    fn follow(&mut self) -> Result<()> {
        self.read()?;
        for attempt in 0..2 {
            let mut differs = false;
            for sink in &mut self.sinks {
                differs |= sink.write(&self.subject, Status::Running, &self.course)? == Written::Differs;
            }
            if !differs || attempt == 1 {
                break;
            }
            *self = Self::new(&self.folders, &self.subject.run.folder)?;
            self.read()?;
        }
        Ok(())
    }
}

impl Sink {
    fn all(folders: &Folders, subject: &Subject) -> Result<Vec<Self>> {
        let mut sinks = Vec::new();
        if let Some(folder) = &folders.tensorboard {
            sinks.push(Self::TensorBoard(Events::new(folder, subject)));
        }
        if let Some(folder) = &folders.mlflow {
            sinks.push(Self::MlFlow(Store::new(folder, subject)?));
        }
        Ok(sinks)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::TensorBoard(_) => "tensorboard",
            Self::MlFlow(_) => "mlflow",
        }
    }

    fn folder(&self) -> PathBuf {
        match self {
            Self::TensorBoard(events) => events.folder().to_owned(),
            Self::MlFlow(store) => store.folder(),
        }
    }

    fn add(&mut self, subject: &Subject, course: &Course, points: &[Points]) -> Result<()> {
        match self {
            Self::TensorBoard(events) => events.add(subject, course.started, points),
            Self::MlFlow(store) => {
                store.add(points);
                Ok(())
            }
        }
    }

    fn write(&mut self, subject: &Subject, status: Status, course: &Course) -> Result<Written> {
        match self {
            Self::TensorBoard(events) => events.write(),
            Self::MlFlow(store) => store.write(subject, status, [course.started, course.now]),
        }
    }
}
