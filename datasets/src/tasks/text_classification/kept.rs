//! Words and classes of a model, kept in a folder, so that a text can be classified without the
//! training texts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zoo_recipes::tasks::text_classification::{LabelledDataSpec, LabelledTokenizerSpec};
use zoo_recipes::{atomic, untrusted};

use super::error::LabelledTextError;
use super::prepared::PreparedTexts;
use super::vocabulary::{KnownWords, LabelledVocabulary};
use crate::text::keras::{Bigrams, WordRanks};
use crate::text::kim::WordNumbers;

/// File of [`Kept`]. It is written last.
const KEPT: &str = "kept.json";
/// File of the words, one a line, by number. Words are bytes without line feeds.
const WORDS: &str = "words.txt";
/// File of the pairs, one a line, by number.
const PAIRS: &str = "pairs.txt";

/// Content of `kept.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Names of the classes.
    classes: Vec<String>,
    /// Positions of the model's input.
    positions: usize,
    /// SHA-256 of classes and positions.
    settings: String,
    /// SHA-256 of `words.txt`.
    words: String,
    /// SHA-256 of `pairs.txt`; absent without pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<String>,
}

fn failed(path: &Path, reason: &dyn Display) -> LabelledTextError {
    LabelledTextError::Kept { path: path.into(), reason: reason.to_string() }
}

fn settings(classes: &[String], positions: usize) -> String {
    digest(serde_json::json!([classes, positions]).to_string().as_bytes())
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

impl PreparedTexts {
    /// Writes words, classes and positions into a folder.
    ///
    /// # Errors
    /// [`LabelledTextError::Kept`] if a file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<(), LabelledTextError> {
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            atomic::write_whole(&path, bytes).map_err(|error| failed(&path, &error))
        };
        let bytes = |words: &[Vec<u8>]| -> Vec<u8> {
            words.iter().flat_map(|word| [&word[..], b"\n"].concat()).collect()
        };
        let (text, bigrams) = match &self.vocabulary {
            LabelledVocabulary::Keras { ranks, bigrams, .. } => (bytes(ranks.words()), bigrams.as_ref()),
            LabelledVocabulary::Kim(numbers) => (bytes(numbers.words()), None),
            LabelledVocabulary::Known(known) => (
                known.words().iter().flat_map(|word| [word.as_str(), "\n"]).collect::<String>().into_bytes(),
                None,
            ),
        };
        write(WORDS, &text)?;
        let pairs = bigrams.map(|bigrams| {
            let lines = bigrams.pairs().iter().map(|[one, other]| format!("{one} {other}\n"));
            lines.collect::<String>()
        });
        if let Some(pairs) = &pairs {
            write(PAIRS, pairs.as_bytes())?;
        }
        let kept = Kept {
            classes: self.classes.clone(),
            positions: self.positions,
            settings: settings(&self.classes, self.positions),
            words: digest(&text),
            pairs: pairs.map(|pairs| digest(pairs.as_bytes())),
        };
        let json = serde_json::to_vec_pretty(&kept).map_err(|error| failed(&folder.join(KEPT), &error))?;
        write(KEPT, &json)
    }

    /// Reads what [`Self::keep`] wrote for the recipe's data. It has no splits. `None` if nothing
    /// was kept.
    ///
    /// # Errors
    /// [`LabelledTextError::Kept`] if a file is missing, was changed, or cannot be read.
    pub fn kept(data: &LabelledDataSpec, folder: &Path) -> Result<Option<Self>, LabelledTextError> {
        let path = folder.join(KEPT);
        if !path.is_file() {
            return Ok(None);
        }
        let json = untrusted::read(&path).map_err(|error| failed(&path, &error))?;
        let kept: Kept = serde_json::from_slice(&json).map_err(|error| failed(&path, &error))?;
        if settings(&kept.classes, kept.positions) != kept.settings {
            return Err(failed(&path, &"it was changed: the SHA-256 of classes and positions is another"));
        }
        let words: Vec<Vec<u8>> = lines(&checked(folder, WORDS, &kept.words)?).map(<[u8]>::to_vec).collect();
        let vocabulary = match data.tokenizer {
            LabelledTokenizerSpec::LanguageModel { ref unknown, .. } => {
                let words = words.into_iter().map(String::from_utf8).collect::<Result<_, _>>();
                let words = words.map_err(|error| failed(&folder.join(WORDS), &error))?;
                let known = KnownWords::new(words, unknown);
                LabelledVocabulary::Known(known.map_err(|unknown| LabelledTextError::NoUnknown { unknown })?)
            }
            LabelledTokenizerSpec::Keras { words: limit, bigrams } => {
                let pairs = match (bigrams, &kept.pairs) {
                    (false, _) => None,
                    (true, Some(expected)) => Some(pairs(folder, expected)?),
                    (true, None) => return Err(failed(&path, &"it has no pairs, and the recipe has them")),
                };
                let bigrams = pairs.map(|pairs| Bigrams::of_pairs(limit.saturating_add(1), pairs));
                LabelledVocabulary::Keras { ranks: WordRanks::of_words(words), limit, bigrams }
            }
            LabelledTokenizerSpec::Kim {} => LabelledVocabulary::Kim(WordNumbers::of_words(words)),
        };
        let Kept { classes, positions, .. } = kept;
        Ok(Some(Self { splits: BTreeMap::new(), classes, vocabulary, positions }))
    }
}

/// The bytes of a kept file.
fn checked(folder: &Path, name: &str, expected: &str) -> Result<Vec<u8>, LabelledTextError> {
    let path = folder.join(name);
    let bytes = untrusted::read(&path).map_err(|error| failed(&path, &error))?;
    match digest(&bytes) == expected {
        true => Ok(bytes),
        false => Err(failed(&path, &format!("it was changed: its SHA-256 is not that in {KEPT}"))),
    }
}

/// The lines of a file in which a line feed ends every line.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

fn pairs(folder: &Path, expected: &str) -> Result<Vec<[u32; 2]>, LabelledTextError> {
    let bytes = checked(folder, PAIRS, expected)?;
    let pair = |(at, line): (usize, &[u8])| {
        let numbers = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' '));
        let numbers = numbers.and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
        numbers
            .ok_or_else(|| failed(&folder.join(PAIRS), &format!("line {} is not a pair of numbers", at + 1)))
    };
    lines(&bytes).enumerate().map(pair).collect()
}
