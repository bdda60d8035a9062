//! Why a file gave no audio.

use std::path::PathBuf;

use zoo_recipes::untrusted::hint_or;

/// A file that gives no audio. The caller decides whether that is an end or a count; [`AudioError::reason`] is for counting.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// It could not be read.
    #[error("{}: {source}\nhint: {}", file.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is neither WAV nor FLAC, or WAV of a kind that is not PCM.
    #[error("{}: {what}\nhint: convert it to FLAC or PCM WAV", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What it is.
        what: String,
    },
    /// Its bytes contradict each other.
    #[error("{}: corrupt: {what}\nhint: fetch the file again, or leave it out", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It ends before its samples do.
    #[error(
        "{}: truncated: {found} of {expected} samples\nhint: fetch the file again, or leave it out", file.display()
    )]
    Truncated {
        /// The file.
        file: PathBuf,
        /// Samples of each channel that are there.
        found: u64,
        /// Samples of each channel that the header states.
        expected: u64,
    },
    /// It has no sample.
    #[error("{}: it has no sample\nhint: leave it out", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// All samples are 0.
    #[error("{}: all {samples} samples are 0\nhint: leave it out", file.display())]
    Silent {
        /// The file.
        file: PathBuf,
        /// How many samples it has.
        samples: usize,
    },
    /// It has another sample rate than is due.
    #[error("{}: {found} Hz, expected {expected} Hz\nhint: resample the corpus once, or set the rate in the recipe", file.display())]
    Rate {
        /// The file.
        file: PathBuf,
        /// Its rate, in hertz.
        found: u32,
        /// The rate that is due, in hertz.
        expected: u32,
    },
    /// It has several channels.
    #[error("{}: {found} channels, expected one\nhint: mix it down or take one channel, as the corpus defines", file.display())]
    Channels {
        /// The file.
        file: PathBuf,
        /// How many it has.
        found: usize,
    },
}

/// [`AudioError`] without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// [`AudioError::Io`].
    Unreadable,
    /// [`AudioError::Unsupported`].
    Unsupported,
    /// [`AudioError::Corrupt`].
    Corrupt,
    /// [`AudioError::Truncated`].
    Truncated,
    /// [`AudioError::Empty`].
    Empty,
    /// [`AudioError::Silent`].
    Silent,
    /// [`AudioError::Rate`].
    Rate,
    /// [`AudioError::Channels`].
    Channels,
}

impl AudioError {
    /// What kind of error it is.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Io { .. } => Reason::Unreadable,
            Self::Unsupported { .. } => Reason::Unsupported,
            Self::Corrupt { .. } => Reason::Corrupt,
            Self::Truncated { .. } => Reason::Truncated,
            Self::Empty { .. } => Reason::Empty,
            Self::Silent { .. } => Reason::Silent,
            Self::Rate { .. } => Reason::Rate,
            Self::Channels { .. } => Reason::Channels,
        }
    }
}
