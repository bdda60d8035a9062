//! Recordings that cannot be used, and what else can go wrong with speech.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_recipes::untrusted::hint_or;

use crate::audio::SpecError;
use crate::audio::decode::{AudioError, Reason};
use crate::corpora::CorpusError;
use crate::text::TextError;

/// Why an utterance cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Its file cannot be read.
    Unreadable,
    /// Its file is neither WAV nor FLAC, or of a kind that is not read.
    Unsupported,
    /// Its file contradicts itself.
    Corrupt,
    /// Its file ends early.
    Truncated,
    /// It has no sample.
    Empty,
    /// All its samples are 0.
    Silent,
    /// Another sample rate.
    Rate,
    /// Several channels.
    Channels,
    /// Nothing is said in it.
    NoText,
    /// Its text has characters or words that the tokenizer does not know.
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

/// An utterance that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// Its name.
    pub utterance: String,
    /// Why.
    pub fault: Fault,
    /// The same in words, with what to do about it.
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
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of a list of recordings that says nothing usable.
    #[error("{}:{line}: {problem}\nhint: {hint}", file.display())]
    Manifest {
        /// The file.
        file: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What is wrong.
        problem: String,
        /// The mend.
        hint: &'static str,
    },
    /// A file of a corpus that is not what its definition says.
    #[error("{}: {problem}\nhint: verify the corpus; if its files are whole, its definition is wrong", file.display())]
    Corpus {
        /// The file or folder.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A corpus could not be had.
    #[error(transparent)]
    Definition(#[from] CorpusError),
    /// An utterance that cannot be used where none may be left out.
    #[error("split `{split}`, {skipped}{}", others(*.more, .why))]
    Unusable {
        /// The split.
        split: String,
        /// The first of them.
        skipped: Skipped,
        /// How many more there are, as far as is known.
        more: u64,
        /// Why none may be left out.
        why: &'static str,
    },
    /// Text treatment that cannot be done.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A front end or an augmentation that cannot be made.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A part of the recipe that does not belong to speech, or cannot be.
    #[error("data.{key}: {problem}\nhint: {hint}")]
    Recipe {
        /// The key.
        key: String,
        /// What is wrong.
        problem: String,
        /// The mend.
        hint: &'static str,
    },
    /// A split that the recipe uses is not there.
    #[error("there is no split `{split}`, which {user} uses\nhint: the splits are {known}")]
    MissingSplit {
        /// The split.
        split: String,
        /// What needs it.
        user: String,
        /// The splits there are.
        known: String,
    },
    /// A split has another number of recordings than its corpus states.
    #[error(
        "split `{split}` has {found} recordings where {expected} were due\nhint: another version of the set; scores on it are not comparable"
    )]
    Recordings {
        /// The split.
        split: String,
        /// How many there are.
        found: u64,
        /// How many there must be.
        expected: u64,
    },
    /// An evaluation set is not the one that the recipe means.
    #[error(
        "data.eval.{set}: its split `{split}` has {found} {what}, the recipe says {expected}\nhint: another version of the set is not comparable; check the corpus and its version"
    )]
    EvalSet {
        /// The set.
        set: String,
        /// Its split.
        split: String,
        /// Utterances or words.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: u32,
    },
    /// Nothing is left to train on.
    #[error(
        "split `{split}`: {left} utterances are left of {read}, {problem}\nhint: check the recordings, data.filter and data.batching"
    )]
    NothingToTrainOn {
        /// The split.
        split: String,
        /// Utterances that are left.
        left: usize,
        /// Utterances that were read.
        read: u64,
        /// Why that is not enough.
        problem: &'static str,
    },
    /// A recording is not the one that was listed.
    #[error(
        "{}: it has {found} samples, {listed} when it was listed\nhint: remove {}; the recordings are listed again", file.display(), listing.display()
    )]
    Changed {
        /// The recording.
        file: PathBuf,
        /// Samples it has now.
        found: u64,
        /// Samples it had.
        listed: u64,
        /// The folder of the lists.
        listing: PathBuf,
    },
    /// No utterance of a batch can be used.
    #[error("epoch {epoch}, batch {batch}: none of its utterances can be used; the first: {first}")]
    EmptyBatch {
        /// The epoch, from 0.
        epoch: u64,
        /// The batch, from 0.
        batch: usize,
        /// The first of them.
        first: Skipped,
    },
    /// There is no such batch.
    #[error("epoch {epoch} has {batches} batches, none with the number {batch}\nhint: batches count from 0")]
    NoSuchBatch {
        /// The epoch, from 0.
        epoch: u64,
        /// The batch, from 0.
        batch: usize,
        /// Batches of the epoch.
        batches: usize,
    },
    /// A kept list is not what was written.
    #[error("{}: {problem}\nhint: remove it; the recordings are listed again", file.display())]
    Damaged {
        /// The list.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The thread that makes batches ended.
    #[error("the thread that makes batches ended: {0}\nhint: please report it with the recipe")]
    Thread(String),
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

    pub(super) fn recipe(key: impl Into<String>, problem: impl Into<String>, hint: &'static str) -> Self {
        Self::Recipe { key: key.into(), problem: problem.into(), hint }
    }
}
