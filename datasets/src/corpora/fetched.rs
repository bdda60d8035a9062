//! A corpus in a home: fetches, unpacks, verifies and reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::definition::{CorpusDefinition, TextPart};
use super::error::CorpusError;
use super::pictures::FetchedPictures;
use super::recordings::{FetchedRecordings, RecordingsFolder};
use super::text::{Lines, TextFile, read_lines};
use super::texts::FetchedTexts;
use super::unpacked::UnpackedArchive;
use crate::fetch::{self, DataHome, FetchError, FetchOptions, Progress};

/// Verified files and splits of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedCorpus {
    /// Name of the corpus.
    pub name: String,
    /// Fingerprints by name of the file, for the ledger.
    pub fingerprints: BTreeMap<String, Fingerprint>,
    /// The requested splits.
    pub splits: BTreeMap<String, FetchedSplit>,
}

/// The identity of one fetched file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fingerprint {
    /// SHA-256 of the file as it was downloaded.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// The digest it was checked against, e.g. `md5:…`, or `unknown` if it was pinned.
    pub checked: String,
}

/// A split in a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedSplit {
    /// Name of the split.
    pub name: String,
    /// Expected number of lines, recordings, pictures or labelled texts, if known.
    pub lines: Option<u64>,
    /// For each language, the files with its lines, in order.
    pub text: BTreeMap<String, Vec<TextFile>>,
    /// Recordings of the split.
    pub recordings: Option<FetchedRecordings>,
    /// Pictures of the split.
    pub pictures: Option<FetchedPictures>,
    /// Labelled texts of the split.
    pub texts: Option<FetchedTexts>,
}

/// Result of verifying one file.
#[derive(Debug)]
pub struct FileCheck {
    /// Name in the definition; for a member of an archive, the name of the archive.
    pub file: String,
    /// Path of the file, which may be missing.
    pub path: PathBuf,
    /// SHA-256 of the file, or what is wrong with it.
    pub result: Result<String, FetchError>,
}

impl CorpusDefinition {
    /// Fetches, verifies and unpacks all files.
    ///
    /// # Errors
    /// [`CorpusError::Fetch`] for the first file that cannot be fetched.
    pub fn fetch_all(
        &self,
        home: &DataHome,
        options: &FetchOptions<'_>,
    ) -> Result<FetchedCorpus, CorpusError> {
        let all: Vec<&str> = self.splits.keys().map(String::as_str).collect();
        self.fetch_splits(&all, home, options)
    }

    /// Fetches, verifies and unpacks only the files of `splits`.
    ///
    /// # Errors
    /// [`CorpusError::UnknownSplit`], or [`CorpusError::Fetch`] for the first file that cannot be
    /// fetched.
    pub fn fetch_splits(
        &self,
        splits: &[&str],
        home: &DataHome,
        options: &FetchOptions<'_>,
    ) -> Result<FetchedCorpus, CorpusError> {
        let mut fingerprints = BTreeMap::new();
        let mut paths = BTreeMap::new();
        for file in self.files_of(splits)? {
            let error = |source| self.fetch_error(file, source);
            let definition = &self.files[file];
            let fetched = fetch::fetch(&definition.source, home, options).map_err(error)?;
            let path = if let Some(packing) = definition.unpack {
                let archive = UnpackedArchive::new(home, &self.name, file, packing);
                let members = self.members_of(file);
                archive
                    .ensure(&fetched, &members, definition.unpacked_size, options.progress)
                    .map_err(error)?;
                archive.folder()
            } else {
                fetched.path
            };
            paths.insert(file, path);
            let checked = definition.source.digest.to_string();
            fingerprints
                .insert(file.into(), Fingerprint { sha256: fetched.sha256, bytes: fetched.bytes, checked });
        }
        let place = |part: &TextPart| {
            let path = &paths[part.file.as_str()];
            part.member.as_ref().map_or_else(|| path.clone(), |member| path.join(member))
        };
        let fetched_split = |name: &str| {
            let split = &self.splits[name];
            let files = |parts: &Vec<TextPart>| {
                parts.iter().map(|part| TextFile { path: place(part), format: split.format }).collect()
            };
            FetchedSplit {
                name: name.into(),
                lines: split.lines,
                text: split.text.iter().map(|(language, parts)| (language.clone(), files(parts))).collect(),
                recordings: split.recordings.as_ref().map(|definition| {
                    let place = |folder: &RecordingsFolder| paths[folder.file.as_str()].join(&folder.folder);
                    let folders = definition.folders.iter().map(place).collect();
                    FetchedRecordings { folders, definition: definition.clone() }
                }),
                pictures: split
                    .pictures
                    .as_ref()
                    .map(|definition| FetchedPictures::new(name, split.lines, definition, &paths)),
                texts: split.texts.as_ref().map(|definition| FetchedTexts {
                    split: name.into(),
                    count: split.lines,
                    path: paths[definition.file().as_str()].clone(),
                    definition: definition.clone(),
                }),
            }
        };
        let splits = splits.iter().map(|name| ((*name).to_owned(), fetched_split(name))).collect();
        Ok(FetchedCorpus { name: self.name.clone(), fingerprints, splits })
    }

    /// The recordings of `splits` in a user's folder. The folder either contains the unpacked
    /// corpus or is itself the corpus's top folder. Nothing is fetched or verified, so there are no
    /// fingerprints.
    ///
    /// # Errors
    /// [`CorpusError::UnknownSplit`], or [`CorpusError::Folder`] if a folder of the splits is
    /// missing. Splits without recordings stay empty.
    pub fn in_folder(&self, folder: &Path, splits: &[&str]) -> Result<FetchedCorpus, CorpusError> {
        self.files_of(splits)?;
        let place = |wanted: &RecordingsFolder| {
            let below = wanted.folder.split_once('/').map_or("", |(_, below)| below);
            let places = [folder.join(&wanted.folder), folder.join(below)];
            places.into_iter().find(|place| place.is_dir()).ok_or_else(|| CorpusError::Folder {
                corpus: self.name.clone(),
                path: folder.into(),
                folder: wanted.folder.clone(),
            })
        };
        let mut found = BTreeMap::new();
        for name in splits {
            let split = &self.splits[*name];
            let recordings = match &split.recordings {
                Some(definition) => {
                    let folders = definition.folders.iter().map(place).collect::<Result<_, _>>()?;
                    Some(FetchedRecordings { folders, definition: definition.clone() })
                }
                None => None,
            };
            let (name, lines, text) = ((*name).to_owned(), split.lines, BTreeMap::new());
            let split = FetchedSplit { name, lines, text, recordings, pictures: None, texts: None };
            found.insert(split.name.clone(), split);
        }
        Ok(FetchedCorpus { name: self.name.clone(), fingerprints: BTreeMap::new(), splits: found })
    }

    /// Reads every file of the corpus in `home` from end to end, including unpacked members, and
    /// reports for each whether it is the expected file. Opens no connection.
    pub fn verify(&self, home: &DataHome, progress: &dyn Progress) -> Vec<FileCheck> {
        let mut checks = Vec::new();
        for (file, definition) in &self.files {
            let path = definition.source.place().map(|place| home.download(&place)).unwrap_or_default();
            let result = fetch::verify(&definition.source, home, progress).map(|f| f.sha256);
            checks.push(FileCheck { file: file.clone(), path, result });
            checks.extend(self.verify_members(file, home, progress));
        }
        checks
    }

    /// Reads every unpacked member of the corpus in `home` from end to end, as [`Self::verify`]
    /// does. Archives that are not unpacked have no members.
    pub fn verify_unpacked(&self, home: &DataHome, progress: &dyn Progress) -> Vec<FileCheck> {
        self.files.keys().flat_map(|file| self.verify_members(file, home, progress)).collect()
    }

    fn verify_members(&self, file: &str, home: &DataHome, progress: &dyn Progress) -> Vec<FileCheck> {
        let Some(packing) = self.files.get(file).and_then(|definition| definition.unpack) else {
            return Vec::new();
        };
        let archive = UnpackedArchive::new(home, &self.name, file, packing);
        let check = |path, result| FileCheck { file: file.to_owned(), path, result };
        match archive.verify(progress) {
            Ok(members) => {
                members.into_iter().map(|(path, member)| check(path, member.map(|m| m.sha256))).collect()
            }
            Err(error) => vec![check(archive.folder(), Err(error))],
        }
    }

    fn fetch_error(&self, file: &str, source: FetchError) -> CorpusError {
        CorpusError::Fetch { corpus: self.name.clone(), file: file.into(), source: Box::new(source) }
    }
}

impl FetchedCorpus {
    /// The split called `name`.
    ///
    /// # Errors
    /// [`CorpusError::UnknownSplit`] if it was not fetched.
    pub fn split(&self, name: &str) -> Result<&FetchedSplit, CorpusError> {
        self.splits.get(name).ok_or_else(|| CorpusError::UnknownSplit {
            corpus: self.name.clone(),
            split: name.into(),
            known: self.splits.keys().cloned().collect(),
        })
    }
}

impl FetchedSplit {
    /// Iterates over the lines in `language`.
    ///
    /// # Errors
    /// [`CorpusError::UnknownLanguage`]. Each line may also be an error of its own.
    pub fn lines(&self, language: &str) -> Result<Lines, CorpusError> {
        match self.text.get(language) {
            Some(files) => Ok(read_lines(files)),
            None => Err(CorpusError::UnknownLanguage {
                split: self.name.clone(),
                language: language.into(),
                known: self.text.keys().cloned().collect(),
            }),
        }
    }

    /// Reads all lines in `language`, and checks their number if it is known.
    ///
    /// # Errors
    /// A line cannot be read, or the number of lines is not the expected one.
    pub fn read(&self, language: &str) -> Result<Vec<String>, CorpusError> {
        let lines: Vec<String> = self.lines(language)?.collect::<Result<_, _>>()?;
        match self.lines {
            Some(expected) if expected != lines.len() as u64 => Err(CorpusError::LineCount {
                split: self.name.clone(),
                language: language.into(),
                expected,
                actual: lines.len() as u64,
            }),
            _ => Ok(lines),
        }
    }
}
