//! Sentences of a published shape, where the text itself is not there: lengths as text has them, words at random.

use std::sync::Arc;

use zoo_datasets::prepare::{PreparedSplit, Sequences};
use zoo_models::models::{Packed, PairBatch, Vocabularies};
use zoo_recipes::{BatchingSpec, Recipe};
use zoo_training::batches::Fetched;

use super::timed_arm::{KEPT_UPDATES, Update};

/// Mean and spread of the logarithm of a sentence's length in sub-words: 28 on average, as in WMT's English-German.
const LOG_LENGTH: (f64, f64) = (3.13, 0.63);
/// Spread of the logarithm of target length over source length.
const LOG_RATIO: f64 = 0.15;
/// Ids below are special tokens.
const SPECIALS: u32 = 4;

/// Sentence pairs for as many updates as are kept, and as many again for buckets to choose from; a split for each language.
pub fn splits(recipe: &Recipe, vocabularies: &Vocabularies) -> Vec<Arc<PreparedSplit>> {
    let mean = (LOG_LENGTH.0 + LOG_LENGTH.1.powi(2) / 2.0).exp();
    let of_batch = match recipe.data.batching {
        BatchingSpec::Sentences { sentences, .. } => f64::from(sentences),
        BatchingSpec::Tokens { max_tokens, .. } => f64::from(max_tokens) / mean,
    };
    let batches = (KEPT_UPDATES * u64::from(recipe.train.batches_per_update)) as f64;
    let pairs = (2.0 * batches * of_batch).ceil() as u64;
    let languages = 0..vocabularies.languages as u64;
    languages.map(|language| Arc::new(split(recipe, vocabularies, pairs, language))).collect()
}

fn split(recipe: &Recipe, vocabularies: &Vocabularies, pairs: u64, language: u64) -> PreparedSplit {
    let mut draws = Draws(language);
    let filter = &recipe.data.filter;
    let limit = |most: Option<u32>| f64::from(most.unwrap_or(256));
    let (most_source, most_target) = (limit(filter.max_source_tokens), limit(filter.max_target_tokens));
    let mut found = PreparedSplit { name: "generated".into(), ..PreparedSplit::default() };
    for line in 0..pairs {
        let log = LOG_LENGTH.0 + LOG_LENGTH.1 * draws.normal();
        let (source, target) = (log.exp(), (log + LOG_RATIO * draws.normal()).exp());
        sequence(
            source.min(most_source),
            vocabularies.source,
            vocabularies.end,
            &mut draws,
            &mut found.source,
        );
        sequence(
            target.min(most_target),
            vocabularies.target,
            vocabularies.end,
            &mut draws,
            &mut found.target,
        );
        found.lines.push(line as u32);
    }
    found
}

/// Updates of one batch each, every sentence of it of the same length.
pub fn full_batches(vocabularies: &Vocabularies, sentences: u32, tokens: u32) -> Vec<Update> {
    const KEPT: u64 = 4;
    let side = |draws: &mut Draws, rows: usize| {
        let lengths = vec![f64::from(tokens); sentences as usize];
        let mut sequences = Sequences::default();
        lengths.iter().for_each(|length| sequence(*length, rows, vocabularies.end, draws, &mut sequences));
        Packed::new(&sequences.iter().collect::<Vec<_>>())
    };
    let update = |seed| {
        let mut draws = Draws(seed);
        let source = side(&mut draws, vocabularies.source);
        let target = side(&mut draws, vocabularies.target);
        let target_positions = u64::from(sentences) * u64::from(tokens);
        let batch = PairBatch { source, target, language: 0, target_positions };
        vec![Fetched { batch, tokens: 2 * target_positions }]
    };
    (0..KEPT).map(update).collect()
}

/// Adds random words, and the end token, of so many tokens together.
fn sequence(length: f64, rows: usize, end: u32, draws: &mut Draws, into: &mut Sequences) {
    let words = (length.round() as u64).max(2) - 1;
    let range = (rows as u64).saturating_sub(u64::from(SPECIALS)).max(1);
    let ids = (0..words).map(|_| (SPECIALS + (draws.next() % range) as u32).min(rows as u32 - 1));
    let ids: Vec<u32> = ids.chain([end]).collect();
    into.push(&ids);
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zoo_datasets::batches::PairSource;
    use zoo_recipes::{Document, Selection};

    #[test]
    fn sentences_have_the_published_limits_and_a_usual_mean() {
        let recipe =
            Document::load("transformer-big").unwrap().resolve(&Selection::default()).unwrap().recipe;
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
