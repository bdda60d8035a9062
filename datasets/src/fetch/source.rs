//! Downloadable files, and their TOML form.

use serde::{Deserialize, Serialize};

use super::content::ContentPart;
use super::digest::{Digest, is_hex};
use super::error::FetchError;
use super::layout::place_of;

/// One file that can be downloaded.
///
/// In TOML: `urls`, `size`, and exactly one of `sha256`, `md5`, `content_sha256` or `digest =
/// "unknown"`. `content_suffix` and `content_folders` restrict `content_sha256` to the members with
/// this ending and to those in these folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SourceText", into = "SourceText")]
pub struct Source {
    /// URLs in the order to try. The first one determines the file's path in the home. Never empty.
    pub urls: Vec<String>,
    /// Length in bytes, if known.
    pub size: Option<u64>,
    /// Expected digest.
    pub digest: Digest,
}

impl Source {
    /// Checks and makes a source.
    ///
    /// # Errors
    /// There is no URL, a URL does not fit the `<host>/<path>` layout, or the digest is not valid.
    /// The text says which.
    pub fn new(urls: Vec<String>, size: Option<u64>, digest: Digest) -> Result<Self, String> {
        if urls.is_empty() {
            return Err("`urls` is empty".into());
        }
        for url in &urls {
            if let Err(FetchError::Url { url, reason }) = place_of(url) {
                return Err(format!("unusable URL {url:?}: {reason}"));
            }
        }
        let (hex, digits) = match &digest {
            Digest::Sha256(hex) | Digest::Content(hex) | Digest::ContentOf { sha256: hex, .. } => {
                (hex.as_str(), 64)
            }
            Digest::Md5(hex) => (hex.as_str(), 32),
            Digest::Unknown => ("", 0),
        };
        if !is_hex(hex, digits) {
            return Err(format!("{digest} is not {digits} lower-case hexadecimal digits"));
        }
        Ok(Self { urls, size, digest })
    }

    /// `<host>/<path>` of the first URL: the file's name in messages, pins and the home.
    ///
    /// # Errors
    /// The first URL is missing or unusable. This does not happen to a source from [`Source::new`].
    pub fn place(&self) -> Result<String, FetchError> {
        match self.urls.first() {
            Some(url) => place_of(url),
            None => Err(FetchError::Url { url: String::new(), reason: "a source without URLs".into() }),
        }
    }
}

/// The TOML form of a [`Source`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceText {
    urls: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    md5: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_suffix: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content_folders: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Absent>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Absent {
    Unknown,
}

impl TryFrom<SourceText> for Source {
    type Error = String;

    fn try_from(text: SourceText) -> Result<Self, String> {
        let stated = [
            ("content_suffix", text.content_suffix.is_some()),
            ("content_folders", !text.content_folders.is_empty()),
        ];
        if let Some((key, _)) = stated.iter().find(|(_, stated)| *stated && text.content_sha256.is_none()) {
            return Err(format!("`{key}` says of which members `content_sha256` is, which is not stated"));
        }
        let part =
            ContentPart { suffix: text.content_suffix.unwrap_or_default(), folders: text.content_folders };
        let content = |sha256| match part == ContentPart::default() {
            true => Digest::Content(sha256),
            false => Digest::ContentOf { part, sha256 },
        };
        let stated: Vec<Digest> = [
            text.sha256.map(Digest::Sha256),
            text.md5.map(Digest::Md5),
            text.content_sha256.map(content),
            text.digest.map(|Absent::Unknown| Digest::Unknown),
        ]
        .into_iter()
        .flatten()
        .collect();
        match <[Digest; 1]>::try_from(stated) {
            Ok([digest]) => Self::new(text.urls, text.size, digest),
            Err(stated) => Err(format!(
                "{} digests are stated; state exactly one of sha256, md5, content_sha256, digest = \"unknown\"",
                stated.len()
            )),
        }
    }
}

impl From<Source> for SourceText {
    fn from(source: Source) -> Self {
        let mut text = Self {
            urls: source.urls,
            size: source.size,
            sha256: None,
            md5: None,
            content_sha256: None,
            content_suffix: None,
            content_folders: Vec::new(),
            digest: None,
        };
        match source.digest {
            Digest::Sha256(hex) => text.sha256 = Some(hex),
            Digest::Md5(hex) => text.md5 = Some(hex),
            Digest::Content(hex) => text.content_sha256 = Some(hex),
            Digest::ContentOf { part: ContentPart { suffix, folders }, sha256 } => {
                text.content_suffix = Some(suffix).filter(|suffix| !suffix.is_empty());
                (text.content_folders, text.content_sha256) = (folders, Some(sha256));
            }
            Digest::Unknown => text.digest = Some(Absent::Unknown),
        }
        text
    }
}
