//! Errors of decoding audio files.

use std::path::PathBuf;

use zoo_recipes::untrusted::hint_or;

/// Why a file gives no audio. The caller decides whether to stop or to count the error by its
/// [`AudioError::reason`].
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// The file could not be read.
    #[error("{}: {source}\nhint: {}", file.display(), hint_or(source, "check the path and its permissions"))]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file is neither WAV nor FLAC, or is a WAV file without PCM data.
    #[error("{}: {what}\nhint: convert it to FLAC or PCM WAV", file.display())]
    Unsupported {
        /// Path of the file.
        file: PathBuf,
        /// Format of the file.
        what: String,
    },
    /// The bytes of the file are inconsistent.
    #[error("{}: corrupt: {what}\nhint: fetch the file again, or leave it out", file.display())]
    Corrupt {
        /// Path of the file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file ends before its last sample.
    #[error(
        "{}: truncated: {found} of {expected} samples\nhint: fetch the file again, or leave it out", file.display()
    )]
    Truncated {
        /// Path of the file.
        file: PathBuf,
        /// Number of samples per channel in the file.
        found: u64,
        /// Number of samples per channel in the header.
        expected: u64,
    },
    /// The file has no samples.
    #[error("{}: it has no sample\nhint: leave it out", file.display())]
    Empty {
        /// Path of the file.
        file: PathBuf,
    },
    /// All samples are 0.
    #[error("{}: all {samples} samples are 0\nhint: leave it out", file.display())]
    Silent {
        /// Path of the file.
        file: PathBuf,
        /// Number of samples in the file.
        samples: usize,
    },
    /// The sample rate is not the expected one.
    #[error("{}: {found} Hz, expected {expected} Hz\nhint: resample the corpus once, or set the rate in the recipe", file.display())]
    Rate {
        /// Path of the file.
        file: PathBuf,
        /// Actual rate in hertz.
        found: u32,
        /// Expected rate in hertz.
        expected: u32,
    },
    /// The file has several channels.
    #[error("{}: {found} channels, expected one\nhint: mix it down or take one channel, as the corpus defines", file.display())]
    Channels {
        /// Path of the file.
        file: PathBuf,
        /// Number of channels.
        found: usize,
    },
}

/// The kind of an [`AudioError`], without its details.
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
    /// The kind of the error.
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
