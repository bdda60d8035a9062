//! Lists of recordings with their lengths. A list is made by reading every file once, stored as
//! JSON lines, and verified when it is read again.
//!
//! `SPLIT.jsonl` has a line of settings, one line per recording, and a line with the SHA-256 of all
//! lines before it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use zoo_recipes::atomic::{file_in, persist};
use zoo_recipes::untrusted;

use super::error::{Fault, Skipped, SpeechError};
use crate::audio::decode::{AudioError, decode, header};

/// Splits of at most this many bytes in total are decoded when they are listed, so that all damage
/// is found at once. For larger splits only headers are read; damage that a header does not show is
/// found when a batch is made.
const DECODED_UP_TO: u64 = 1 << 30;

/// Number of recordings between two progress reports.
const CHUNK: usize = 2048;

/// Maximum number of unusable recordings that are stored with their reasons; the others are only
/// counted.
pub(super) const KEPT: usize = 100;

const FORMAT: u32 = 1;

/// A recording named by a corpus or a manifest.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub id: Box<str>,
    /// Index of the root folder of its path.
    pub root: u32,
    pub audio: Box<str>,
    pub text: Box<str>,
    pub speaker: Option<Box<str>>,
    /// Line number in the manifest.
    pub line: Option<u64>,
}

/// A usable recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    pub id: Box<str>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub root: u32,
    pub audio: Box<str>,
    pub samples: u64,
    pub text: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Box<str>>,
}

fn is_zero(root: &u32) -> bool {
    *root == 0
}

/// Unusable utterances: all are counted, the first ones are described.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeftOut {
    pub counts: BTreeMap<Fault, u64>,
    pub first: Vec<Skipped>,
}

impl LeftOut {
    pub fn push(&mut self, skipped: Skipped) {
        *self.counts.entry(skipped.fault).or_default() += 1;
        if self.first.len() < KEPT {
            self.first.push(skipped);
        }
    }

    /// Returns an error if an utterance was left out and `why` says that none may be.
    pub fn check(&self, split: &str, why: Option<&'static str>) -> Result<(), SpeechError> {
        match (self.first.first(), why) {
            (Some(first), Some(why)) => Err(SpeechError::Unusable {
                split: split.into(),
                skipped: first.clone(),
                more: self.counts.values().sum::<u64>().saturating_sub(1),
                why,
            }),
            _ => Ok(()),
        }
    }
}

/// The recordings of a split.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listing {
    /// Number of recordings named by the corpus or manifest.
    pub read: u64,
    pub left_out: LeftOut,
    pub recordings: Vec<Listed>,
}

/// Everything on which a list depends.
pub(super) struct Origin<'a> {
    pub split: &'a str,
    pub rate: u32,
    /// Folders to which paths are relative.
    pub roots: &'a [PathBuf],
    /// Why no recording may be left out; `None` if recordings may be.
    pub whole: Option<&'static str>,
    /// Everything else: digests of the corpus or of the manifest.
    pub settings: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    settings: Value,
    rate: u32,
    read: u64,
    left_out: LeftOut,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    sha256: String,
}

impl Listing {
    /// Makes the list by checking every recording, on all threads and in the order of the
    /// candidates. `told` is called with the number of recordings checked so far.
    pub fn make(
        candidates: Vec<Candidate>,
        origin: &Origin<'_>,
        told: &dyn Fn(usize, usize),
    ) -> Result<Self, SpeechError> {
        let path = |candidate: &Candidate| {
            let root = origin.roots.get(candidate.root as usize).map_or(Path::new(""), PathBuf::as_path);
            root.join(&*candidate.audio)
        };
        let bytes = |candidate: &Candidate| std::fs::metadata(path(candidate)).map_or(0, |file| file.len());
        let decoded = candidates.par_iter().map(bytes).sum::<u64>() <= DECODED_UP_TO;
        let total = candidates.len();
        let mut listing =
            Self { read: total as u64, left_out: LeftOut::default(), recordings: Vec::with_capacity(total) };
        let mut candidates = candidates.into_iter();
        let mut done = 0;
        loop {
            let chunk: Vec<Candidate> = candidates.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                return Ok(listing);
            }
            let measured: Vec<_> =
                chunk.par_iter().map(|candidate| measure(&path(candidate), origin.rate, decoded)).collect();
            done += chunk.len();
            for (candidate, measured) in chunk.into_iter().zip(measured) {
                let name = match candidate.line {
                    Some(line) => format!("{} (line {line})", candidate.id),
                    None => candidate.id.to_string(),
                };
                match measured {
                    _ if candidate.text.trim().is_empty() => {
                        let problem = "its text is empty\nhint: say what is said, or leave it out";
                        listing.left_out.push(Skipped::new(&name, Fault::NoText, problem));
                    }
                    Err(error) => listing.left_out.push(Skipped::of_audio(&name, &error)),
                    Ok(samples) => {
                        let Candidate { id, root, audio, text, speaker, line: _ } = candidate;
                        listing.recordings.push(Listed { id, root, audio, samples, text, speaker });
                    }
                }
            }
            listing.left_out.check(origin.split, origin.whole)?;
            told(done, total);
        }
    }

    /// Reads the list in `file`. `None` if there is none or it has another origin, so that it must
    /// be made again.
    pub fn load(file: &Path, origin: &Origin<'_>) -> Result<Option<Self>, SpeechError> {
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(SpeechError::io(file)(e)),
        };
        let mut reader = BufReader::new(opened);
        let mut sha256 = Sha256::new();
        let mut listing: Option<Self> = None;
        let mut bytes = Vec::new();
        for line in 1_u64.. {
            let damaged = |problem: String| SpeechError::Damaged { file: file.into(), problem };
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes).map_err(SpeechError::io(file))? == 0 {
                break;
            }
            let malformed = |e: serde_json::Error| damaged(format!("line {line}: {e}"));
            if bytes.starts_with(b"{\"sha256\":") {
                let seal: Seal = serde_json::from_slice(&bytes).map_err(malformed)?;
                let rest = reader.fill_buf().map_err(SpeechError::io(file))?;
                return match hex::encode(sha256.finalize()) == seal.sha256 && rest.is_empty() {
                    true => Ok(listing),
                    false => Err(damaged("it does not have the SHA-256 of its last line".into())),
                };
            }
            sha256.update(&bytes);
            match &mut listing {
                Some(listing) => {
                    listing.recordings.push(serde_json::from_slice(&bytes).map_err(malformed)?);
                }
                None => {
                    let header: Header = serde_json::from_slice(&bytes).map_err(malformed)?;
                    let same = (header.format, header.rate) == (FORMAT, origin.rate);
                    if !same || header.settings != origin.settings {
                        return Ok(None);
                    }
                    let Header { read, left_out, .. } = header;
                    listing = Some(Self { read, left_out, recordings: Vec::new() });
                }
            }
        }
        Err(SpeechError::Damaged { file: file.into(), problem: "it ends early".into() })
    }

    /// Writes the list; `file` appears when it is complete.
    pub fn save(&self, file: &Path, origin: &Origin<'_>) -> Result<(), SpeechError> {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(SpeechError::io(folder))?;
        let temporary = file_in(folder).map_err(SpeechError::io(folder))?;
        let mut writer = Sealed { inner: BufWriter::new(temporary), sha256: Sha256::new() };
        let header = Header {
            format: FORMAT,
            settings: origin.settings.clone(),
            rate: origin.rate,
            read: self.read,
            left_out: self.left_out.clone(),
        };
        let written = writer.line(&header).and_then(|()| {
            self.recordings.iter().try_for_each(|recording| writer.line(recording))?;
            let seal = Seal { sha256: hex::encode(writer.sha256.clone().finalize()) };
            writer.line(&seal)?;
            let temporary = writer.inner.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            persist(temporary, file)
        });
        written.map_err(SpeechError::io(file))
    }
}

/// Compares a stored list with the digest in its last line, whatever its origin is.
///
/// # Errors
/// [`SpeechError::Damaged`], or the file cannot be read.
pub fn check_list(file: &Path) -> Result<(), SpeechError> {
    let damaged = |problem: String| SpeechError::Damaged { file: file.into(), problem };
    let mut reader = BufReader::new(untrusted::open(file).map_err(SpeechError::io(file))?);
    let (mut sha256, mut bytes) = (Sha256::new(), Vec::new());
    while reader.read_until(b'\n', &mut bytes).map_err(SpeechError::io(file))? > 0 {
        if bytes.starts_with(b"{\"sha256\":") {
            let seal: Seal = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
            let rest = reader.fill_buf().map_err(SpeechError::io(file))?;
            return match hex::encode(sha256.finalize()) == seal.sha256 && rest.is_empty() {
                true => Ok(()),
                false => Err(damaged("it does not have the SHA-256 of its last line".into())),
            };
        }
        sha256.update(&bytes);
        bytes.clear();
    }
    Err(damaged("it ends early".into()))
}

struct Sealed<W: Write> {
    inner: W,
    sha256: Sha256,
}

impl<W: Write> Sealed<W> {
    fn line(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.sha256.update(&line);
        self.inner.write_all(&line)
    }
}

/// Number of samples of a mono recording with this rate.
fn measure(file: &Path, rate: u32, decoded: bool) -> Result<u64, AudioError> {
    if !decoded {
        let header = header(file)?;
        if header.channels != 1 {
            return Err(AudioError::Channels { file: file.into(), found: header.channels });
        }
        if header.rate != rate {
            return Err(AudioError::Rate { file: file.into(), found: header.rate, expected: rate });
        }
        match header.samples {
            Some(0) => return Err(AudioError::Empty { file: file.into() }),
            Some(samples) => return Ok(samples),
            None => {}
        }
    }
    Ok(decode(file, Some(rate))?.samples.len() as u64)
}
