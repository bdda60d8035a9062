//! Expected and actual digests of files.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use md5::Md5;
use sha2::{Digest as _, Sha256};
use zoo_recipes::untrusted::open;

use super::content::ContentPart;

/// The published digest of a source, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Digest {
    /// SHA-256 of the file, 64 lower-case hexadecimal digits.
    Sha256(String),
    /// MD5 of the file, 32 lower-case hexadecimal digits. It detects damage, but not a deliberate
    /// change.
    Md5(String),
    /// [`super::content_digest`] of the archive, for archives whose own bytes are not stable.
    Content(String),
    /// [`super::content_digest_of`] some of the members, for archives whose copies differ in other
    /// members.
    ContentOf {
        /// The members.
        part: ContentPart,
        /// The content digest of these members.
        sha256: String,
    },
    /// No digest is published. The first fetch pins the SHA-256 of its file, and later fetches must
    /// match it.
    Unknown,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(hex) => write!(f, "sha256:{hex}"),
            Self::Md5(hex) => write!(f, "md5:{hex}"),
            Self::Content(hex) => write!(f, "content-sha256:{hex}"),
            Self::ContentOf { part, sha256 } => write!(f, "content-sha256 of {part}:{sha256}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// How a file differs from the expected one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The number of bytes differs.
    #[error("expected {expected} bytes, it has {actual}")]
    Size {
        /// Expected number of bytes.
        expected: u64,
        /// Actual number of bytes.
        actual: u64,
    },
    /// The digest differs.
    #[error("expected {kind} {expected}, it has {actual}")]
    Digest {
        /// `sha256`, `md5` or `content-sha256`.
        kind: &'static str,
        /// Expected digest.
        expected: String,
        /// Actual digest.
        actual: String,
    },
    /// The digest differs from the one pinned when the file was first fetched.
    #[error("expected sha256 {expected} (pinned when it was first fetched from {from}), it has {actual}")]
    Pin {
        /// Pinned digest.
        expected: String,
        /// Actual digest.
        actual: String,
        /// URL or path of the pinned file.
        from: String,
    },
    /// The file is a web page, but its name is that of an archive or a text.
    #[error("it is an HTML page, not the file that was due")]
    Html,
    /// The first bytes do not match the format in the file's name.
    #[error("its name promises {expected}, its first bytes are {actual}")]
    Format {
        /// The expected format.
        expected: &'static str,
        /// The first bytes, in hexadecimal.
        actual: String,
    },
    /// The content digest could not be computed: the archive is broken.
    #[error("it is not a whole archive: {0}")]
    Archive(String),
}

/// Length, SHA-256 and, on request, MD5 of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDigest {
    pub sha256: String,
    pub md5: Option<String>,
    pub bytes: u64,
}

/// SHA-256 of `bytes`, 64 lower-case hexadecimal digits.
pub fn sha256_of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Reads `path` once. Computes the MD5 only if `with_md5`.
pub(crate) fn digest_file(path: &Path, with_md5: bool) -> io::Result<FileDigest> {
    let mut file = open(path)?;
    let mut sha256 = Sha256::new();
    let mut md5 = with_md5.then(Md5::new);
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        let n = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        sha256.update(&buffer[..n]);
        if let Some(md5) = &mut md5 {
            md5.update(&buffer[..n]);
        }
        bytes += n as u64;
    }
    Ok(FileDigest {
        sha256: hex::encode(sha256.finalize()),
        md5: md5.map(|m| hex::encode(m.finalize())),
        bytes,
    })
}

/// SHA-256 of a file, 64 lower-case hexadecimal digits.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    Ok(digest_file(path, false)?.sha256)
}

/// Whether `text` consists of `digits` lower-case hexadecimal digits.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards_test_vectors() {
        // FIPS 180-2 appendix B.1 and RFC 1321 appendix A.5.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let digest = digest_file(&path, true).unwrap();
        assert_eq!(digest.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.md5.as_deref(), Some("900150983cd24fb0d6963f7d28e17f72"));
        assert_eq!(digest.bytes, 3);
        assert_eq!(sha256_of(b"abc"), digest.sha256);
    }

    #[test]
    fn hexadecimal_is_lower_case_and_of_the_right_length() {
        assert!(is_hex("00ff", 4));
        for bad in ["00FF", "00f", "00fff", "00fg"] {
            assert!(!is_hex(bad, 4), "{bad}");
        }
    }
}
