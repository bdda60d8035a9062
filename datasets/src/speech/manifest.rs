//! Manifests of a user's own recordings: one JSON object per line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use zoo_recipes::untrusted::open;

use super::error::SpeechError;
use super::listing::Candidate;
use crate::fetch::sha256_file;

/// Maximum length of a line in bytes.
const LONGEST_LINE: usize = 1 << 20;

const HINT: &str = "a line is {\"audio\": \"a.flac\", \"text\": \"what is said\"}, with \"speaker\" if known";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    audio: String,
    text: String,
    #[serde(default)]
    speaker: Option<String>,
}

/// Reads the recordings in a manifest. Their paths are relative to its folder. Blank lines are
/// ignored.
pub(super) fn read(file: &Path) -> Result<Vec<Candidate>, SpeechError> {
    let mut reader = BufReader::new(open(file).map_err(SpeechError::io(file))?);
    let mut found = Vec::new();
    let mut bytes = Vec::new();
    for line in 1.. {
        let error = |problem: String| SpeechError::Manifest { file: file.into(), line, problem, hint: HINT };
        bytes.clear();
        let mut bounded = reader.by_ref().take(LONGEST_LINE as u64);
        if bounded.read_until(b'\n', &mut bytes).map_err(SpeechError::io(file))? == 0 {
            break;
        }
        if bytes.len() == LONGEST_LINE {
            return Err(error(format!("the line has more than {LONGEST_LINE} bytes")));
        }
        let text = std::str::from_utf8(&bytes)
            .map_err(|e| error(format!("it is not UTF-8 from byte {} on", e.valid_up_to() + 1)))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| line == 1).unwrap_or(text);
        if text.trim().is_empty() {
            continue;
        }
        let Line { audio, text, speaker } = serde_json::from_str(text).map_err(|e| error(e.to_string()))?;
        if audio.is_empty() || audio.contains('\0') {
            return Err(error("`audio` names no file".into()));
        }
        found.push(Candidate {
            id: audio.as_str().into(),
            root: 0,
            audio: audio.into(),
            text: text.into(),
            speaker: speaker.map(Into::into),
            line: Some(line),
        });
    }
    match found.is_empty() {
        true => Err(SpeechError::Manifest {
            file: file.into(),
            line: 1,
            problem: "it lists no recording".into(),
            hint: HINT,
        }),
        false => Ok(found),
    }
}

/// SHA-256 over a manifest, and over the length and modification time of every recording in it. A
/// different digest means that a recording may have changed. The recordings themselves are not
/// read.
///
/// # Errors
/// The manifest is not valid. A missing recording is not an error, but part of the digest.
pub fn stamp(file: &Path) -> Result<String, SpeechError> {
    let root = file.parent().unwrap_or(Path::new(""));
    let mut hash = Sha256::new();
    hash.update(sha256_file(file).map_err(SpeechError::io(file))?);
    for candidate in read(file)? {
        add_state(&mut hash, &root.join(&*candidate.audio));
    }
    Ok(hex::encode(hash.finalize()))
}

/// Adds the length and modification time of a file, which may be missing, to a hash.
pub(super) fn add_state(hash: &mut Sha256, file: &Path) {
    let found = std::fs::metadata(file).ok();
    let changed = found.as_ref().and_then(|found| found.modified().ok());
    let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    hash.update(found.map_or(u64::MAX, |found| found.len()).to_le_bytes());
    hash.update(changed.map_or(0, |time| time.as_nanos()).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stamp_tells_that_a_recording_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.jsonl");
        std::fs::write(&file, "{\"audio\": \"a.wav\", \"text\": \"a\"}\n").unwrap();
        let missing = stamp(&file).unwrap();
        std::fs::write(folder.path().join("a.wav"), b"12").unwrap();
        let first = stamp(&file).unwrap();
        assert_eq!(stamp(&file).unwrap(), first);
        let audio = std::fs::File::options().write(true).open(folder.path().join("a.wav")).unwrap();
        audio.set_modified(UNIX_EPOCH).unwrap();
        let later = stamp(&file).unwrap();
        assert!(missing != first && first != later && missing != later);
    }

    fn read_bytes(bytes: &[u8]) -> Result<Vec<Candidate>, SpeechError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.jsonl");
        std::fs::write(&file, bytes).unwrap();
        read(&file)
    }

    #[test]
    fn lines_are_recordings() {
        let text = "\u{feff}{\"audio\": \"a.wav\", \"text\": \"x\"}\n\n{\"audio\": \"b\", \"text\": \"\", \"speaker\": \"s\"}";
        let found = read_bytes(text.as_bytes()).unwrap();
        assert_eq!((&*found[0].audio, &*found[0].text, &found[0].speaker), ("a.wav", "x", &None));
        assert_eq!((found[1].line, found[1].speaker.as_deref()), (Some(3), Some("s")));
    }

    #[test]
    fn errors_name_file_and_line() {
        for (line, problem) in [
            (
                "{\"audio_filepath\": \"a\", \"text\": \"x\"}",
                "unknown field `audio_filepath`, expected one of `audio`",
            ),
            ("{\"audio\": \"a\"}", "missing field `text`"),
            ("{\"audio\": \"\", \"text\": \"x\"}", "names no file"),
            ("a.wav\tx", "expected value"),
            ("[", "EOF"),
        ] {
            let text = format!("{{\"audio\": \"a\", \"text\": \"x\"}}\n{line}\n");
            let error = read_bytes(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.contains("m.jsonl:2: ") && error.contains(problem) && error.contains("hint:"),
                "{error}"
            );
        }
        assert!(
            read_bytes(b"{\"audio\": \"\xff\"}").unwrap_err().to_string().contains(":1: it is not UTF-8")
        );
        assert!(read_bytes(b"\n \n").unwrap_err().to_string().contains("lists no recording"));
        assert!(read_bytes(&vec![b' '; LONGEST_LINE + 5]).unwrap_err().to_string().contains("more than"));
        assert!(read(Path::new("/nowhere/m.jsonl")).unwrap_err().to_string().contains("/nowhere/m.jsonl"));
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_bytes(&bytes);
        }

        #[test]
        fn damaged_lines_never_panic(at in 0_usize..60, byte in any::<u8>(), cut in 0_usize..60) {
            let mut bytes = br#"{"audio": "a.wav", "text": "what is said", "speaker": "s"}"#.to_vec();
            let (at, cut) = (at.min(bytes.len() - 1), cut.min(bytes.len()));
            bytes[at] = byte;
            bytes.truncate(cut);
            if let Err(error) = read_bytes(&bytes) {
                prop_assert!(error.to_string().contains("m.jsonl:"));
            }
        }
    }
}
