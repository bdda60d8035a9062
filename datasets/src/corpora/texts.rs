//! Splits of labelled texts: where the texts and their classes are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use zoo_recipes::untrusted;

use super::error::CorpusError;
use super::files::FileDefinition;
use crate::fetch::FolderMembers;

/// Suffix of the files of a folder of texts.
pub const TEXT_SUFFIX: &str = ".txt";

/// The labelled texts of a split. Texts are bytes, in any encoding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TextsDefinition {
    /// Folders of an archive, one for each class. A text is a file whose name ends in `.txt`; files
    /// are sorted by name.
    Folders {
        /// Name of the archive file.
        file: String,
        /// The classes, in order.
        classes: Vec<ClassFolder>,
    },
    /// Lines of a file: the number of the class, from 0, a space, and the text.
    LabelledLines {
        /// Name of the file.
        file: String,
        /// Names of the classes, by number.
        classes: Vec<String>,
    },
    /// Rows of a file of comma-separated values, whose first row names the columns. A value in
    /// quotation marks may have commas, line feeds, and quotation marks, which are doubled.
    LabelledCsv {
        /// Name of the file.
        file: String,
        /// Name of the column with the number of the class, from 0.
        label: String,
        /// Name of the column with the text.
        text: String,
        /// Names of the classes, by number.
        classes: Vec<String>,
    },
}

/// A folder with the texts of a class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassFolder {
    /// Name of the class.
    pub name: String,
    /// Path inside the archive.
    pub folder: String,
}

impl TextsDefinition {
    /// Name of the split's file.
    pub(super) fn file(&self) -> &String {
        let (Self::Folders { file, .. } | Self::LabelledLines { file, .. } | Self::LabelledCsv { file, .. }) =
            self;
        file
    }

    /// Names of the classes, by number.
    pub fn classes(&self) -> Vec<String> {
        match self {
            Self::Folders { classes, .. } => classes.iter().map(|class| class.name.clone()).collect(),
            Self::LabelledLines { classes, .. } | Self::LabelledCsv { classes, .. } => classes.clone(),
        }
    }

    /// Folders of the archive `file` that the split uses.
    pub(super) fn members_of(&self, file: &str) -> Vec<FolderMembers> {
        match self {
            Self::Folders { file: of, classes } if of == file => classes
                .iter()
                .map(|class| FolderMembers { folder: class.folder.clone(), suffix: TEXT_SUFFIX.into() })
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn check(&self, files: &BTreeMap<String, FileDefinition>) -> Result<(), String> {
        let file = self.file();
        let Some(definition) = files.get(file) else {
            return Err(format!("there is no [file.{file:?}]"));
        };
        match (self, definition.unpack) {
            (Self::Folders { .. }, None) => {
                return Err(format!("{file:?} is not an archive (no `unpack`), so it has no folders"));
            }
            (Self::LabelledLines { .. } | Self::LabelledCsv { .. }, Some(_)) => {
                return Err(format!("{file:?} is an archive; labelled texts are read as they are"));
            }
            _ => {}
        }
        if let Self::Folders { classes, .. } = self {
            for ClassFolder { folder, .. } in classes {
                crate::fetch::check_member(folder).map_err(|why| format!("folder {folder:?} {why}"))?;
            }
        }
        let names = self.classes();
        let different: BTreeSet<&str> = names.iter().map(|name| name.trim()).collect();
        if different.contains("") || different.len() != names.len() || names.len() < 2 {
            return Err("`texts.classes` must be 2 different names at least".into());
        }
        Ok(())
    }
}

/// The labelled texts of a split in a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedTexts {
    /// Name of the split.
    pub split: String,
    /// Expected number of texts, if known.
    pub count: Option<u64>,
    /// Path of the file with the lines, or of the folder with the archive's members.
    pub path: PathBuf,
    /// The definition.
    pub definition: TextsDefinition,
}

/// Texts with their classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledTexts {
    /// The bytes of each text.
    pub texts: Vec<Vec<u8>>,
    /// Class of each text, from 0.
    pub labels: Vec<u32>,
}

impl FetchedTexts {
    /// Reads all texts and their classes, class by class from folders.
    ///
    /// # Errors
    /// [`CorpusError::Text`] if a file or a line cannot be read; [`CorpusError::TextCount`] if the
    /// number of texts is not the expected one.
    pub fn read(&self) -> Result<LabelledTexts, CorpusError> {
        let mut found = LabelledTexts::default();
        match &self.definition {
            TextsDefinition::Folders { classes, .. } => {
                for (label, class) in (0..).zip(classes) {
                    let texts = texts_of_folder(&self.path.join(&class.folder))?;
                    found.labels.extend(texts.iter().map(|_| label));
                    found.texts.extend(texts);
                }
            }
            TextsDefinition::LabelledLines { classes, .. } => {
                for (at, line) in (1..).zip(lines_of(&self.path)?) {
                    let (label, text) = labelled(&line);
                    found.labels.push(self.class(at, label, classes.len())?);
                    found.texts.push(text.to_vec());
                }
            }
            TextsDefinition::LabelledCsv { label, text, classes, .. } => {
                let error = |line, reason| CorpusError::Text { path: self.path.clone(), line, reason };
                let bytes = untrusted::read(&self.path).map_err(|e| error(0, e.to_string()))?;
                let mut rows =
                    rows(&bytes).map_err(|line| error(line, "a quotation mark is open".into()))?.into_iter();
                let (_, names) = rows.next().unwrap_or_default();
                let column = |name: &str| {
                    let at = names.iter().position(|known| known == name.as_bytes());
                    at.ok_or_else(|| error(1, format!("the first row does not name the column {name:?}")))
                };
                let [label, text] = [column(label)?, column(text)?];
                for (line, mut row) in rows {
                    if row.len() != names.len() {
                        return Err(error(
                            line,
                            format!("it has {} values, the first row {}", row.len(), names.len()),
                        ));
                    }
                    found.labels.push(self.class(line, &row[label], classes.len())?);
                    found.texts.push(std::mem::take(&mut row[text]));
                }
            }
        }
        let actual = found.texts.len() as u64;
        match self.count.filter(|expected| *expected != actual) {
            Some(expected) => Err(CorpusError::TextCount { split: self.split.clone(), expected, actual }),
            None => Ok(found),
        }
    }

    /// The number of a class, as a line gives it.
    fn class(&self, line: u64, label: &[u8], classes: usize) -> Result<u32, CorpusError> {
        let number = std::str::from_utf8(label).ok().and_then(|label| label.parse::<u32>().ok());
        number.filter(|number| (*number as usize) < classes).ok_or_else(|| {
            let label = String::from_utf8_lossy(label).into_owned();
            let reason = format!("its class is not one from 0 to {}: {label:?}", classes - 1);
            CorpusError::Text { path: self.path.clone(), line, reason }
        })
    }
}

/// A row of comma-separated values, with the number of its first line.
type Row = (u64, Vec<Vec<u8>>);

/// Splits comma-separated values into rows, and skips empty lines.
///
/// # Errors
/// The number of the line in which a quotation mark is opened and not closed.
fn rows(bytes: &[u8]) -> Result<Vec<Row>, u64> {
    let (mut found, mut row, mut value) = (Vec::new(), Vec::new(), Vec::new());
    // The line in which the open quotation mark is.
    let mut open = None;
    let (mut line, mut begin) = (1, 1);
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (byte, open) {
            (b'"', Some(_)) if rest.peek() == Some(&b'"') => value.extend(rest.next()),
            (b'"', Some(_)) => open = None,
            (b'"', None) if value.is_empty() => open = Some(line),
            (b',', None) => row.push(std::mem::take(&mut value)),
            (b'\n', None) => {
                let last = std::mem::take(&mut value);
                row.push(last.strip_suffix(b"\r").map(<[u8]>::to_vec).unwrap_or(last));
                let whole = std::mem::take(&mut row);
                if whole != [b""] {
                    found.push((begin, whole));
                }
                begin = line + 1;
            }
            _ => value.push(byte),
        }
        line += u64::from(byte == b'\n');
    }
    if let Some(line) = open {
        return Err(line);
    }
    if !(row.is_empty() && value.is_empty()) {
        row.push(value);
        found.push((begin, row));
    }
    Ok(found)
}

/// The contents of the files of a folder whose names end in `.txt`, sorted by name.
///
/// # Errors
/// [`CorpusError::Text`] if the folder or a file cannot be read.
pub fn texts_of_folder(folder: &Path) -> Result<Vec<Vec<u8>>, CorpusError> {
    let error = |path: &Path, error: std::io::Error| CorpusError::Text {
        path: path.into(),
        line: 0,
        reason: error.to_string(),
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| error(folder, e))? {
        let path = entry.map_err(|e| error(folder, e))?.path();
        if path.as_os_str().as_encoded_bytes().ends_with(TEXT_SUFFIX.as_bytes()) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    paths.iter().map(|path| untrusted::read(path).map_err(|e| error(path, e))).collect()
}

/// The lines of a file, without their line feeds.
///
/// # Errors
/// [`CorpusError::Text`] if the file cannot be read.
pub fn lines_of(path: &Path) -> Result<Vec<Vec<u8>>, CorpusError> {
    let bytes = untrusted::read(path).map_err(|error| CorpusError::Text {
        path: path.into(),
        line: 0,
        reason: error.to_string(),
    })?;
    let whole = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    match bytes.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()),
    }
}

/// The first word of a line, and what is behind the space or tab after it.
pub fn labelled(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii();
    match line.iter().position(u8::is_ascii_whitespace) {
        Some(end) => (&line[..end], line[end..].trim_ascii_start()),
        None => (line, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(path: &Path, definition: &str) -> FetchedTexts {
        let definition = toml::from_str(definition).unwrap();
        FetchedTexts { split: "train".into(), count: Some(3), path: path.into(), definition }
    }

    #[test]
    fn texts_come_class_by_class_and_sorted_by_name() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("b/10.txt", b"ten".as_slice()),
            ("b/2.txt", b"two\nlines"),
            ("a/1.txt", b"\xe9"),
            ("a/x.dat", b"no"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let texts = fetched(
            root.path(),
            "kind = 'folders'\nfile = 'x'\nclasses = [{ name = 'B', folder = 'b' }, { name = 'A', folder = 'a' }]",
        );
        let found = texts.read().unwrap();
        assert_eq!(found.labels, [0, 0, 1]);
        assert_eq!(found.texts[..2], [b"ten".to_vec(), b"two\nlines".to_vec()]);
        fs::remove_file(root.path().join("b/2.txt")).unwrap();
        let error = texts.read().unwrap_err().to_string();
        assert!(error.contains("split \"train\" has 2 texts, expected 3"), "{error}");
    }

    #[test]
    fn rows_have_a_label_and_a_text_in_named_columns() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let definition =
            "kind = 'labelled-csv'\nfile = 'x'\nlabel = 'label'\ntext = 'sentence'\nclasses = ['A', 'B']";
        let texts = fetched(file.path(), definition);
        let read = |content: &str| {
            fs::write(file.path(), content).unwrap();
            texts.read()
        };
        let found = read("label,sentence\r\n1,\"a \"\"b\"\", c\nd\"\r\n\n0,plain \"mark\"\n1,last").unwrap();
        assert_eq!(found.labels, [1, 0, 1]);
        let texts: Vec<&str> = found.texts.iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
        assert_eq!(texts, ["a \"b\", c\nd", "plain \"mark\"", "last"]);
        for (content, due) in [
            ("label,sentence\n0,a\n\n2,a\n", "line 4: its class is not one from 0 to 1: \"2\""),
            ("label,sentence\n0,a,b\n", "line 2: it has 3 values, the first row 2"),
            ("label,sentence\n0,a\n1,\"b\nc\n", "line 3: a quotation mark is open"),
            ("label,text\n0,a\n", "line 1: the first row does not name the column \"sentence\""),
            ("", "line 1: the first row does not name the column \"label\""),
        ] {
            let error = read(content).unwrap_err().to_string();
            assert!(error.contains(due), "{error}\n{due}");
        }
    }

    #[test]
    fn lines_begin_with_the_number_of_their_class() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let texts = fetched(file.path(), "kind = 'labelled-lines'\nfile = 'x'\nclasses = ['A', 'B']");
        fs::write(file.path(), b"1 a caf\xe9 \n0\tb\n1\n").unwrap();
        let found = texts.read().unwrap();
        assert_eq!(found.labels, [1, 0, 1]);
        assert_eq!(found.texts, [b"a caf\xe9".to_vec(), b"b".to_vec(), Vec::new()]);
        for wrong in ["2 a", "x a", "", "-1 a"] {
            fs::write(file.path(), format!("0 a\n{wrong}\n1 b")).unwrap();
            let error = texts.read().unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains("from 0 to 1"), "{error}");
        }
    }
}
