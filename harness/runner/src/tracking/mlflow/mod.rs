//! MLflow: the file store.
//!
//! ```text
//! EXPERIMENT_ID/meta.yaml
//! EXPERIMENT_ID/RUN_ID/meta.yaml
//! EXPERIMENT_ID/RUN_ID/{metrics,params,tags}/KEY    a `/` in a key is a folder
//! EXPERIMENT_ID/RUN_ID/artifacts/
//! ```
//!
//! Source: `mlflow/store/tracking/file_store.py` of MLflow 3.

mod meta;
pub mod read;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use self::meta::Scalar;
use super::course::Points;
use super::grown::{Grown, Written};
use super::subject::{Status, Subject};
use crate::error::{Failure, Result};
use crate::files::write_whole;

/// Lengths up to which MLflow accepts values of parameters and tags, in characters.
const MOST_PARAMETER: usize = 6000;
const MOST_TAG: usize = 8000;

/// A run in a file store.
#[derive(Debug)]
pub struct Store {
    /// Folder of the store, absolute.
    root: PathBuf,
    experiment: String,
    run: String,
    metrics: BTreeMap<String, Grown>,
    /// Whether parameters and tags were written.
    begun: bool,
}

impl Store {
    /// A run in the store of this folder, before its first metric. The identifiers follow from the
    /// run: writing it again changes nothing.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn new(folder: &Path, subject: &Subject) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| Failure::io("make", folder, &error))?;
        // Artifacts have absolute places.
        let root = folder.canonicalize().map_err(|error| Failure::io("read", folder, &error))?;
        let experiment = experiment_of(&root, &subject.experiment())?;
        let run = subject.digest()[..32].to_owned();
        Ok(Self { root, experiment, run, metrics: BTreeMap::new(), begun: false })
    }

    /// The folder of the run.
    pub fn folder(&self) -> PathBuf {
        self.root.join(&self.experiment).join(&self.run)
    }

    /// Adds points.
    pub fn add(&mut self, points: &[Points]) {
        let folder = self.folder().join("metrics");
        for Points { step, time, values } in points {
            for (name, value) in values {
                let file =
                    self.metrics.entry(key(name)).or_insert_with_key(|key| Grown::new(folder.join(key)));
                // Python reads NaN, inf and -inf.
                file.push(format!("{} {value} {step}\n", milliseconds(*time)).as_bytes());
            }
        }
    }

    /// Writes the new lines of metrics and the status of the run; `times` are those of its start
    /// and of its last line.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write(&mut self, subject: &Subject, status: Status, times: [f64; 2]) -> Result<Written> {
        let mut changed = self.describe(subject, status, times)?;
        for file in self.metrics.values_mut() {
            let first = file.is_first();
            match file.write()? {
                Written::Unchanged => {}
                Written::Differs if first => {
                    file.replace(file.path().to_owned())?;
                    changed = true;
                }
                Written::Differs => return Ok(Written::Differs),
                Written::Appended => changed = true,
            }
        }
        Ok(if changed { Written::Appended } else { Written::Unchanged })
    }

    /// Writes what is not a metric, where it differs. Returns whether anything did.
    fn describe(&mut self, subject: &Subject, status: Status, [start, end]: [f64; 2]) -> Result<bool> {
        let folder = self.folder();
        let mut changed = false;
        if !self.begun {
            for name in ["artifacts", "metrics"] {
                let folder = folder.join(name);
                fs::create_dir_all(&folder).map_err(|error| Failure::io("make", &folder, &error))?;
            }
            let experiment = self.root.join(&self.experiment).join("meta.yaml");
            if !experiment.exists() {
                write_whole(&experiment, self.experiment_meta(subject, start).as_bytes())?;
                changed = true;
            }
            for (name, value) in subject.parameters() {
                changed |=
                    written(&folder.join("params").join(key(&name)), &one_line(&value, MOST_PARAMETER))?;
            }
            let own = [
                ("mlflow.runName", subject.name()),
                ("mlflow.source.name", "zoo".to_owned()),
                ("mlflow.source.type", "LOCAL".to_owned()),
                ("mlflow.source.git.commit", subject.run.card.environment.commit.clone()),
                ("mlflow.user", "zoo".to_owned()),
            ];
            let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
            for (name, value) in own.chain(subject.tags()) {
                changed |= written(&folder.join("tags").join(key(&name)), &one_line(&value, MOST_TAG))?;
            }
            self.begun = true;
        }
        Ok(changed | written(&folder.join("meta.yaml"), &self.run_meta(subject, status, [start, end]))?)
    }

    fn experiment_meta(&self, subject: &Subject, start: f64) -> String {
        let (place, name) = (uri(&self.root.join(&self.experiment)), subject.experiment());
        meta::text(&BTreeMap::from([
            ("artifact_location", Scalar::Text(&place)),
            ("creation_time", Scalar::Number(milliseconds(start))),
            ("experiment_id", Scalar::Text(&self.experiment)),
            ("last_update_time", Scalar::Number(milliseconds(start))),
            ("lifecycle_stage", Scalar::Text("active")),
            ("name", Scalar::Text(&name)),
        ]))
    }

    fn run_meta(&self, subject: &Subject, status: Status, [start, end]: [f64; 2]) -> String {
        let (artifacts, name) = (uri(&self.folder().join("artifacts")), subject.name());
        // MLflow's `RunStatus`.
        let (number, is_running) = match status {
            Status::Running => (1, true),
            Status::Finished => (3, false),
            Status::Failed => (4, false),
            Status::Killed => (5, false),
        };
        let ended = if is_running { Scalar::Nothing } else { Scalar::Number(milliseconds(end)) };
        meta::text(&BTreeMap::from([
            ("artifact_uri", Scalar::Text(&artifacts)),
            ("deleted_time", Scalar::Nothing),
            ("end_time", ended),
            ("entry_point_name", Scalar::Text("")),
            ("experiment_id", Scalar::Text(&self.experiment)),
            ("lifecycle_stage", Scalar::Text("active")),
            ("run_id", Scalar::Text(&self.run)),
            ("run_name", Scalar::Text(&name)),
            ("run_uuid", Scalar::Text(&self.run)),
            ("source_name", Scalar::Text("")),
            // `SourceType.LOCAL`.
            ("source_type", Scalar::Number(4)),
            ("source_version", Scalar::Text("")),
            ("start_time", Scalar::Number(milliseconds(start))),
            ("status", Scalar::Number(number)),
            ("tags", Scalar::Empty),
            ("user_id", Scalar::Text("zoo")),
        ]))
    }
}

/// Identifier of the store's experiment with a name; if there is none, 18 digits that follow from
/// the name, as many as MLflow's own have.
fn experiment_of(root: &Path, name: &str) -> Result<String> {
    for (id, keys) in read::experiments(root)? {
        if keys.get("name").is_some_and(|known| known == name) {
            return Ok(id);
        }
    }
    let digest = Sha256::digest(format!("zoo experiment\n{name}\n"));
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    Ok((100_000_000_000_000_000 + number % 900_000_000_000_000_000).to_string())
}

/// A name with the characters that MLflow allows in keys. It is a path below a folder: the names of
/// a run's files are not trusted.
fn key(name: &str) -> String {
    let allowed = |c: char| if c.is_alphanumeric() || "_-. ".contains(c) { c } else { '_' };
    let part = |part: &str| match part {
        "" | "." | ".." => "_".to_owned(),
        part => part.chars().map(allowed).collect(),
    };
    name.split('/').map(part).collect::<Vec<String>>().join("/")
}

fn one_line(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// `file:` URI of an absolute path.
fn uri(path: &Path) -> String {
    let mut found = "file://".to_owned();
    let text = path.to_string_lossy().replace('\\', "/");
    if !text.starts_with('/') {
        found.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => {
                found.push(byte.into());
            }
            other => found.push_str(&format!("%{other:02X}")),
        }
    }
    found
}

/// Writes a file unless it has this text. Returns whether it was written.
fn written(path: &Path, text: &str) -> Result<bool> {
    if zoo_recipes::untrusted::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(false);
    }
    write_whole(path, text.as_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_keeps_its_identifier() {
        let folder = tempfile::tempdir().unwrap();
        let id = experiment_of(folder.path(), "toy").unwrap();
        assert_eq!((id.len(), experiment_of(folder.path(), "toy").unwrap()), (18, id.clone()));
        assert_ne!(experiment_of(folder.path(), "toy.smoke").unwrap(), id);
        // MLflow made one of this name before.
        fs::create_dir_all(folder.path().join("7")).unwrap();
        fs::write(folder.path().join("7/meta.yaml"), "experiment_id: '7'\nname: toy\n").unwrap();
        assert_eq!(experiment_of(folder.path(), "toy").unwrap(), "7");
    }

    #[test]
    fn keys_and_places_are_those_that_mlflow_accepts() {
        assert_eq!(key("test/beam 5/bleu|x"), "test/beam 5/bleu_x");
        assert_eq!(key("train/terms/../../../x"), "train/terms/_/_/_/x");
        assert_eq!([key("/etc/x"), key(""), key("a\\..\\b")], ["_/etc/x", "_", "a_.._b"]);
        assert_eq!(uri(Path::new("/a b/ü")), "file:///a%20b/%C3%BC");
        assert_eq!(one_line("a\nb", 2), "a ");
        assert_eq!(milliseconds(1.2345), 1235);
    }
}
