//! Random sentence pairs with the length distribution of real text, for timing without the data.

use std::sync::Arc;

use zoo_datasets::prepare::{PreparedSplit, Sequences};
use zoo_models::Packed;
use zoo_models::random::Key;
use zoo_models::tasks::translation::{PairBatch, Vocabularies};
use zoo_recipes::tasks::translation::TextBatchingSpec;
use zoo_training::batches::Fetched;

use super::Recipe;
use crate::stages::timed_arm::{KEPT_UPDATES, Update};

/// Mean and standard deviation of the logarithm of the sentence length in sub-words. The mean
/// length is 28, as in WMT English-German.
const LOG_LENGTH: (f64, f64) = (3.13, 0.63);
/// Standard deviation of the logarithm of target length divided by source length.
const LOG_RATIO: f64 = 0.15;
/// Number of special tokens, which have the lowest ids.
const SPECIALS: u32 = 4;

/// One split per target language. Each has twice the sentence pairs of `KEPT_UPDATES` updates, so
/// that buckets have a choice.
pub fn splits(recipe: &Recipe, vocabularies: &Vocabularies) -> Vec<Arc<PreparedSplit>> {
    let mean = (LOG_LENGTH.0 + LOG_LENGTH.1.powi(2) / 2.0).exp();
    let of_batch = match recipe.data.batching {
        TextBatchingSpec::Sentences { sentences, .. } | TextBatchingSpec::Buckets { sentences, .. } => {
            f64::from(sentences)
        }
        TextBatchingSpec::Tokens { max_tokens, .. } => f64::from(max_tokens) / mean,
    };
    let batches = (KEPT_UPDATES * u64::from(recipe.train.batches_per_update)) as f64;
    let pairs = (2.0 * batches * of_batch).ceil() as u64;
    let languages = 0..vocabularies.languages as u64;
    languages.map(|language| Arc::new(split(recipe, vocabularies, pairs, language))).collect()
}

fn split(recipe: &Recipe, vocabularies: &Vocabularies, pairs: u64, language: u64) -> PreparedSplit {
    let filter = &recipe.data.filter;
    let limit = |most: Option<u32>| f64::from(most.unwrap_or(256));
    let (most_source, most_target) = (limit(filter.max_source_tokens), limit(filter.max_target_tokens));
    let (lengths, ratios) = (Key::new(language, 2, 0), Key::new(language, 3, 0));
    let mut source = Side::new(vocabularies.source, vocabularies.end, Key::new(language, 0, 0));
    let mut target = Side::new(vocabularies.target, vocabularies.end, Key::new(language, 1, 0));
    for line in 0..pairs as u32 {
        let log = LOG_LENGTH.0 + LOG_LENGTH.1 * f64::from(lengths.normal(line));
        let log_target = log + LOG_RATIO * f64::from(ratios.normal(line));
        source.push(log.exp().min(most_source));
        target.push(log_target.exp().min(most_target));
    }
    PreparedSplit {
        name: "generated".into(),
        source: source.sequences,
        target: target.sequences,
        lines: (0..pairs as u32).collect(),
        ..PreparedSplit::default()
    }
}

/// An endless iterator of updates with one batch each. All sentences have `tokens` tokens.
pub fn full_batches(
    vocabularies: &Vocabularies,
    sentences: u32,
    tokens: u32,
) -> impl Iterator<Item = Update<PairBatch>> {
    let vocabularies = *vocabularies;
    let packed = move |rows: usize, key: Key| {
        let mut side = Side::new(rows, vocabularies.end, key);
        (0..sentences).for_each(|_| side.push(f64::from(tokens)));
        Packed::new(&side.sequences.iter().collect::<Vec<_>>())
    };
    let update = move |number| {
        let source = packed(vocabularies.source, Key::new(number, 0, 0));
        let target = packed(vocabularies.target, Key::new(number, 1, 0));
        let target_positions = u64::from(sentences) * u64::from(tokens);
        let batch = PairBatch { source, target, language: 0, target_positions };
        vec![Fetched { batch, tokens: 2 * target_positions }]
    };
    (0..).map(update)
}

/// One side of the generated pairs.
struct Side {
    rows: u32,
    end: u32,
    key: Key,
    drawn: u32,
    sequences: Sequences,
}

impl Side {
    fn new(rows: usize, end: u32, key: Key) -> Self {
        Self { rows: rows as u32, end, key, drawn: 0, sequences: Sequences::default() }
    }

    /// Adds a sentence of `length` tokens: random words and the end token.
    fn push(&mut self, length: f64) {
        let words = (length.round() as u32).max(2) - 1;
        let range = self.rows.saturating_sub(SPECIALS).max(1);
        let word = |at: u32| (SPECIALS + self.key.bits(at) % range).min(self.rows - 1);
        let ids = (0..words).map(|at| word(self.drawn.wrapping_add(at)));
        let ids: Vec<u32> = ids.chain([self.end]).collect();
        self.drawn = self.drawn.wrapping_add(words);
        self.sequences.push(&ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zoo_datasets::batches::PairSource;
    use zoo_recipes::{Document, ListedTask, Selection};

    #[test]
    fn sentences_have_the_published_limits_and_a_usual_mean() {
        let recipe =
            Document::load("transformer-big").unwrap().resolve(&Selection::default()).unwrap().recipe;
        let recipe = zoo_recipes::Translation::take(recipe).unwrap();
        let vocabularies =
            Vocabularies { source: 32_768, target: 32_768, languages: 1, pad: 0, begin: 2, end: 1 };
        let split = splits(&recipe, &vocabularies).remove(0);
        let lengths: Vec<usize> = (0..split.len() as u32).map(|at| split.pair(at).0.len()).collect();
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        assert!((mean - 28.0).abs() < 2.0, "{mean}");
        let most = recipe.data.filter.max_source_tokens.unwrap() as usize;
        assert!(lengths.iter().all(|length| (2..=most).contains(length)));
        let (source, target) = split.pair(0);
        assert!(source.ends_with(&[1]) && target.ends_with(&[1]));
        assert!(source.iter().chain(target).all(|id| *id < 32_768));
    }
}
