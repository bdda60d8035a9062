//! Definition of a corpus, read from TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::error::CorpusError;
use super::files::{ByteCount, FileDefinition};
use super::pictures::PicturesDefinition;
use super::preparation::Preparation;
use super::recordings::RecordingsDefinition;
use super::texts::TextsDefinition;
use crate::fetch::{DataHome, Wanted};

/// The built-in definitions of `corpora/`, by file stem.
static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/corpora.rs"));

/// A corpus: files, splits, licence.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusDefinition {
    /// Name of the corpus, of its definition file and of its folder in the home.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// URL of its authors' description.
    pub homepage: String,
    /// Licence, shown before the fetch.
    pub licence: Licence,
    /// Files by name.
    #[serde(rename = "file")]
    pub files: BTreeMap<String, FileDefinition>,
    /// Splits by name.
    #[serde(rename = "split")]
    pub splits: BTreeMap<String, SplitDefinition>,
    /// How the corpus was prepared for the published scores. If absent, the recipe alone decides.
    #[serde(default)]
    pub preparation: Option<Preparation>,
}

/// Terms of use, and their source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    /// The terms in one or two sentences.
    pub terms: String,
    /// URL of the terms.
    pub source: String,
}

/// A split: for each language, the texts to concatenate; or recordings, pictures or labelled texts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitDefinition {
    /// Expected number of lines, recordings, pictures or labelled texts, if known.
    #[serde(default)]
    pub lines: Option<u64>,
    /// Format of its text files.
    #[serde(default)]
    pub format: TextFormat,
    /// Files by language code.
    #[serde(default)]
    pub text: BTreeMap<String, Vec<TextPart>>,
    /// Recordings with their transcripts.
    #[serde(default)]
    pub recordings: Option<RecordingsDefinition>,
    /// Pictures with their classes.
    #[serde(default)]
    pub pictures: Option<PicturesDefinition>,
    /// Texts with their classes.
    #[serde(default)]
    pub texts: Option<TextsDefinition>,
}

/// Format of a text file. A gzipped file is recognised and decompressed while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    /// One example per line; lines are separated by line feeds.
    #[default]
    Lines,
    /// SGML of the WMT test sets, read as sacreBLEU does: one `<seg …>` per line, white space
    /// collapsed, entities kept.
    Sgm,
    /// The same SGML files, read as Moses' `input-from-sgm.perl` does: the text between `<seg …>`
    /// and `</seg>`, at any position and over several lines; ASCII white space collapsed, entities
    /// and other spaces kept.
    MosesSgm,
}

/// One file of a split's text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPart {
    /// Name of the file.
    pub file: String,
    /// Path inside the file, if it is an archive.
    #[serde(default)]
    pub member: Option<String>,
}

impl CorpusDefinition {
    /// Names of the built-in corpora, sorted.
    pub fn names() -> Vec<&'static str> {
        EMBEDDED.iter().map(|(name, _)| *name).collect()
    }

    /// The built-in corpus called `name`.
    ///
    /// # Errors
    /// [`CorpusError::Unknown`], with the known names.
    pub fn find(name: &str) -> Result<Self, CorpusError> {
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, &format!("corpora/{name}.toml")),
            None => Err(CorpusError::Unknown {
                name: name.into(),
                known: Self::names().into_iter().map(Into::into).collect(),
            }),
        }
    }

    /// Reads a definition from a user's file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid definition.
    pub fn load(path: &Path) -> Result<Self, CorpusError> {
        let origin = path.display().to_string();
        match zoo_recipes::untrusted::read_to_string(path) {
            Ok(text) => Self::parse(&text, &origin),
            Err(e) => Err(CorpusError::Definition { origin, reason: format!("it cannot be read: {e}") }),
        }
    }

    /// Parses a definition. `origin` is its name in errors.
    ///
    /// # Errors
    /// [`CorpusError::Definition`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, CorpusError> {
        let error = |reason: String| CorpusError::Definition { origin: origin.into(), reason };
        let mut definition: Self =
            toml::from_str(text).map_err(|e| error(e.to_string().trim_end().into()))?;
        let splits = definition.splits.iter_mut();
        let recordings = splits.filter_map(|(name, split)| Some((name.as_str(), split.recordings.as_mut()?)));
        super::recordings::resolve(recordings.collect()).map_err(error)?;
        definition.check().map_err(error)?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        for name in [&self.name].into_iter().chain(self.files.keys()) {
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
            if name.is_empty() || name.starts_with('.') || !plain {
                return Err(format!("{name:?} cannot be a folder's name: letters, digits, `.`, `_`, `-`"));
            }
        }
        for (what, text) in [
            ("licence.terms", &self.licence.terms),
            ("licence.source", &self.licence.source),
            ("summary", &self.summary),
        ] {
            if text.trim().is_empty() {
                return Err(format!("`{what}` is empty; if nobody states it, say so"));
            }
        }
        if self.splits.is_empty() {
            return Err("it has no split".into());
        }
        let mut used = BTreeSet::new();
        for (name, split) in &self.splits {
            let contents: Vec<&str> = [
                ("text", !split.text.is_empty()),
                ("recordings", split.recordings.is_some()),
                ("pictures", split.pictures.is_some()),
                ("labelled texts", split.texts.is_some()),
            ]
            .into_iter()
            .filter_map(|(content, there)| there.then_some(content))
            .collect();
            match contents[..] {
                [_] => {}
                [] => {
                    return Err(format!(
                        "split {name:?} has neither text, recordings, pictures nor labelled texts"
                    ));
                }
                [one, other, ..] => return Err(format!("split {name:?} has both {one} and {other}")),
            }
            if let Some(recordings) = &split.recordings {
                recordings.check(&self.files).map_err(|why| format!("split {name:?}: {why}"))?;
                used.extend(recordings.folders.iter().map(|folder| &folder.file));
            }
            if let Some(pictures) = &split.pictures {
                pictures.check(&self.files).map_err(|why| format!("split {name:?}: {why}"))?;
                used.extend(pictures.files());
            }
            if let Some(texts) = &split.texts {
                texts.check(&self.files).map_err(|why| format!("split {name:?}: {why}"))?;
                used.insert(texts.file());
            }
            for (language, parts) in &split.text {
                if parts.is_empty() {
                    return Err(format!("split {name:?} has an empty list of files for {language:?}"));
                }
                for part in parts {
                    let of = format!("split {name:?}, {language:?}");
                    let Some(file) = self.files.get(&part.file) else {
                        return Err(format!("{of}: there is no [file.{:?}]", part.file));
                    };
                    match (&part.member, file.unpack) {
                        (Some(member), Some(_)) => crate::fetch::check_member(member)
                            .map_err(|why| format!("{of}: member {member:?} {why}"))?,
                        (None, None) => {}
                        (Some(_), None) => {
                            return Err(format!(
                                "{of}: {:?} is not an archive (no `unpack`), so it has no members",
                                part.file
                            ));
                        }
                        (None, Some(_)) => {
                            return Err(format!("{of}: {:?} is an archive: name the `member`", part.file));
                        }
                    }
                    used.insert(&part.file);
                }
            }
        }
        if let Some(unused) = self.files.keys().find(|f| !used.contains(f)) {
            return Err(format!("no split uses [file.{unused:?}]"));
        }
        self.preparation.iter().try_for_each(|preparation| {
            preparation.check(
                |split| self.splits.contains_key(split),
                |split, language| self.splits.get(split).is_some_and(|s| s.text.contains_key(language)),
            )
        })
    }

    /// Names of the files that `splits` use.
    ///
    /// # Errors
    /// [`CorpusError::UnknownSplit`].
    pub fn files_of(&self, splits: &[&str]) -> Result<BTreeSet<&str>, CorpusError> {
        let mut files = BTreeSet::new();
        for split in splits {
            let definition = self.splits.get(*split).ok_or_else(|| CorpusError::UnknownSplit {
                corpus: self.name.clone(),
                split: (*split).into(),
                known: self.splits.keys().cloned().collect(),
            })?;
            files.extend(definition.text.values().flatten().map(|part| part.file.as_str()));
            let recordings = definition.recordings.iter().flat_map(|recordings| &recordings.folders);
            files.extend(recordings.map(|folder| folder.file.as_str()));
            let pictures = definition.pictures.iter().flat_map(PicturesDefinition::files);
            files.extend(pictures.map(String::as_str));
            files.extend(definition.texts.iter().map(|texts| texts.file().as_str()));
        }
        Ok(files)
    }

    /// Members of the archive `file` that any split uses.
    pub(super) fn members_of(&self, file: &str) -> Wanted {
        let parts = self.splits.values().flat_map(|s| s.text.values().flatten());
        let recordings = self.splits.values().filter_map(|split| split.recordings.as_ref());
        let recordings = recordings.flat_map(|recordings| recordings.members_of(file));
        let texts = self.splits.values().filter_map(|split| split.texts.as_ref());
        let texts = texts.flat_map(|texts| texts.members_of(file));
        Wanted {
            named: parts.filter(|p| p.file == file).filter_map(|p| p.member.clone()).collect(),
            folders: recordings.chain(texts).collect(),
        }
    }

    /// Size of all downloads in bytes.
    pub fn download_bytes(&self) -> ByteCount {
        let mut count = ByteCount::default();
        self.files.values().for_each(|f| count.add(f.source.size));
        count
    }

    /// Size in bytes of the files that `home` lacks. Checks whether they exist, but verifies
    /// nothing.
    pub fn bytes_to_download(&self, home: &DataHome) -> ByteCount {
        let mut count = ByteCount::default();
        for file in self.files.values() {
            let there = file.source.place().is_ok_and(|place| home.download(&place).is_file());
            if !there {
                count.add(file.source.size);
            }
        }
        count
    }

    /// Size on disk in bytes: the downloads and their unpacked members.
    pub fn disk_bytes(&self) -> ByteCount {
        let mut count = self.download_bytes();
        for file in self.files.values().filter(|f| f.unpack.is_some()) {
            count.add(file.unpacked_size);
        }
        count
    }
}
