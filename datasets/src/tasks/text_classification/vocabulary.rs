//! From a text to the numbers that the model reads.

use std::collections::HashMap;
use std::path::Path;

use zoo_recipes::tasks::text_classification::{
    LabelledLengthSpec, LabelledRules, LabelledTokenizerSpec, NO_WORD,
};

use super::error::LabelledTextError;
use crate::text::kept_units::{self, KeptUnitsError};
use crate::text::keras::{self, Bigrams, WordRanks};
use crate::text::kim::{self, WordNumbers};
use crate::text::reviews::{self, Kind};

/// A text as its words.
pub(super) type Words = Vec<Vec<u8>>;

/// Words with their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelledVocabulary {
    /// Keras's numbers.
    Keras {
        /// Ranks of all training words.
        ranks: WordRanks,
        /// Number of rows for words.
        limit: u32,
        /// Pairs, if they are appended.
        bigrams: Option<Bigrams>,
    },
    /// Kim's words by appearance.
    Kim(WordNumbers),
    /// Those of a language model.
    Known(KnownWords),
}

/// Words that a language model reads, with their numbers from 0 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWords {
    words: Vec<String>,
    numbers: HashMap<String, u32>,
    unknown: u32,
}

impl KnownWords {
    /// Words by number. Of equal words, the later number is used.
    ///
    /// # Errors
    /// The words lack the unknown word; the error is that word.
    pub fn new(words: Vec<String>, unknown: &str) -> Result<Self, String> {
        let numbers: HashMap<String, u32> = words.iter().cloned().zip(0..).collect();
        let unknown = *numbers.get(unknown).ok_or_else(|| unknown.to_owned())?;
        Ok(Self { words, numbers, unknown })
    }

    /// Words that the run of a language model kept in a folder; `None` if it kept none.
    ///
    /// # Errors
    /// The file cannot be read or was changed, or it lacks the tokenizer's unknown word.
    pub fn of_run(
        tokenizer: &LabelledTokenizerSpec,
        folder: &Path,
    ) -> Result<Option<Self>, LabelledTextError> {
        let LabelledTokenizerSpec::LanguageModel { unknown, .. } = tokenizer else { return Ok(None) };
        let kept = kept_units::read(folder);
        let kept =
            kept.map_err(|KeptUnitsError { path, reason }| LabelledTextError::Kept { path, reason })?;
        let known =
            |words| Self::new(words, unknown).map_err(|unknown| LabelledTextError::NoUnknown { unknown });
        kept.map(known).transpose()
    }

    /// The words by number.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

/// The words of a text. A tokenizer of known words needs them.
pub(super) fn words(tokenizer: &LabelledTokenizerSpec, known: Option<&KnownWords>, text: &[u8]) -> Words {
    match tokenizer {
        LabelledTokenizerSpec::Keras { .. } => keras::words(text),
        LabelledTokenizerSpec::Kim {} => kim::words(text),
        LabelledTokenizerSpec::LanguageModel { rules, .. } => {
            let kind = match rules {
                LabelledRules::Reviews => Kind::Review,
                LabelledRules::Sentences => Kind::Sentence,
            };
            let is_known = |word: &str| known.is_some_and(|known| known.numbers.contains_key(word));
            let words = reviews::words(&String::from_utf8_lossy(text), kind, is_known);
            words.into_iter().map(String::into_bytes).collect()
        }
    }
}

/// Number of padding in the texts of a tokenizer.
pub(super) fn padding(tokenizer: &LabelledTokenizerSpec) -> u32 {
    match tokenizer {
        LabelledTokenizerSpec::Keras { .. } | LabelledTokenizerSpec::Kim {} => 0,
        LabelledTokenizerSpec::LanguageModel { .. } => NO_WORD,
    }
}

impl LabelledVocabulary {
    /// The vocabulary of some training texts, or the known one. `others` are the texts of other
    /// splits.
    ///
    /// # Errors
    /// [`LabelledTextError::NoWords`] if the tokenizer is one of known words and there are none.
    pub(super) fn new<'t>(
        tokenizer: &LabelledTokenizerSpec,
        known: Option<KnownWords>,
        training: &'t [Words],
        others: impl Iterator<Item = &'t Words>,
    ) -> Result<Self, LabelledTextError> {
        Ok(match *tokenizer {
            LabelledTokenizerSpec::LanguageModel { .. } => {
                Self::Known(known.ok_or(LabelledTextError::NoWords)?)
            }
            LabelledTokenizerSpec::Keras { words: limit, bigrams } => {
                let ranks = WordRanks::new(training.iter().map(Vec::as_slice));
                let bigrams = bigrams.then(|| {
                    let texts: Vec<Vec<u32>> =
                        training.iter().map(|text| ranks.numbers(text, limit)).collect();
                    // Keras's example leaves one number between words and pairs.
                    Bigrams::new(limit.saturating_add(1), texts.iter().map(Vec::as_slice))
                });
                Self::Keras { ranks, limit, bigrams }
            }
            LabelledTokenizerSpec::Kim {} => {
                let mut numbers = WordNumbers::default();
                training.iter().chain(others).for_each(|text| numbers.add(text));
                Self::Kim(numbers)
            }
        })
    }

    /// The words of a language model, if the vocabulary is one.
    pub fn known(&self) -> Option<&KnownWords> {
        match self {
            Self::Known(known) => Some(known),
            Self::Keras { .. } | Self::Kim(_) => None,
        }
    }

    /// Rows of the model's embedding.
    pub fn rows(&self) -> usize {
        match self {
            Self::Keras { limit, bigrams, .. } => bigrams.as_ref().map_or(*limit, Bigrams::end) as usize,
            Self::Kim(numbers) => numbers.words().len() + 1,
            Self::Known(known) => known.words.len(),
        }
    }

    /// The words of some numbers, with spaces between them. Padding, starts of texts and pairs are
    /// left out; a word that is too rare is `...`.
    pub fn text(&self, numbers: &[u32]) -> String {
        let word = |number: &u32| match self {
            Self::Keras { ranks, limit, .. } => ranks.word(*number).filter(|_| number < limit),
            Self::Kim(numbers) => numbers.word(*number),
            Self::Known(known) => known.words.get(*number as usize).map(String::as_bytes),
        };
        let words: Vec<_> = numbers.iter().filter_map(word).map(String::from_utf8_lossy).collect();
        words.join(" ")
    }

    /// Numbers of the words of a text.
    pub(super) fn numbers(&self, words: &[Vec<u8>]) -> Vec<u32> {
        match self {
            Self::Keras { ranks, limit, bigrams } => {
                let mut numbers = ranks.numbers(words, *limit);
                bigrams.iter().for_each(|bigrams| bigrams.append(&mut numbers));
                numbers
            }
            Self::Kim(numbers) => numbers.numbers(words),
            Self::Known(known) => {
                let number =
                    |word: &Vec<u8>| std::str::from_utf8(word).ok().and_then(|word| known.numbers.get(word));
                words.iter().map(|word| number(word).copied().unwrap_or(known.unknown)).collect()
            }
        }
    }
}

/// Appends a text of exactly `positions` numbers: padded or cut as the recipe says. `padding` is
/// the number of padding.
pub(super) fn fit(
    length: LabelledLengthSpec,
    text: &[u32],
    positions: usize,
    padding: u32,
    to: &mut Vec<u32>,
) {
    let end = to.len() + positions;
    match length {
        LabelledLengthSpec::Last { .. } => {
            let last = &text[text.len().saturating_sub(positions)..];
            to.resize(end - last.len(), padding);
            to.extend_from_slice(last);
        }
        LabelledLengthSpec::Longest { margin } => {
            let front = (margin as usize).min(positions);
            to.resize(to.len() + front, padding);
            to.extend(text.iter().take(positions - front));
            to.resize(end, padding);
        }
    }
}
