//! Fetches files from URLs and mirrors: downloads are resumed, retried and verified before a file
//! gets its final name.

mod archive;
mod connection;
mod content;
mod digest;
mod error;
mod http;
mod kept;
mod layout;
mod lock;
mod packing;
mod part;
mod progress;
mod record;
mod sniff;
mod source;
mod unpack;
mod walk;
mod wanted;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use zoo_recipes::atomic;
use zoo_recipes::untrusted::check_regular;

pub use archive::{Member, UnpackError, UnpackLimits};
pub use content::{ContentPart, content_digest, content_digest_of};
pub use digest::{Digest, Mismatch, sha256_file, sha256_of};
pub use error::{Attempt, FetchError};
pub use kept::{KeptDownload, kept_downloads};
pub use layout::{DataHome, place_of};
pub use lock::Lock;
pub use packing::Packing;
pub use progress::{Consent, Event, Progress, Refuse, Silent};
pub use record::Pin;
pub use source::Source;
pub use unpack::{Unpacked, gunzip, unpack};
pub use wanted::{FolderMembers, Wanted};

pub(crate) use digest::is_hex;
pub(crate) use record::{Stamp, beside, read_json, write_json};
pub(crate) use walk::check_member;

use digest::{FileDigest, digest_file};
use http::{Failure, Transfer, is_https};
use part::Part;
use record::FetchedRecord;

/// Files below this many bytes are digested at every fetch. Larger ones are digested only if they
/// were modified since they were verified. [`verify`] always reads the file.
const ALWAYS_READ_BELOW: u64 = 64 << 20;
/// Longest pause between tries.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Options of a fetch.
#[derive(Clone)]
pub struct FetchOptions<'a> {
    /// A folder or an http(s) URL with the `<host>/<path>` layout. It is tried before the URLs, and
    /// its files are verified like downloads.
    pub mirror: Option<String>,
    /// Do not open network connections. A mirror folder is still used.
    pub offline: bool,
    /// Receives the events of the fetch.
    pub progress: &'a dyn Progress,
    /// Called before a file without a published digest is downloaded over plain http.
    pub consent: &'a dyn Consent,
    /// Number of retries after the first try at one URL. A try that received bytes resets the
    /// count.
    pub retries: u32,
    /// Pause before the first retry. It doubles with each retry, up to a minute.
    pub backoff: Duration,
    /// Close a connection that received nothing for this time.
    pub stall: Duration,
    /// Maximum number of bytes of a file whose source states no size: a body may be endless.
    pub most_unsized: u64,
}

impl Default for FetchOptions<'_> {
    fn default() -> Self {
        Self {
            mirror: None,
            offline: false,
            progress: &Silent,
            consent: &Refuse,
            retries: 5,
            backoff: Duration::from_secs(1),
            stall: Duration::from_secs(60),
            most_unsized: http::MOST_UNSIZED,
        }
    }
}

/// A file that is present and verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Path of the file.
    pub path: PathBuf,
    /// SHA-256, 64 lower-case hexadecimal digits, whichever digest the file was checked against.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// The URL or mirror path it came from; `by hand` if the user put it there.
    pub from: String,
}

/// Makes sure that `home` holds the whole, verified file of `source`.
///
/// # Errors
/// See [`FetchError`]. A damaged file under the final name is reported with its digests and left
/// for the user to remove. Damaged downloads are removed, and the error says so.
pub fn fetch(source: &Source, home: &DataHome, options: &FetchOptions<'_>) -> Result<Fetched, FetchError> {
    let job = Job::new(source, home, options)?;
    if let Some(fetched) = job.present(false)? {
        return Ok(fetched);
    }
    let _lock = Lock::take_with(&home.lock_path(&job.name), &job.name, options.progress)?;
    // Another process may have fetched it during the wait.
    if let Some(fetched) = job.present(true)? {
        return Ok(fetched);
    }
    job.obtain()
}

/// Reads the file of `source` in `home` from end to end and checks it. Opens no connection and
/// changes nothing.
///
/// # Errors
/// [`FetchError::Missing`] or [`FetchError::Corrupt`].
pub fn verify(source: &Source, home: &DataHome, progress: &dyn Progress) -> Result<Fetched, FetchError> {
    let options = FetchOptions { offline: true, progress, ..FetchOptions::default() };
    let job = Job::new(source, home, &options)?;
    if !job.target.exists() {
        return Err(job.missing());
    }
    let digest = job.check(&job.target)?.map_err(|mismatch| job.corrupt(mismatch))?;
    let record: Option<FetchedRecord> = read_json(&job.record_path())?;
    Ok(job.fetched(digest.sha256, digest.bytes, record.map_or_else(|| "by hand".into(), |r| r.from)))
}

/// The fetch of one source into one home.
struct Job<'a> {
    source: &'a Source,
    home: &'a DataHome,
    options: &'a FetchOptions<'a>,
    /// `<host>/<path>`.
    name: String,
    target: PathBuf,
}

impl<'a> Job<'a> {
    fn new(
        source: &'a Source,
        home: &'a DataHome,
        options: &'a FetchOptions<'a>,
    ) -> Result<Self, FetchError> {
        let name = source.place()?;
        let target = home.download(&name);
        Ok(Self { source, home, options, name, target })
    }

    fn record_path(&self) -> PathBuf {
        beside(&self.target, ".fetched.json")
    }

    fn fetched(&self, sha256: String, bytes: u64, from: String) -> Fetched {
        Fetched { path: self.target.clone(), sha256, bytes, from }
    }

    fn corrupt(&self, mismatch: Mismatch) -> FetchError {
        FetchError::Corrupt { path: self.target.clone(), mismatch }
    }

    fn missing(&self) -> FetchError {
        FetchError::Missing {
            name: self.name.clone(),
            urls: self.source.urls.clone(),
            size: self.source.size,
            place: self.target.clone(),
            mirror: self.mirror_folder().map(|folder| folder.join(&self.name)),
        }
    }

    /// The mirror, if it is a folder.
    fn mirror_folder(&self) -> Option<&Path> {
        self.options.mirror.as_deref().filter(|m| !is_url(m)).map(Path::new)
    }

    /// Returns the file if it already has its final name. Only the holder of the lock may write
    /// records.
    fn present(&self, locked: bool) -> Result<Option<Fetched>, FetchError> {
        let Ok(metadata) = fs::metadata(&self.target) else { return Ok(None) };
        let stamp = Stamp::of(&metadata);
        let checked = self.source.digest.to_string();
        let record: Option<FetchedRecord> = read_json(&self.record_path())?;
        if let Some(record) = &record
            && record.stamp == stamp
            && record.checked == checked
            && stamp.bytes >= ALWAYS_READ_BELOW
            && self.source.size.is_none_or(|size| size == stamp.bytes)
        {
            return Ok(Some(self.fetched(record.sha256.clone(), stamp.bytes, record.from.clone())));
        }
        let digest = self.check(&self.target)?.map_err(|mismatch| self.corrupt(mismatch))?;
        let known = record.as_ref().is_some_and(|r| r.sha256 == digest.sha256 && r.checked == checked);
        if !known && !locked {
            // The user put the file there, or its record is for another file: the caller records it
            // under the lock.
            return Ok(None);
        }
        let from = record.filter(|r| r.sha256 == digest.sha256).map_or_else(|| "by hand".into(), |r| r.from);
        if !known {
            self.record(&digest, &from, stamp)?;
        }
        Ok(Some(self.fetched(digest.sha256, digest.bytes, from)))
    }

    /// Checks whether the file at `path` is that of the source.
    fn check(&self, path: &Path) -> Result<Result<FileDigest, Mismatch>, FetchError> {
        let read = |e| FetchError::io("read", path)(e);
        let bytes = fs::metadata(path).map_err(read)?.len();
        self.options.progress.event(Event::Verifying { name: &self.name, bytes });
        let file_name = self.name.rsplit('/').next().unwrap_or(&self.name);
        if let Err(mismatch) = sniff::check_file(file_name, path).map_err(read)? {
            return Ok(Err(mismatch));
        }
        if let Some(expected) = self.source.size
            && expected != bytes
        {
            return Ok(Err(Mismatch::Size { expected, actual: bytes }));
        }
        let with_md5 = matches!(self.source.digest, Digest::Md5(_));
        let digest = digest_file(path, with_md5).map_err(read)?;
        let differs = |kind, expected: &String, actual: String| {
            (*expected != actual).then(|| Mismatch::Digest { kind, expected: expected.clone(), actual })
        };
        let mismatch = match &self.source.digest {
            Digest::Sha256(expected) => differs("sha256", expected, digest.sha256.clone()),
            Digest::Md5(expected) => differs("md5", expected, digest.md5.clone().unwrap_or_default()),
            Digest::Content(expected) | Digest::ContentOf { sha256: expected, .. } => {
                let found = match &self.source.digest {
                    Digest::ContentOf { part, .. } => content_digest_of(path, part),
                    _ => content_digest(path),
                };
                match found {
                    Ok(actual) => differs("content-sha256", expected, actual),
                    Err(e) => Some(Mismatch::Archive(e.reason())),
                }
            }
            Digest::Unknown => {
                record::pin_of(self.home, &self.name)?.filter(|pin| pin.sha256 != digest.sha256).map(|pin| {
                    Mismatch::Pin { expected: pin.sha256, actual: digest.sha256.clone(), from: pin.from }
                })
            }
        };
        Ok(mismatch.map_or(Ok(digest), Err))
    }

    /// Records a verified file. Pins its digest if none is published.
    fn record(&self, digest: &FileDigest, from: &str, stamp: Stamp) -> Result<(), FetchError> {
        if self.source.digest == Digest::Unknown {
            let new = Pin {
                sha256: digest.sha256.clone(),
                bytes: digest.bytes,
                from: from.into(),
                pinned: record::now(),
            };
            if record::pin(self.home, &self.name, new.clone())? == new {
                self.options.progress.event(Event::Pinned { name: &self.name, sha256: &digest.sha256 });
            }
        }
        let record = FetchedRecord {
            from: from.into(),
            sha256: digest.sha256.clone(),
            checked: self.source.digest.to_string(),
            verified: record::now(),
            stamp,
        };
        write_json(&self.record_path(), &record)
    }

    /// Tries the mirror, then each URL.
    fn obtain(&self) -> Result<Fetched, FetchError> {
        let mut attempts = Vec::new();
        let mut refuse = |from: String, reason: String| {
            self.options.progress.event(Event::Refused { name: &self.name, from: &from, reason: &reason });
            attempts.push(Attempt { from, reason });
        };
        let mut places = Vec::new();
        for url in &self.source.urls {
            let place = place_of(url)?;
            // http and https of one host share one place.
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if let Some(folder) = self.mirror_folder() {
            if !folder.is_dir() {
                refuse(folder.display().to_string(), "the mirror is not a folder".into());
            }
            for place in &places {
                let path = folder.join(place);
                match self.copy(&path)? {
                    Ok(fetched) => return Ok(fetched),
                    // A mirror may lack files.
                    Err(None) => {}
                    Err(Some(reason)) => refuse(path.display().to_string(), reason),
                }
            }
        }
        if self.options.offline {
            return Err(match attempts.is_empty() {
                true => self.missing(),
                false => FetchError::AllFailed {
                    name: self.name.clone(),
                    attempts,
                    hint: "mend the mirror, or fetch without --offline".into(),
                },
            });
        }
        let mirror = self.options.mirror.as_deref().filter(|m| is_url(m));
        let mirrored =
            mirror.iter().flat_map(|m| places.iter().map(|p| format!("{}/{p}", m.trim_end_matches('/'))));
        let mut urls: Vec<String> = mirrored.chain(self.source.urls.iter().cloned()).collect();
        let unchecked = self.unchecked()?;
        if unchecked {
            // Try https first: it needs no consent.
            urls.sort_by_key(|url| !is_https(url));
        }
        let mut unconfirmed = false;
        for url in urls {
            if unchecked && !is_https(&url) && !self.consents(&url) {
                unconfirmed = true;
                refuse(
                    url,
                    "plain http, and no published digest would tell whether the file was changed".into(),
                );
                continue;
            }
            match self.download(&url)? {
                Ok(fetched) => return Ok(fetched),
                Err(reason) => refuse(url, reason),
            }
        }
        if unconfirmed {
            return Err(FetchError::Unconfirmed { name: self.name.clone(), attempts });
        }
        let hint = format!(
            "try again later, name a mirror (--mirror), or put the file at {} by hand",
            self.target.display()
        );
        Err(FetchError::AllFailed { name: self.name.clone(), attempts, hint })
    }

    /// Whether neither a published digest nor a pin of an earlier fetch identifies the file.
    fn unchecked(&self) -> Result<bool, FetchError> {
        Ok(self.source.digest == Digest::Unknown && record::pin_of(self.home, &self.name)?.is_none())
    }

    fn consents(&self, url: &str) -> bool {
        let risk = format!(
            "{url} uses plain http and has no published digest: it can be changed unnoticed in transit"
        );
        self.options.consent.allows(&risk)
    }

    /// Copies the file from a mirror folder. `Err(None)` means that the mirror does not have it.
    fn copy(&self, from: &Path) -> Result<Result<Fetched, Option<String>>, FetchError> {
        match fs::metadata(from).map(|metadata| check_regular(&metadata)) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Ok(Err(Some(e.to_string()))),
            Err(_) => return Ok(Err(None)),
        }
        let copy = beside(&self.target, ".copy");
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder).map_err(FetchError::io("create", folder))?;
        }
        let from_text = from.display().to_string();
        let copied = fs::File::open(from).and_then(|mut input| {
            let mut output = fs::File::create(&copy)?;
            let bytes = std::io::copy(&mut input, &mut output)?;
            output.sync_all()?;
            Ok(bytes)
        });
        let bytes = match copied {
            Ok(bytes) => bytes,
            Err(e) => {
                let _ = fs::remove_file(&copy);
                return Err(FetchError::io("copy from the mirror", from)(e));
            }
        };
        self.options.progress.event(Event::Started {
            name: &self.name,
            from: &from_text,
            total: Some(bytes),
            resumed_at: 0,
        });
        match self.check(&copy)? {
            Ok(digest) => self.accept(&copy, &digest, &from_text).map(Ok),
            Err(mismatch) => {
                fs::remove_file(&copy).map_err(FetchError::io("remove", &copy))?;
                Ok(Err(Some(mismatch.to_string())))
            }
        }
    }

    /// Downloads from one URL, with retries. `Ok(Err(reason))` means that this URL does not have
    /// the file.
    fn download(&self, url: &str) -> Result<Result<Fetched, String>, FetchError> {
        let part = Part::of(&self.target);
        let transfer = Transfer {
            url,
            source: self.source,
            part: &part,
            name: &self.name,
            stall: self.options.stall,
            most_unsized: self.options.most_unsized,
            progress: self.options.progress,
        };
        let (mut failures, mut most) = (0, part.state().0);
        let mut started_over = false;
        loop {
            let (reason, retry_after) = match transfer.attempt() {
                Ok(resumed) => match self.check(&part.path)? {
                    Ok(digest) => {
                        part.forget();
                        return self.accept(&part.path, &digest, url).map(Ok);
                    }
                    Err(mismatch) => {
                        part.discard();
                        if !resumed || started_over {
                            return Ok(Err(format!("{mismatch}; what was downloaded is removed")));
                        }
                        // The first bytes may be those of an older file, so download it once more
                        // from the start.
                        started_over = true;
                        (format!("{mismatch}; starting over"), None)
                    }
                },
                Err(Failure::Transient { reason, retry_after }) => (reason, retry_after),
                Err(Failure::Permanent(reason)) => return Ok(Err(reason)),
                Err(Failure::Fatal(error)) => return Err(error),
            };
            let have = part.state().0;
            if have > most {
                (failures, most) = (0, have);
            }
            failures += 1;
            if failures > self.options.retries {
                return Ok(Err(format!("{reason} (gave up after {failures} tries)")));
            }
            let wait = self.options.backoff.saturating_mul(1 << (failures - 1).min(16));
            let wait = wait.max(retry_after.unwrap_or_default()).min(LONGEST_WAIT);
            self.options.progress.event(Event::Retrying { name: &self.name, reason: &reason, wait });
            self.pause(wait)?;
        }
    }

    /// Sleeps, and wakes up regularly to check for cancellation.
    fn pause(&self, wait: Duration) -> Result<(), FetchError> {
        let end = Instant::now() + wait;
        loop {
            if self.options.progress.cancelled() {
                return Err(FetchError::Cancelled { name: self.name.clone() });
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(Duration::from_millis(100)));
        }
    }

    /// Gives a verified file its final name.
    fn accept(&self, verified: &Path, digest: &FileDigest, from: &str) -> Result<Fetched, FetchError> {
        let metadata = fs::metadata(verified).map_err(FetchError::io("read", verified))?;
        // A rename keeps the stamp, so the record can be written first and is never missing.
        self.record(digest, from, Stamp::of(&metadata))?;
        atomic::rename(verified, &self.target).map_err(FetchError::io("rename to", &self.target))?;
        self.options.progress.event(Event::Finished { name: &self.name, bytes: digest.bytes });
        Ok(self.fetched(digest.sha256.clone(), digest.bytes, from.into()))
    }
}

/// Whether a mirror is a URL; otherwise it is a folder.
pub fn is_url(mirror: &str) -> bool {
    mirror.starts_with("http://") || mirror.starts_with("https://")
}
