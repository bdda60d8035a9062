//! Paths: the data home, and the `<host>/<path>` layout that it shares with mirrors.

use std::path::{Path, PathBuf};

use super::digest::sha256_of;
use super::error::FetchError;
use super::lock::Lock;

/// The folder for everything fetched and unpacked: `downloads/<host>/<path>`, `corpora/<name>/…`,
/// `pins.json`, `locks/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataHome {
    root: PathBuf,
}

impl DataHome {
    /// A home at `root`. Nothing is created yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Path of the home.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of a downloaded file, whether it exists or not. `place` is its `<host>/<path>`
    /// ([`place_of`]).
    pub fn download(&self, place: &str) -> PathBuf {
        self.root.join("downloads").join(place)
    }

    /// The folder of the unpacked files of a corpus.
    pub fn corpus_dir(&self, name: &str) -> PathBuf {
        self.root.join("corpora").join(name)
    }

    /// Path of the file with the digests that were pinned at the first fetch.
    pub fn pins_path(&self) -> PathBuf {
        self.root.join("pins.json")
    }

    /// Path of the lock that is held while an archive of a corpus is unpacked.
    pub(crate) fn unpacking_lock(&self, corpus: &str, archive: &str) -> PathBuf {
        self.lock_path(&format!("corpora/{corpus}/{archive}"))
    }

    /// Keeps other processes from fetching a file while the result lives. `None` if another process
    /// fetches it. `place` is its `<host>/<path>`.
    ///
    /// # Errors
    /// The lock cannot be opened.
    pub fn hold_download(&self, place: &str) -> Result<Option<Lock>, FetchError> {
        Lock::take_free(&self.lock_path(place))
    }

    /// Keeps other processes from unpacking an archive of a corpus while the result lives. `None`
    /// if another process unpacks it.
    ///
    /// # Errors
    /// The lock cannot be opened.
    pub fn hold_unpacked(&self, corpus: &str, archive: &str) -> Result<Option<Lock>, FetchError> {
        Lock::take_free(&self.unpacking_lock(corpus, archive))
    }

    /// Path of the lock that guards `what`. Locks have their own folder and are never removed:
    /// removing a lock file while another process waits for it would let two processes in.
    pub(crate) fn lock_path(&self, what: &str) -> PathBuf {
        self.root.join("locks").join(format!("{}.lock", &sha256_of(what.as_bytes())[..16]))
    }
}

/// `<host>/<path>` of an http or https URL, with `/` between the parts. A port becomes `_port`, a
/// query becomes `@query`, and characters that are invalid in file names become `_`. Percent signs
/// stay: nothing is decoded, so no path can escape the home.
///
/// # Errors
/// The scheme is not http or https, there is no host or no file name, or a part is `.` or `..`.
pub fn place_of(url: &str) -> Result<String, FetchError> {
    let bad = |reason: &str| FetchError::Url { url: url.into(), reason: reason.into() };
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .ok_or_else(|| bad("it is neither http nor https"))?;
    let rest = rest.split('#').next().unwrap_or(rest);
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let mut parts: Vec<String> = path.split('/').map(clean).collect();
    if parts[0].is_empty() || parts[0].contains('@') {
        return Err(bad("it has no plain host"));
    }
    parts[0].make_ascii_lowercase();
    if parts.len() < 2 || parts.iter().any(String::is_empty) {
        return Err(bad("it has no path, or an empty part in it"));
    }
    if let (Some(query), Some(last)) = (query, parts.last_mut()) {
        last.push('@');
        last.push_str(&clean(query));
    }
    if parts.iter().any(|p| p.bytes().all(|b| b == b'.')) {
        return Err(bad("a part of its path is made of dots"));
    }
    if parts.iter().any(|p| p.len() > 240) {
        return Err(bad("a part of its path is longer than a file name may be"));
    }
    Ok(parts.join("/"))
}

fn clean(part: &str) -> String {
    part.chars().map(|c| if c.is_ascii_alphanumeric() || "._~%+=,@-".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn host_and_path_are_the_place() {
        let place = |url: &str| place_of(url).unwrap();
        assert_eq!(place("https://Example.org/a/b.tgz"), "example.org/a/b.tgz");
        assert_eq!(place("http://127.0.0.1:8080/x"), "127.0.0.1_8080/x");
        assert_eq!(place("https://example.org/uc?id=1&e=/../2"), "example.org/uc@id=1_e=_.._2");
        assert_eq!(place("https://example.org/a%2e%2e/b"), "example.org/a%2e%2e/b");
        for bad in [
            "ftp://example.org/a",
            "https:///a",
            "https://example.org",
            "https://example.org/",
            "a/b",
            "https://example.org/../a",
            "https://example.org/a/..",
            "https://u:p@example.org/a",
            "https://example.org/a//b",
        ] {
            assert!(matches!(place_of(bad), Err(FetchError::Url { .. })), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_url_leaves_the_home(url in "https?://[ -~]{0,40}(/[.\\\\/%a-z]{0,12}){0,4}") {
            if let Ok(place) = place_of(&url) {
                let parts: Vec<_> = Path::new(&place).components().collect();
                prop_assert!(parts.iter().all(|c| matches!(c, std::path::Component::Normal(_))));
                prop_assert_eq!(parts.len(), place.split('/').count());
                prop_assert!(!place.contains('\\') && !place.contains(':'));
            }
        }
    }
}
