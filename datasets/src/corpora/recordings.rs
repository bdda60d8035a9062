//! Splits of recordings: their files and transcripts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::FileDefinition;
use crate::fetch::FolderMembers;

/// The recordings of a split: every file of these folders that `select` takes, sorted by path
/// within each folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingsDefinition {
    /// Folders of archives, in order.
    pub folders: Vec<RecordingsFolder>,
    /// Suffix of the files' names: `.wav` or `.flac`.
    pub suffix: String,
    /// Source of the transcripts.
    pub transcripts: Transcripts,
    /// Selected recordings. If absent, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Selection>,
}

/// A folder in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingsFolder {
    /// Name of the archive file.
    pub file: String,
    /// Path inside the archive. Recordings may be at any depth below it.
    pub folder: String,
}

/// Source of the transcripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Transcripts {
    /// In the file's name, whose parts are separated by `_`.
    FileName {
        /// Words of the transcript by part of the name.
        words: BTreeMap<String, String>,
        /// Meaning of the parts, in order. If absent, all parts are words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<NameField>,
    },
    /// In `*.trans.txt` beside the recordings. A line is a name without its ending, a space, and
    /// the text. The part of the name before the first `-` is the speaker (LibriSpeech).
    TransTxt,
    /// In a table in the folder itself. A line is a name without its ending, the text as printed,
    /// and the text as read aloud, separated by `|` (LJSpeech).
    Metadata {
        /// File name of the table.
        file: String,
    },
}

/// Meaning of one part of a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameField {
    /// A spoken word.
    Word,
    /// The speaker.
    Speaker,
    /// Number of the recording among those of the same words.
    Number,
}

/// A selection of recordings. Names have no ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Selection {
    /// Of all recordings, sorted: the one at `first` (counted from 0), then every `every`-th one
    /// after it.
    Places {
        /// Place of the first recording.
        first: u32,
        /// Distance between two selected recordings.
        every: u32,
    },
    /// Recordings whose number is in this range, both ends included.
    Numbers {
        /// Smallest number.
        from: u32,
        /// Largest number.
        to: u32,
    },
    /// Recordings with these names.
    Names {
        /// The names.
        names: BTreeSet<String>,
    },
    /// Recordings whose names sort between these two, both included.
    Between {
        /// The first name.
        from: String,
        /// The last name.
        to: String,
    },
    /// Recordings that none of these splits takes. The splits must have the same folders.
    NotIn {
        /// The splits.
        splits: Vec<String>,
    },
    /// Recordings that none of these selections takes; the resolved form of `not-in`.
    NoneOf {
        /// Selections of the splits.
        of: Vec<Selection>,
    },
}

impl Selection {
    /// Whether it takes the recording at place `place` of all, sorted, with this name and number.
    pub(crate) fn takes(&self, place: u64, name: &str, number: Option<u32>) -> bool {
        match self {
            Self::Places { first, every } => {
                let behind = place.checked_sub(u64::from(*first));
                behind.is_some_and(|behind| behind.is_multiple_of(u64::from((*every).max(1))))
            }
            Self::Numbers { from, to } => number.is_some_and(|number| (from..=to).contains(&&number)),
            Self::Names { names } => names.contains(name),
            Self::Between { from, to } => (from.as_str()..=to.as_str()).contains(&name),
            Self::NoneOf { of } => !of.iter().any(|selection| selection.takes(place, name, number)),
            Self::NotIn { .. } => false,
        }
    }

    fn is_by_numbers(&self) -> bool {
        match self {
            Self::Numbers { .. } => true,
            Self::NoneOf { of } => of.iter().any(Self::is_by_numbers),
            _ => false,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Places { every: 0, .. } => Err("`recordings.select.every` is 0".into()),
            Self::Numbers { from, to } if from > to => {
                Err(format!("`recordings.select` takes no number from {from} to {to}"))
            }
            Self::Between { from, to } if from > to => {
                Err(format!("`recordings.select` takes no name from {from:?} to {to:?}"))
            }
            Self::Names { names } if names.is_empty() => Err("`recordings.select.names` is empty".into()),
            Self::NoneOf { of } => of.iter().try_for_each(Self::check),
            _ => Ok(()),
        }
    }
}

/// Replaces every `not-in` by the selections of the named splits. `splits` holds the recordings of
/// each split.
pub(super) fn resolve(splits: BTreeMap<&str, &mut RecordingsDefinition>) -> Result<(), String> {
    let known: BTreeMap<String, RecordingsDefinition> =
        splits.iter().map(|(name, recordings)| ((*name).to_owned(), (**recordings).clone())).collect();
    for (name, recordings) in splits {
        let Some(Selection::NotIn { splits }) = &recordings.select else { continue };
        let mut of = Vec::new();
        for other in splits {
            let selected = known.get(other).filter(|selected| selected.folders == recordings.folders);
            match selected.map(|selected| &selected.select) {
                Some(Some(Selection::NotIn { .. }) | None) | None => {
                    return Err(format!(
                        "split {name:?}: {other:?} is no split that selects some recordings of the same folders"
                    ));
                }
                Some(Some(selection)) => of.push(selection.clone()),
            }
        }
        recordings.select = Some(Selection::NoneOf { of });
    }
    Ok(())
}

/// The recordings of a split in a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedRecordings {
    /// Paths of the folders, in the order of [`RecordingsDefinition::folders`].
    pub folders: Vec<PathBuf>,
    /// Definition of the split.
    pub definition: RecordingsDefinition,
}

/// Suffix of the file names of [`Transcripts::TransTxt`].
pub(crate) const TRANS_TXT: &str = ".trans.txt";

impl RecordingsDefinition {
    pub(super) fn check(&self, files: &BTreeMap<String, FileDefinition>) -> Result<(), String> {
        if self.folders.is_empty() {
            return Err("`recordings.folders` is empty".into());
        }
        for RecordingsFolder { file, folder } in &self.folders {
            match files.get(file) {
                None => return Err(format!("there is no [file.{file:?}]")),
                Some(FileDefinition { unpack: None, .. }) => {
                    return Err(format!("{file:?} is not an archive (no `unpack`), so it has no folders"));
                }
                Some(_) => {}
            }
            crate::fetch::check_member(folder).map_err(|why| format!("folder {folder:?} {why}"))?;
        }
        if !self.suffix.starts_with('.') || self.suffix.len() < 2 {
            return Err(format!("`recordings.suffix` is {:?}, not an ending such as \".wav\"", self.suffix));
        }
        let numbers = self.select.as_ref().is_some_and(Selection::is_by_numbers);
        match &self.transcripts {
            Transcripts::FileName { words, fields } => {
                if words.is_empty() {
                    return Err("`recordings.transcripts.words` is empty".into());
                }
                if let Some((part, _)) = words.iter().find(|(_, words)| words.trim().is_empty()) {
                    return Err(format!("`recordings.transcripts.words.{part}` says nothing"));
                }
                let count = |field| fields.iter().filter(|own| **own == field).count();
                if !fields.is_empty() && count(NameField::Word) == 0 {
                    return Err("`recordings.transcripts.fields` has no `word`".into());
                }
                if count(NameField::Speaker) > 1 || count(NameField::Number) > 1 {
                    return Err("`recordings.transcripts.fields` has two of a kind".into());
                }
                if numbers && count(NameField::Number) == 0 {
                    return Err("`recordings.select` is by numbers, which the names do not have".into());
                }
            }
            Transcripts::TransTxt | Transcripts::Metadata { .. } if numbers => {
                return Err("`recordings.select` is by numbers, which the names do not have".into());
            }
            Transcripts::Metadata { file } => {
                crate::fetch::check_member(file)
                    .map_err(|why| format!("`recordings.transcripts.file` {file:?} {why}"))?;
            }
            Transcripts::TransTxt => {}
        }
        self.select.as_ref().map_or(Ok(()), Selection::check)
    }

    /// Folders of the archive `file` whose members must be unpacked.
    pub(super) fn members_of(&self, file: &str) -> Vec<FolderMembers> {
        let mut suffixes = vec![self.suffix.as_str()];
        match &self.transcripts {
            Transcripts::TransTxt => suffixes.push(TRANS_TXT),
            Transcripts::Metadata { file } => suffixes.push(file),
            Transcripts::FileName { .. } => {}
        }
        let members = |folder: &RecordingsFolder| {
            let folder = folder.folder.clone();
            suffixes
                .iter()
                .map(move |suffix| FolderMembers { folder: folder.clone(), suffix: (*suffix).into() })
        };
        self.folders.iter().filter(|folder| folder.file == file).flat_map(members).collect()
    }
}
