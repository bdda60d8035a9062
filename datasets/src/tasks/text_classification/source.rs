//! Where labelled texts come from: a corpus, the user's own files, or a generator.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zoo_recipes::DataBlock;
use zoo_recipes::tasks::text_classification::{LabelledDataSpec, LabelledReaderSpec};

use super::error::LabelledTextError;
use super::marked::marked;
use crate::corpora::{CorpusError, FetchedCorpus, LabelledTexts, labelled, lines_of, texts_of_folder};

/// Texts of a split, and the names of the classes.
pub(super) struct Read {
    pub texts: LabelledTexts,
    pub classes: Vec<String>,
}

/// Reads a split. The `classes` of the training split number those of other splits.
pub(super) fn read(
    data: &LabelledDataSpec,
    corpus: Option<&FetchedCorpus>,
    base: &Path,
    split: &str,
    classes: Option<&[String]>,
) -> Result<Read, LabelledTextError> {
    let none = || LabelledTextError::NoTexts { split: split.to_owned() };
    match (&data.reader, corpus) {
        (LabelledReaderSpec::Corpus {}, None) => Err(none()),
        (LabelledReaderSpec::Corpus {}, Some(corpus)) => {
            let texts = corpus.split(split)?.texts.as_ref().ok_or_else(none)?;
            Ok(Read { texts: texts.read()?, classes: texts.definition.classes() })
        }
        (LabelledReaderSpec::LabelledLines { files }, _) => {
            of_lines(&base.join(own(files, split)?), split, classes)
        }
        (LabelledReaderSpec::TextFolder { folders }, _) => {
            of_folder(&base.join(own(folders, split)?), split, classes)
        }
        (LabelledReaderSpec::MarkedWords { train, valid, test, seed }, _) => {
            let (first, count) = match split {
                "train" => (0, *train),
                "valid" => (*train, *valid),
                "test" => (train.saturating_add(*valid), *test),
                _ => return Err(unknown(split, "train, valid, test".to_owned())),
            };
            Ok(Read {
                texts: marked(data.classes, *seed, first..first.saturating_add(count)),
                classes: (0..data.classes).map(|class| class.to_string()).collect(),
            })
        }
    }
}

fn unknown(split: &str, known: String) -> LabelledTextError {
    LabelledTextError::UnknownSplit { split: split.to_owned(), known }
}

/// The user's file or folder of a split.
fn own<'p>(paths: &'p BTreeMap<String, String>, split: &str) -> Result<&'p String, LabelledTextError> {
    let known = || paths.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    paths.get(split).ok_or_else(|| unknown(split, known()))
}

/// Number of the class `name` among those of training.
fn number(classes: &[String], name: &str, split: &str) -> Result<u32, LabelledTextError> {
    let at = classes.iter().position(|class| class == name);
    let missing = || LabelledTextError::UnknownClass { split: split.to_owned(), class: name.to_owned() };
    at.map(|at| at as u32).ok_or_else(missing)
}

fn of_lines(path: &Path, split: &str, classes: Option<&[String]>) -> Result<Read, LabelledTextError> {
    let mut names = Vec::new();
    let mut texts = LabelledTexts::default();
    for (at, line) in (1..).zip(lines_of(path)?) {
        // A byte order mark would be a part of the first class.
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| at == 1).unwrap_or(&line);
        let (name, text) = labelled(line);
        if name.is_empty() {
            let reason = "it is empty; a line is a class, a space, and a text".to_owned();
            return Err(CorpusError::Text { path: path.into(), line: at, reason }.into());
        }
        names.push(String::from_utf8_lossy(name).into_owned());
        texts.texts.push(text.to_vec());
    }
    let classes = classes.map_or_else(|| in_order(&names), <[String]>::to_vec);
    texts.labels = names.iter().map(|name| number(&classes, name, split)).collect::<Result<_, _>>()?;
    Ok(Read { texts, classes })
}

/// Different names in the order of their numbers if all are numbers, else in their own order.
fn in_order(names: &[String]) -> Vec<String> {
    let different: BTreeSet<&String> = names.iter().collect();
    let mut sorted: Vec<String> = different.into_iter().cloned().collect();
    if sorted.iter().all(|name| name.parse::<u64>().is_ok()) {
        sorted.sort_by_key(|name| name.parse::<u64>().unwrap_or(u64::MAX));
    }
    sorted
}

/// Names of the folders in a folder, sorted.
fn class_folders(folder: &Path) -> Result<Vec<String>, LabelledTextError> {
    let failed =
        |error: std::io::Error| CorpusError::Text { path: folder.into(), line: 0, reason: error.to_string() };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn of_folder(folder: &Path, split: &str, classes: Option<&[String]>) -> Result<Read, LabelledTextError> {
    let names = class_folders(folder)?;
    let classes = classes.map_or_else(|| names.clone(), <[String]>::to_vec);
    let mut texts = LabelledTexts::default();
    for name in names {
        let label = number(&classes, &name, split)?;
        let of_class = texts_of_folder(&folder.join(&name))?;
        texts.labels.extend(of_class.iter().map(|_| label));
        texts.texts.extend(of_class);
    }
    Ok(Read { texts, classes })
}

/// Number of training texts in the recipe's own files; `None` if it names none.
///
/// # Errors
/// A file or folder cannot be read.
pub fn own_texts(data: &LabelledDataSpec, base: &Path) -> Result<Option<usize>, LabelledTextError> {
    match data.reader {
        LabelledReaderSpec::Corpus {} | LabelledReaderSpec::MarkedWords { .. } => Ok(None),
        _ => Ok(Some(read(data, None, base, data.training(), None)?.texts.texts.len())),
    }
}

/// Names of the classes of the training texts in the recipe's own files.
///
/// # Errors
/// A file or folder cannot be read.
pub fn own_classes(data: &LabelledDataSpec, base: &Path) -> Result<Vec<String>, LabelledTextError> {
    Ok(read(data, None, base, data.training(), None)?.classes)
}

/// Path and SHA-256 of every file that the recipe itself names. The hash of a folder covers the
/// classes and the texts in it.
///
/// # Errors
/// A file or folder cannot be read.
pub fn own_stamps(data: &LabelledDataSpec, base: &Path) -> Result<Vec<(String, String)>, LabelledTextError> {
    let stamp = |path: PathBuf, hash: Sha256| (path.display().to_string(), hex::encode(hash.finalize()));
    let mut stamps = Vec::new();
    match &data.reader {
        LabelledReaderSpec::LabelledLines { files } => {
            for path in files.values().map(|file| base.join(file)) {
                let mut hash = Sha256::new();
                hash.update(lines_of(&path)?.join(&b'\n'));
                stamps.push(stamp(path, hash));
            }
        }
        LabelledReaderSpec::TextFolder { folders } => {
            for path in folders.values().map(|folder| base.join(folder)) {
                let mut hash = Sha256::new();
                for name in class_folders(&path)? {
                    for text in texts_of_folder(&path.join(&name))? {
                        hash.update(format!("{name}\n"));
                        hash.update(Sha256::digest(text));
                    }
                }
                stamps.push(stamp(path, hash));
            }
        }
        LabelledReaderSpec::Corpus {} | LabelledReaderSpec::MarkedWords { .. } => {}
    }
    Ok(stamps)
}
