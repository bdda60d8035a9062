//! From a text to the numbers that the model reads.

use zoo_recipes::tasks::text_classification::{LabelledLengthSpec, LabelledTokenizerSpec};

use crate::text::keras::{self, Bigrams, WordRanks};
use crate::text::kim::{self, WordNumbers};

/// Number of padding.
const PADDING: u32 = 0;

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
}

/// The words of a text.
pub(super) fn words(tokenizer: &LabelledTokenizerSpec, text: &[u8]) -> Words {
    match tokenizer {
        LabelledTokenizerSpec::Keras { .. } => keras::words(text),
        LabelledTokenizerSpec::Kim {} => kim::words(text),
    }
}

impl LabelledVocabulary {
    /// The vocabulary of some training texts. `others` are the texts of other splits.
    pub(super) fn new<'t>(
        tokenizer: &LabelledTokenizerSpec,
        training: &'t [Words],
        others: impl Iterator<Item = &'t Words>,
    ) -> Self {
        match *tokenizer {
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
        }
    }

    /// Rows of the model's embedding.
    pub fn rows(&self) -> usize {
        match self {
            Self::Keras { limit, bigrams, .. } => bigrams.as_ref().map_or(*limit, Bigrams::end) as usize,
            Self::Kim(numbers) => numbers.words().len() + 1,
        }
    }

    /// The words of some numbers, with spaces between them. Padding, starts of texts and pairs are
    /// left out; a word that is too rare is `...`.
    pub fn text(&self, numbers: &[u32]) -> String {
        let word = |number: &u32| match self {
            Self::Keras { ranks, limit, .. } => ranks.word(*number).filter(|_| number < limit),
            Self::Kim(numbers) => numbers.word(*number),
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
        }
    }
}

/// Appends a text of exactly `positions` numbers: padded or cut as the recipe says.
pub(super) fn fit(length: LabelledLengthSpec, text: &[u32], positions: usize, to: &mut Vec<u32>) {
    let end = to.len() + positions;
    match length {
        LabelledLengthSpec::Last { .. } => {
            let last = &text[text.len().saturating_sub(positions)..];
            to.resize(end - last.len(), PADDING);
            to.extend_from_slice(last);
        }
        LabelledLengthSpec::Longest { margin } => {
            let front = (margin as usize).min(positions);
            to.resize(to.len() + front, PADDING);
            to.extend(text.iter().take(positions - front));
            to.resize(end, PADDING);
        }
    }
}
