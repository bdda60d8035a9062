//! The text of each split of a recipe.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use zoo_recipes::DataBlock;
use zoo_recipes::tasks::language_modelling::{LanguageDataSpec, LanguageReaderSpec, VocabularySplits};

use super::babble::babble;
use super::error::LanguageDataError;
use crate::corpora::{FetchedCorpus, TextFormat};
use crate::text::open_text;

/// Bytes that a text may have.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// The split that `training_share` cuts.
pub const WHOLE: &str = "text";

/// The split that lists the vocabulary.
pub(super) const LIST: &str = "vocabulary";

/// The name of that split, if the recipe's vocabulary is a list.
fn list(data: &LanguageDataSpec) -> Option<String> {
    (data.vocabulary.of == VocabularySplits::List).then(|| LIST.to_owned())
}

/// The splits of a recipe: the one to train on, and those of the evaluation sets. `valid` comes
/// second, the others follow by name.
pub(super) fn split_names(data: &LanguageDataSpec) -> Vec<String> {
    let mut others: Vec<&str> = data.eval.values().map(|set| set.split.as_str()).collect();
    others.sort_by_key(|name| (*name != "valid", *name));
    let mut names = vec![data.training().to_owned()];
    for name in others {
        if names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The splits of the corpus or of the files that a recipe reads.
pub fn fetched_names(data: &LanguageDataSpec) -> Vec<String> {
    match data.reader {
        LanguageReaderSpec::Text { training_share: Some(_), .. } => vec![WHOLE.to_owned()],
        _ => split_names(data).into_iter().chain(list(data)).collect(),
    }
}

/// Reads the text of all splits. `base` is the folder that the recipe's paths are relative to.
pub(super) fn texts(
    data: &LanguageDataSpec,
    corpus: Option<&FetchedCorpus>,
    base: &Path,
) -> Result<BTreeMap<String, String>, LanguageDataError> {
    match &data.reader {
        LanguageReaderSpec::Babble { words, train, valid, test, seed } => {
            let [first, second] = [*train, train.saturating_add(*valid)];
            let parts = [("train", 0, first), ("valid", first, second), ("test", second, second + test)];
            let of = |(name, from, to): (&str, u32, u32)| (name.to_owned(), babble(*words, *seed, from, to));
            Ok(parts.into_iter().map(of).collect())
        }
        LanguageReaderSpec::Text { files, training_share } => {
            let read = |name: &str| match corpus {
                Some(corpus) => of_corpus(corpus, name),
                None => match files.get(name) {
                    Some(file) => read_text(&base.join(file)),
                    None => Err(unknown(name, files.keys())),
                },
            };
            match training_share {
                Some(share) => Ok(cut(&read(WHOLE)?, *share)),
                None => {
                    let names = split_names(data).into_iter().chain(list(data));
                    names.map(|name| Ok((name.clone(), read(&name)?))).collect()
                }
            }
        }
    }
}

pub(super) fn unknown<'n>(split: &str, known: impl Iterator<Item = &'n String>) -> LanguageDataError {
    let known: Vec<&str> = known.map(String::as_str).collect();
    LanguageDataError::UnknownSplit { split: split.to_owned(), known: known.join(", ") }
}

/// Cuts a text after a share of its characters, rounded down.
fn cut(text: &str, share: f64) -> BTreeMap<String, String> {
    let characters = text.chars().count();
    let first = (characters as f64 * share) as usize;
    let byte = text.char_indices().nth(first).map_or(text.len(), |(byte, _)| byte);
    let (train, valid) = text.split_at(byte);
    BTreeMap::from([("train".to_owned(), train.to_owned()), ("valid".to_owned(), valid.to_owned())])
}

/// The files of a split of a corpus in one language, joined. Of labelled texts each one is a line.
fn of_corpus(corpus: &FetchedCorpus, name: &str) -> Result<String, LanguageDataError> {
    let missing = || LanguageDataError::NoText { split: name.to_owned() };
    let split = corpus.split(name)?;
    if let Some(texts) = &split.texts {
        let line = |text: Vec<u8>| String::from_utf8_lossy(&text).replace(['\n', '\r'], " ") + "\n";
        return Ok(texts.read()?.texts.into_iter().map(line).collect());
    }
    let mut languages = split.text.values();
    let files = languages.next().ok_or_else(missing)?;
    if languages.next().is_some() || files.iter().any(|file| file.format != TextFormat::Lines) {
        return Err(missing());
    }
    files.iter().map(|file| read_text(&file.path)).collect()
}

/// Reads a text in UTF-8, plain or gzipped.
pub(super) fn read_text(file: &Path) -> Result<String, LanguageDataError> {
    let io = |source| LanguageDataError::Io { file: file.to_owned(), source };
    let mut text = String::new();
    let reader = open_text(file).map_err(io)?;
    reader.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(io)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(LanguageDataError::TooLarge { file: file.to_owned(), limit: MOST_BYTES }),
        false => Ok(text),
    }
}
