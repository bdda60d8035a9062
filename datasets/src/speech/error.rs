//! Unusable utterances, and other errors of speech data.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted::hint_or;

use crate::audio::SpecError;
use crate::audio::decode::{AudioError, Reason};
use crate::corpora::CorpusError;
use crate::set_size::SetSizeError;
use crate::text::TextError;

/// Why an utterance cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Its file cannot be read.
    Unreadable,
    /// Its file is neither WAV nor FLAC, or uses an unsupported encoding.
    Unsupported,
    /// Its file is inconsistent.
    Corrupt,
    /// Its file ends early.
    Truncated,
    /// It has no samples.
    Empty,
    /// All its samples are 0.
    Silent,
    /// Its sample rate is not the expected one.
    Rate,
    /// It has several channels.
    Channels,
    /// Its transcript is empty.
    NoText,
    /// Its text has characters or words that the tokenizer does not have.
    UnknownText,
    /// It is shorter than a frame.
    NoFrame,
    /// Its features are not finite.
    NotFinite,
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Unreadable => Self::Unreadable,
            Reason::Unsupported => Self::Unsupported,
            Reason::Corrupt => Self::Corrupt,
            Reason::Truncated => Self::Truncated,
            Reason::Empty => Self::Empty,
            Reason::Silent => Self::Silent,
            Reason::Rate => Self::Rate,
            Reason::Channels => Self::Channels,
        }
    }
}

/// An utterance that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// Name of the utterance.
    pub utterance: String,
    /// Kind of the fault.
    pub fault: Fault,
    /// Description of the fault, with a hint.
    pub problem: String,
}

impl Skipped {
    pub(super) fn new(utterance: &str, fault: Fault, problem: impl Into<String>) -> Self {
        Self { utterance: utterance.into(), fault, problem: problem.into() }
    }

    pub(super) fn of_audio(utterance: &str, error: &AudioError) -> Self {
        Self::new(utterance, error.reason().into(), error.to_string())
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "utterance {}: {}", self.utterance, self.problem)
    }
}

/// An error of speech data.
#[derive(Debug, thiserror::Error)]
pub enum SpeechError {
    /// A file or folder could not be read or written.
    #[error("{}: {source}\nhint: {}", path.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A line of a list of recordings is not valid.
    #[error("{}:{line}: {problem}\nhint: {hint}", file.display())]
    Manifest {
        /// Path of the list.
        file: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What is wrong with the line.
        problem: String,
        /// Hint for the user.
        hint: &'static str,
    },
    /// A file of a corpus does not match the corpus's definition.
    #[error("{}: {problem}\nhint: verify the corpus; if its files are whole, its definition is wrong", file.display())]
    Corpus {
        /// Path of the file or folder.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A corpus could not be fetched.
    #[error(transparent)]
    Definition(#[from] CorpusError),
    /// An utterance cannot be used in a split from which none may be left out.
    #[error("split `{split}`, {skipped}{}", others(*.more, .why))]
    Unusable {
        /// Name of the split.
        split: String,
        /// The first unusable utterance.
        skipped: Skipped,
        /// Number of further unusable utterances found so far.
        more: u64,
        /// Why no utterance may be left out.
        why: &'static str,
    },
    /// The text treatment cannot be done.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A front end or an augmentation that cannot be made.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A part of the recipe is not valid for speech.
    #[error("data.{key}: {problem}\nhint: {hint}")]
    Recipe {
        /// The key in the recipe.
        key: String,
        /// What is wrong with it.
        problem: String,
        /// Hint for the user.
        hint: &'static str,
    },
    /// A split that the recipe uses does not exist.
    #[error("there is no split `{split}`, which {user} uses\nhint: the splits are {known}")]
    MissingSplit {
        /// Name of the split.
        split: String,
        /// Setting that needs the split.
        user: String,
        /// The known splits.
        known: String,
    },
    /// A split's number of recordings differs from the one in its corpus's definition.
    #[error(
        "split `{split}` has {found} recordings where {expected} were due\nhint: another version of the set; scores on it are not comparable"
    )]
    Recordings {
        /// Name of the split.
        split: String,
        /// Actual number of recordings.
        found: u64,
        /// Expected number of recordings.
        expected: u64,
    },
    /// An evaluation set does not have the size that the recipe states.
    #[error(transparent)]
    EvalSet(#[from] SetSizeError),
    /// Too few training utterances are left.
    #[error(
        "split `{split}`: {left} utterances are left of {read}, {problem}\nhint: check the recordings, data.filter and data.batching"
    )]
    NothingToTrainOn {
        /// Name of the split.
        split: String,
        /// Number of utterances left.
        left: usize,
        /// Number of utterances read.
        read: u64,
        /// Why these are not enough.
        problem: &'static str,
    },
    /// A recording has changed since it was listed.
    #[error(
        "{}: it has {found} samples, {listed} when it was listed\nhint: remove {}; the recordings are listed again", file.display(), listing.display()
    )]
    Changed {
        /// Path of the recording.
        file: PathBuf,
        /// Current number of samples.
        found: u64,
        /// Number of samples when it was listed.
        listed: u64,
        /// Path of the folder with the lists.
        listing: PathBuf,
    },
    /// No utterance of a batch can be used.
    #[error("epoch {epoch}, batch {batch}: none of its utterances can be used; the first: {first}")]
    EmptyBatch {
        /// Epoch, counted from 0.
        epoch: u64,
        /// Batch, counted from 0.
        batch: usize,
        /// The first unusable utterance.
        first: Skipped,
    },
    /// The epoch does not have this batch.
    #[error("epoch {epoch} has {batches} batches, none with the number {batch}\nhint: batches count from 0")]
    NoSuchBatch {
        /// Epoch, counted from 0.
        epoch: u64,
        /// Batch, counted from 0.
        batch: usize,
        /// Number of batches in the epoch.
        batches: usize,
    },
    /// A stored list differs from the one that was written.
    #[error("{}: {problem}\nhint: remove it; the recordings are listed again", file.display())]
    Damaged {
        /// Path of the list.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The thread that makes batches could not be started, or ended early.
    #[error(transparent)]
    Thread(#[from] crate::batches::ThreadEnded),
}

fn others(more: u64, why: &str) -> String {
    match more {
        0 => format!("\n({why})"),
        more => format!("\n({why}; {more} more cannot be used)"),
    }
}

impl SpeechError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn recipe(key: impl Into<String>, problem: impl Into<String>, hint: &'static str) -> Self {
        Self::Recipe { key: key.into(), problem: problem.into(), hint }
    }
}
