//! Vocabularies, and with them sizes, of a model before any text is there.

use zoo_models::models::Vocabularies;
use zoo_recipes::{DataSpec, ReaderSpec, Recipe, TokenizerSpec};

/// Special tokens in front of every vocabulary.
const SPECIALS: u32 = 4;
/// Words of a vocabulary that is known only from the data.
const ASSUMED_WORDS: u32 = 30_000;

/// Vocabularies of a recipe without its data: counted, told by the recipe, or assumed.
pub fn vocabularies(recipe: &Recipe) -> Vocabularies {
    of_rows(recipe, rows_known(recipe).map_or(ASSUMED_WORDS as usize, |(rows, _)| rows))
}

/// Vocabularies of so many rows on each side.
pub fn of_rows(recipe: &Recipe, rows: usize) -> Vocabularies {
    let languages = recipe.data.reader.targets().len();
    let target = match &recipe.data.tokenizer {
        TokenizerSpec::Words { max_target_vocabulary: Some(most), pad_vocabulary_to, .. } => {
            rows.min(up(most.saturating_sub(SPECIALS), *pad_vocabulary_to))
        }
        _ => rows,
    };
    Vocabularies { source: rows, target, languages, pad: 0, begin: 2, end: 1 }
}

/// Rows of this many words.
fn up(words: u32, multiple: u32) -> usize {
    words.saturating_add(SPECIALS).next_multiple_of(multiple.max(1)) as usize
}

/// Rows that were counted in the corpus, where the recipe has it and all of it; else what can be told without it.
pub fn rows_known(recipe: &Recipe) -> Option<(usize, bool)> {
    let whole = recipe.data.corpus.is_some() && recipe.data.share.is_none();
    match recipe.recipe.vocabulary_rows.filter(|_| whole) {
        Some(rows) => Some((rows as usize, true)),
        None => vocabulary_rows(&recipe.data),
    }
}

/// Rows of the vocabulary as far as the recipe tells, and whether that is exact.
fn vocabulary_rows(data: &DataSpec) -> Option<(usize, bool)> {
    match (&data.tokenizer, &data.reader) {
        (TokenizerSpec::Words { pad_vocabulary_to, .. }, ReaderSpec::Reversal { symbols, .. }) => {
            Some((up(*symbols, *pad_vocabulary_to), true))
        }
        // A limit is set where text has more words than that. Without one the tables are a guess, and the rest is what can be told.
        (TokenizerSpec::Words { max_vocabulary, pad_vocabulary_to, .. }, ReaderSpec::ParallelText { .. }) => {
            let words = max_vocabulary.map_or(ASSUMED_WORDS, |rows| rows.saturating_sub(SPECIALS));
            Some((up(words, *pad_vocabulary_to), false))
        }
        // Every merge makes a sub-word and some use others up; the characters come on top.
        (TokenizerSpec::SubwordNmt { merges, max_vocabulary, pad_vocabulary_to, .. }, _) => {
            let words = max_vocabulary.map_or(*merges, |rows| rows.saturating_sub(SPECIALS).min(*merges));
            Some((up(words, *pad_vocabulary_to), false))
        }
        (TokenizerSpec::SentencePiece { pieces, .. }, _) => Some((*pieces as usize, true)),
        _ => None,
    }
}
