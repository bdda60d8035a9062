//! The files of a corpus and their sizes.

use std::fmt;

use serde::Deserialize;

use crate::fetch::{Packing, Source};

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDefinition {
    /// URLs, size and digest.
    pub source: Source,
    /// Archive format of the file. Absent for a file that is read directly, including gz files.
    #[serde(default)]
    pub unpack: Option<Packing>,
    /// Unpacked size in bytes of the members that the splits use, if known.
    #[serde(default)]
    pub unpacked_size: Option<u64>,
}

/// A sum of sizes, some of which may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteCount {
    /// Sum of the known sizes in bytes.
    pub known: u64,
    /// Number of unknown sizes.
    pub unknown: usize,
}

impl ByteCount {
    pub(super) fn add(&mut self, bytes: Option<u64>) {
        match bytes {
            Some(bytes) => self.known = self.known.saturating_add(bytes),
            None => self.unknown += 1,
        }
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.known as f64;
        let mut unit = "B";
        for larger in ["kB", "MB", "GB", "TB"] {
            if value < 999.5 {
                break;
            }
            value /= 1000.0;
            unit = larger;
        }
        let digits = usize::from(unit != "B" && value < 99.5);
        match self.unknown {
            0 => write!(f, "{value:.digits$} {unit}"),
            1 => write!(f, "at least {value:.digits$} {unit} (the size of 1 file is not known)"),
            n => write!(f, "at least {value:.digits$} {unit} (the sizes of {n} files are not known)"),
        }
    }
}
