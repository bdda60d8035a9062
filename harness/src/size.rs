//! Sizes of a recipe's model before any data is there.

use std::collections::BTreeSet;

use zoo_models::models::{self, Cost, Vocabularies, acoustic, synthesis};
use zoo_recipes::{
    AcousticLayerSpec, Architecture, DataSpec, FeaturesSpec, ModelSpec, ReaderSpec, Recipe, TokenizerSpec,
};
use zoo_results::report::grouped;

use crate::stages::frame_width;

/// Special tokens in front of every vocabulary.
const SPECIALS: u32 = 4;
/// Words of a vocabulary that only the data tells.
const ASSUMED_WORDS: u32 = 30_000;

/// What can be said of a model without its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelSize {
    /// Rows of the vocabulary.
    pub rows: usize,
    /// Is `rows` known, or a fair guess?
    pub exact: bool,
    /// Parameters and operations.
    pub cost: Cost,
}

impl ModelSize {
    /// `210,808,832`, or `about …` where the vocabulary is counted when the data is prepared.
    pub fn parameters(&self) -> String {
        let about = if self.exact { "" } else { "about " };
        format!("{about}{}", grouped(self.cost.parameters))
    }
}

/// The size of a recipe's model; `None` where nothing can be said of its classes.
pub fn of(recipe: &Recipe) -> Option<ModelSize> {
    let (rows, exact) = rows_known(recipe)?;
    Some(ModelSize { rows, exact, cost: of_model(recipe, rows) })
}

/// Parameters and operations of a recipe's model, as far as they can be told without its data.
pub fn cost(recipe: &Recipe) -> Cost {
    of_model(recipe, rows_or_guess(recipe))
}

fn of_model(recipe: &Recipe, rows: usize) -> Cost {
    match recipe.model.architecture() {
        Some(Architecture::Acoustic(spec)) => {
            let features = recipe.data.features.as_ref().map_or(0, FeaturesSpec::features);
            acoustic::cost(spec, features.into(), rows as u64)
        }
        Some(Architecture::Synthesis(parts)) => synthesis::cost(parts, rows as u64, frame_width(recipe)),
        _ => models::cost(&recipe.model, &of_rows(recipe, rows)),
    }
}

/// What the matrix products of a model are as wide as, mostly.
pub fn width(model: &ModelSpec) -> usize {
    match model.architecture() {
        Some(Architecture::Acoustic(spec)) => {
            let width = |layer: &AcousticLayerSpec| match layer {
                AcousticLayerSpec::Convolution2d(layer) => layer.channels,
                AcousticLayerSpec::Convolution(layer) => layer.channels,
                AcousticLayerSpec::Recurrent(layer) => layer.hidden,
                AcousticLayerSpec::Dense(layer) => layer.units,
                AcousticLayerSpec::RowConvolution(_) => 1,
            };
            spec.layer.iter().map(width).max().unwrap_or(1) as usize
        }
        Some(Architecture::Synthesis(parts)) => parts.decoder.units as usize,
        _ => model.width.unwrap_or(1) as usize,
    }
}

/// Vocabularies of a recipe whose data is not there, as large as can be told.
pub fn vocabularies(recipe: &Recipe) -> Vocabularies {
    of_rows(recipe, rows_or_guess(recipe))
}

fn rows_or_guess(recipe: &Recipe) -> usize {
    rows_known(recipe).map_or(ASSUMED_WORDS as usize, |(rows, _)| rows)
}

fn of_rows(recipe: &Recipe, rows: usize) -> Vocabularies {
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
fn rows_known(recipe: &Recipe) -> Option<(usize, bool)> {
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
        // The blank is one more class; a checked recipe of text has no such tokenizer, and none of speech has words.
        (TokenizerSpec::Characters { alphabet, .. }, _) => Some((alphabet.chars().count() + 1, true)),
        (TokenizerSpec::Lexicon { words, silence }, _) => {
            let sounds: BTreeSet<&String> = words.values().flatten().chain(silence).collect();
            Some((sounds.len() + 1, true))
        }
        // A synthesiser reads symbols: there is no blank.
        (tokenizer @ TokenizerSpec::Symbols { .. }, _) => {
            tokenizer.symbols().map(|symbols| (symbols.len(), true))
        }
        (TokenizerSpec::Words { .. }, ReaderSpec::AudioManifest(_) | ReaderSpec::Tones(_)) => None,
    }
}
