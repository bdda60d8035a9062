//! Vocabulary sizes of a recipe before its text is available.

use super::Recipe;
use zoo_models::tasks::translation::Vocabularies;
use zoo_recipes::tasks::translation::{TextDataSpec, TextReaderSpec, TextTokenizerSpec};

/// Special tokens at the start of every vocabulary.
const SPECIALS: u32 = 4;
/// Assumed number of words if only the data determines the vocabulary.
const ASSUMED_WORDS: u32 = 30_000;

/// Vocabularies of a recipe without its data: counted, given by the recipe, or assumed.
pub fn vocabularies(recipe: &Recipe) -> Vocabularies {
    of_rows(recipe, rows_known(recipe).0)
}

/// Vocabularies with `rows` rows on each side. A target limit of the tokenizer reduces the target
/// rows.
pub fn of_rows(recipe: &Recipe, rows: usize) -> Vocabularies {
    let languages = recipe.data.reader.targets().len();
    let target = match &recipe.data.tokenizer {
        TextTokenizerSpec::Words { max_target_vocabulary: Some(most), pad_vocabulary_to, .. } => {
            rows.min(up(most.saturating_sub(SPECIALS), *pad_vocabulary_to))
        }
        _ => rows,
    };
    Vocabularies { source: rows, target, languages, pad: 0, begin: 2, end: 1 }
}

/// Vocabulary rows for `words` words: with special tokens, rounded up to `multiple`.
fn up(words: u32, multiple: u32) -> usize {
    words.saturating_add(SPECIALS).next_multiple_of(multiple.max(1)) as usize
}

/// Vocabulary rows and whether they are exact: the counted rows if the recipe uses a whole corpus
/// and states them, else what the settings imply.
pub fn rows_known(recipe: &Recipe) -> (usize, bool) {
    let whole = recipe.data.corpus.is_some() && recipe.data.share.is_none();
    match recipe.recipe.vocabulary_rows.filter(|_| whole) {
        Some(rows) => (rows as usize, true),
        None => vocabulary_rows(&recipe.data),
    }
}

/// Vocabulary rows that the settings imply, and whether they are exact.
fn vocabulary_rows(data: &TextDataSpec) -> (usize, bool) {
    match (&data.tokenizer, &data.reader) {
        (TextTokenizerSpec::Words { pad_vocabulary_to, .. }, TextReaderSpec::Reversal(spec)) => {
            (up(spec.symbols, *pad_vocabulary_to), true)
        }
        // A limit is set if the text has more words than the limit. Without a limit, the number of
        // words is assumed.
        (
            TextTokenizerSpec::Words { max_vocabulary, pad_vocabulary_to, .. },
            TextReaderSpec::ParallelText { .. },
        ) => {
            let words = max_vocabulary.map_or(ASSUMED_WORDS, |rows| rows.saturating_sub(SPECIALS));
            (up(words, *pad_vocabulary_to), false)
        }
        // Each merge adds one sub-word and can make others unused. The characters are added to
        // these.
        (TextTokenizerSpec::SubwordNmt { merges, max_vocabulary, pad_vocabulary_to, .. }, _) => {
            let words = max_vocabulary.map_or(*merges, |rows| rows.saturating_sub(SPECIALS).min(*merges));
            (up(words, *pad_vocabulary_to), false)
        }
        (TextTokenizerSpec::SentencePiece { pieces, .. }, _) => (*pieces as usize, true),
    }
}
