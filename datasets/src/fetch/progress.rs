//! What a fetch tells whoever is watching.

use std::time::Duration;

/// One thing that happened. `name` is the file's place below the data home, e.g. `example.org/corpus.tgz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes begin to arrive; `resumed_at` of them were there already.
    Started { name: &'a str, from: &'a str, total: Option<u64>, resumed_at: u64 },
    /// `done` of `total` bytes are on disk.
    Advanced { name: &'a str, done: u64, total: Option<u64> },
    /// The transfer broke and is tried again after `wait`.
    Retrying { name: &'a str, reason: &'a str, wait: Duration },
    /// A place that was tried gave nothing usable; the next one follows.
    Refused { name: &'a str, from: &'a str, reason: &'a str },
    /// Digests are being computed.
    Verifying { name: &'a str, bytes: u64 },
    /// The file is whole, verified and under its final name.
    Finished { name: &'a str, bytes: u64 },
    /// An unknown digest was seen for the first time and is checked from now on.
    Pinned { name: &'a str, sha256: &'a str },
    /// Another process holds the lock on this file.
    Waiting { name: &'a str },
    /// An archive is being unpacked; `done` bytes were written.
    Unpacking { name: &'a str, done: u64 },
}

/// Receives [`Event`]s. Called from the thread that fetches.
pub trait Progress: Sync {
    /// Takes note of one event.
    fn event(&self, event: Event<'_>);

    /// Asked at least ten times a second; `true` stops the fetch with [`super::FetchError::Cancelled`] and keeps the part file.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _: Event<'_>) {}
}

/// Agrees to what should not be done unasked.
pub trait Consent: Sync {
    /// Whether this risk may be taken; `risk` names it, e.g. `a.tgz has no published digest and comes over plain http`.
    fn allows(&self, risk: &str) -> bool;
}

/// Agrees to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Refuse;

impl Consent for Refuse {
    fn allows(&self, _: &str) -> bool {
        false
    }
}
