//! One GET of one URL into a part file, resumed where the previous one stopped.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};

use super::connection::{Broken, Connection};
use super::digest::Digest;
use super::error::FetchError;
use super::part::{Part, PartState};
use super::progress::{Event, Progress};
use super::sniff;
use super::source::Source;

/// Number of first bytes that are checked to distinguish a web page from a file.
const HEAD: usize = 512;
/// Maximum number of bytes of a file whose size is not published: a body may be endless.
pub(crate) const MOST_UNSIZED: u64 = 8 << 30;

/// One agent for all requests, so that files from one host share a connection.
static AGENT: LazyLock<Agent> = LazyLock::new(|| {
    Agent::config_builder()
        // Statuses are handled here and are not errors of the client.
        .http_status_as_error(false)
        // Request the stored bytes, not a compressed form: digests and ranges refer to the stored
        // bytes.
        .accept_encoding("identity")
        .user_agent(concat!("zoo-datasets/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(Duration::from_secs(30)))
        .timeout_connect(Some(Duration::from_secs(30)))
        .save_redirect_history(true)
        .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        .build()
        .new_agent()
});

/// Why an attempt did not produce the whole file.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another try at this URL may succeed.
    Transient { reason: String, retry_after: Option<Duration> },
    /// This URL cannot give the file.
    Permanent(String),
    /// No other URL can help.
    Fatal(FetchError),
}

impl Failure {
    fn transient(reason: impl Into<String>) -> Self {
        Self::Transient { reason: reason.into(), retry_after: None }
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::Fatal(error)
    }
}

/// Inputs of one GET.
pub(crate) struct Transfer<'a> {
    pub url: &'a str,
    pub source: &'a Source,
    pub part: &'a Part,
    pub name: &'a str,
    pub stall: Duration,
    /// Maximum number of bytes if no size is published.
    pub most_unsized: u64,
    pub progress: &'a dyn Progress,
}

impl Transfer<'_> {
    /// Completes the part file. Returns `Ok(true)` if some of its bytes were there before.
    pub(crate) fn attempt(&self) -> Result<bool, Failure> {
        let (have, state) = self.usable_part();
        if let Some(state) = &state
            && state.length == Some(have)
        {
            return Ok(true);
        }
        let mut request = AGENT
            .get(self.url)
            .config()
            .https_only(is_https(self.url))
            .timeout_recv_response(Some(self.stall))
            .timeout_per_read(Some(self.stall))
            .build();
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
            if let Some(validator) = state.as_ref().and_then(PartState::validator) {
                request = request.header(header::IF_RANGE, validator);
            }
        }
        let stopped = || self.progress.cancelled();
        let connection =
            Connection::open(move || request.call(), &stopped).map_err(|broken| self.broken(broken))?;
        let head = connection.head().map_err(|broken| self.broken(broken))?;
        if loses_https(&head.chain) {
            return Err(Failure::Permanent(LOST_HTTPS.into()));
        }
        let headers = &head.headers;
        match head.status {
            StatusCode::OK => self.receive(&connection, headers, 0, None).map(|()| false),
            StatusCode::PARTIAL_CONTENT if have > 0 => {
                let length = self.check_range(headers, have, state.as_ref())?;
                self.receive(&connection, headers, have, length).map(|()| true)
            }
            StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
                let said = header_text(headers, header::CONTENT_RANGE);
                let length = said
                    .and_then(|r| r.trim().strip_prefix("bytes */")?.trim().parse().ok())
                    .or(self.source.size);
                if length == Some(have) {
                    return Ok(true);
                }
                self.part.discard();
                Err(Failure::transient("the server has no more bytes than are here; starting over"))
            }
            status => Err(refused_status(status, headers)),
        }
    }

    fn broken(&self, broken: Broken) -> Failure {
        match broken {
            Broken::Stopped => Failure::Fatal(FetchError::Cancelled { name: self.name.into() }),
            Broken::Request(error) => refusal(&error),
            Broken::Body(error) => Failure::transient(format!("the transfer broke: {error}")),
            Broken::Thread => Failure::transient("the transfer broke: its thread ended"),
        }
    }

    /// Number of bytes of the part file from which this URL can resume, and their state.
    fn usable_part(&self) -> (u64, Option<PartState>) {
        let (have, Some(state)) = self.part.state() else { return (0, None) };
        // Only a validator or, afterwards, a digest can detect bytes of another version.
        let provable = state.validator().is_some() || self.source.digest != Digest::Unknown;
        let limit = self.source.size.or(state.length).unwrap_or(u64::MAX);
        if state.url == self.url && provable && have <= limit { (have, Some(state)) } else { (0, None) }
    }

    /// Checks that a 206 response starts where the part file ends. Returns the length of the whole
    /// file if the response states it.
    fn check_range(
        &self,
        headers: &HeaderMap,
        have: u64,
        state: Option<&PartState>,
    ) -> Result<Option<u64>, Failure> {
        let range = header_text(headers, header::CONTENT_RANGE).and_then(parse_content_range);
        let before = state.and_then(|s| s.length);
        match range {
            Some((start, length))
                if start == have && (length.is_none() || before.is_none() || length == before) =>
            {
                Ok(length.or(before))
            }
            _ => {
                self.part.discard();
                Err(Failure::transient("the server sent another range than asked for; starting over"))
            }
        }
    }

    /// Appends the body to the first `have` bytes. `length` is that of the whole file if a range
    /// states it.
    fn receive(
        &self,
        connection: &Connection<'_>,
        headers: &HeaderMap,
        have: u64,
        length: Option<u64>,
    ) -> Result<(), Failure> {
        let body_length = header_text(headers, header::CONTENT_LENGTH).and_then(|v| v.trim().parse().ok());
        let length = length.or(body_length.map(|n: u64| n.saturating_add(have)));
        let chunked = headers.contains_key(header::TRANSFER_ENCODING);
        let etag = header_text(headers, header::ETAG).filter(|e| !e.starts_with("W/"));
        let state = PartState {
            url: self.url.into(),
            etag: etag.map(Into::into),
            last_modified: header_text(headers, header::LAST_MODIFIED).map(Into::into),
            length,
        };
        let (mut done, mut ended) = (have, false);
        let mut head = Vec::new();
        while have == 0 && head.len() < HEAD && !ended {
            let file_name = self.name.rsplit('/').next().unwrap_or(self.name);
            match connection.block() {
                Ok(block) => {
                    ended = block.is_empty();
                    head.extend_from_slice(&block);
                }
                // A page is also recognised if its transfer broke off.
                Err(_) if sniff::looks_like_html(&head) => ended = true,
                Err(broken) => return Err(self.broken(broken)),
            }
            if ended || head.len() >= HEAD {
                sniff::check_head(file_name, &head).map_err(|m| Failure::Permanent(m.to_string()))?;
            }
        }
        if let (Some(due), Some(offered)) = (self.source.size, length)
            && due != offered
        {
            return Err(Failure::Permanent(format!("it offers {offered} bytes where {due} were due")));
        }
        if let (None, Some(offered)) = (self.source.size, length)
            && offered > self.most_unsized
        {
            return Err(Failure::Permanent(format!("it offers {offered} bytes; {}", self.unsized_limit())));
        }
        if length.is_none() && !chunked && self.source.size.is_none() && self.source.digest == Digest::Unknown
        {
            return Err(Failure::Permanent(
                "it does not report the file size, and no digest can verify the download".into(),
            ));
        }
        let mut file = self.open(have, &state)?;
        self.progress.event(Event::Started {
            name: self.name,
            from: self.url,
            total: length,
            resumed_at: have,
        });
        let due = length.or(self.source.size);
        let mut write = |block: &[u8]| -> Result<(), Failure> {
            done += block.len() as u64;
            match due {
                Some(due) if done > due => {
                    let reason = format!("it sends more than the {due} bytes that were due");
                    return Err(Failure::Permanent(reason));
                }
                None if done > self.most_unsized => {
                    let reason = format!("its body does not end; {}", self.unsized_limit());
                    return Err(Failure::Permanent(reason));
                }
                _ => {}
            }
            file.write_all(block).map_err(FetchError::io("write", &self.part.path))?;
            self.progress.event(Event::Advanced { name: self.name, done, total: length });
            Ok(())
        };
        let mut written = write(&head);
        let end = loop {
            if let Err(failure) = written {
                if matches!(failure, Failure::Permanent(_)) {
                    self.part.discard();
                }
                return Err(failure);
            }
            if ended {
                break Ok(());
            }
            match connection.block() {
                Ok(block) => {
                    ended = block.is_empty();
                    written = write(&block);
                }
                Err(broken) => break Err(self.broken(broken)),
            }
        };
        // Sync also after a failure: the next attempt resumes from these bytes.
        file.sync_all().map_err(FetchError::io("write", &self.part.path))?;
        end?;
        match due {
            Some(due) if done < due => {
                Err(Failure::transient(format!("the connection closed after {done} of {due} bytes")))
            }
            _ => Ok(()),
        }
    }

    fn unsized_limit(&self) -> String {
        format!("the most is {} bytes where its size is not published", self.most_unsized)
    }

    /// Opens the part file at `have` bytes. For a new file, the sidecar is written before its first
    /// byte.
    fn open(&self, have: u64, state: &PartState) -> Result<File, FetchError> {
        let path = &self.part.path;
        if have > 0 {
            return OpenOptions::new().append(true).open(path).map_err(FetchError::io("go on with", path));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(FetchError::io("create", folder))?;
        }
        let file = File::create(path).map_err(FetchError::io("create", path))?;
        self.part.note(state)?;
        Ok(file)
    }
}

const LOST_HTTPS: &str = "it redirects from https to http, where the file can be changed on its way";

/// Whether a URL uses https.
pub(super) fn is_https(url: &str) -> bool {
    url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// Whether a chain of redirects leaves https.
fn loses_https(chain: &[Uri]) -> bool {
    chain
        .windows(2)
        .any(|step| step[0].scheme_str() == Some("https") && step[1].scheme_str() != Some("https"))
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Parses `bytes 5-9/10` or `bytes 5-9/*` into the first byte and the length of the whole file.
fn parse_content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, length) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let start = range.trim().split_once('-')?.0.parse().ok()?;
    match length.trim() {
        "*" => Some((start, None)),
        n => Some((start, Some(n.parse().ok()?))),
    }
}

fn refused_status(status: StatusCode, headers: &HeaderMap) -> Failure {
    let reason = format!("the server says {status}");
    if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
        let seconds = header_text(headers, header::RETRY_AFTER).and_then(|v| v.trim().parse().ok());
        return Failure::Transient { reason, retry_after: seconds.map(Duration::from_secs) };
    }
    Failure::Permanent(reason)
}

fn refusal(error: &ureq::Error) -> Failure {
    use ureq::Error;
    let reason = error.to_string();
    match error {
        Error::Io(_) | Error::Timeout(_) | Error::ConnectionFailed | Error::Protocol(_) => {
            Failure::transient(reason)
        }
        Error::RequireHttpsOnly(_) => Failure::Permanent(LOST_HTTPS.into()),
        // A wrong name, an invalid certificate, a redirect loop: another try would give the same
        // result.
        _ => Failure::Permanent(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        assert_eq!(parse_content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_content_range(" bytes 0-0/*"), Some((0, None)));
        for bad in ["bytes */10", "5-9/10", "bytes 5-9", "bytes x-9/10", "bytes 5-9/y", ""] {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }
}
