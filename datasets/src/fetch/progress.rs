//! Progress events of a fetch, and consent to its risks.

use std::time::Duration;

/// One event. `name` is the file's path below the downloads of the data home, e.g.
/// `example.org/corpus.tgz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The download starts; the first `resumed_at` bytes were there already.
    Started { name: &'a str, from: &'a str, total: Option<u64>, resumed_at: u64 },
    /// `done` of `total` bytes are on disk.
    Advanced { name: &'a str, done: u64, total: Option<u64> },
    /// The transfer failed and is retried after `wait`.
    Retrying { name: &'a str, reason: &'a str, wait: Duration },
    /// A mirror or URL gave no usable file; the next one follows.
    Refused { name: &'a str, from: &'a str, reason: &'a str },
    /// Digests are being computed.
    Verifying { name: &'a str, bytes: u64 },
    /// The file is complete, verified and has its final name.
    Finished { name: &'a str, bytes: u64 },
    /// A file without a published digest was fetched for the first time, and its digest is now
    /// pinned.
    Pinned { name: &'a str, sha256: &'a str },
    /// Another process holds the lock on this file.
    Waiting { name: &'a str },
    /// An archive is being unpacked; `done` bytes are written.
    Unpacking { name: &'a str, done: u64 },
}

/// Receives [`Event`]s. The methods are called from the thread that fetches.
pub trait Progress: Sync {
    /// Handles one event.
    fn event(&self, event: Event<'_>);

    /// Called at least ten times a second. `true` stops the fetch with
    /// [`super::FetchError::Cancelled`] and keeps the part file.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _: Event<'_>) {}
}

/// Gives or refuses consent to a risk.
pub trait Consent: Sync {
    /// Whether this risk may be taken. `risk` names it, e.g. `a.tgz has no published digest and
    /// comes over plain http`.
    fn allows(&self, risk: &str) -> bool;
}

/// Refuses every risk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Refuse;

impl Consent for Refuse {
    fn allows(&self, _: &str) -> bool {
        false
    }
}
