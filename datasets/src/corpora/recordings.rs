//! Splits of recordings: which files, and where it is said what is said in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::FileDefinition;
use crate::fetch::FolderMembers;

/// The recordings of a split: every file of these folders, sorted by path folder by folder, that `select` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingsDefinition {
    /// Folders of archives, one after another.
    pub folders: Vec<RecordingsFolder>,
    /// How the files' names end: `.wav` or `.flac`.
    pub suffix: String,
    /// Where the text is.
    pub transcripts: Transcripts,
    /// Which of them; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Selection>,
}

/// A folder in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingsFolder {
    /// Name of the file.
    pub file: String,
    /// Path inside it; recordings may lie at any depth below.
    pub folder: String,
}

/// Where it is said what is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Transcripts {
    /// In the name of the file, whose parts `_` separates.
    FileName {
        /// What a part of it says: the words that the text has for it.
        words: BTreeMap<String, String>,
        /// What its parts are, in their order; absent: all of them are words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<NameField>,
    },
    /// In `*.trans.txt` beside the recordings: a line is a name without its ending, a space, and the text. What stands before the
    /// name's first `-` is the speaker (LibriSpeech).
    TransTxt,
    /// In a table in the folder itself: a line is a name without its ending, the text as it was printed, and the text as it is read, between
    /// them `|` (LJSpeech).
    Metadata {
        /// The table's name.
        file: String,
    },
}

/// What a part of a file's name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameField {
    /// A word that is said.
    Word,
    /// Who says it.
    Speaker,
    /// Which of the recordings that say this it is.
    Number,
}

/// Some recordings of those there are. Names are without their ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Selection {
    /// Of all, sorted, that at `first` (counted from 0), and from there on each that is `every` places further.
    Places {
        /// The first.
        first: u32,
        /// From one to the next.
        every: u32,
    },
    /// Those whose number is in this range, both ends included.
    Numbers {
        /// The least.
        from: u32,
        /// The greatest.
        to: u32,
    },
    /// Those with these names.
    Names {
        /// The names.
        names: BTreeSet<String>,
    },
    /// Those whose name sorts from this one to that one, both included.
    Between {
        /// The first name.
        from: String,
        /// The last name.
        to: String,
    },
    /// Those that none of these splits takes; they are of the same folders.
    NotIn {
        /// The splits.
        splits: Vec<String>,
    },
    /// Those that none of these takes: what `not-in` becomes.
    NoneOf {
        /// What the splits select.
        of: Vec<Selection>,
    },
}

impl Selection {
    /// Whether it takes the recording at this place of all, sorted, with this name and number.
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

/// Puts what the named splits select in the place of every `not-in`. `splits` are the recordings of each split.
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
    /// The folders, in the order of [`RecordingsDefinition::folders`].
    pub folders: Vec<PathBuf>,
    /// What they hold.
    pub definition: RecordingsDefinition,
}

/// How the names of [`Transcripts::TransTxt`] end.
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

    /// What is to be unpacked of an archive.
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
