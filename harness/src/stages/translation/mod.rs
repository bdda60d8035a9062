//! Translation: text to text in one or several target languages.

mod batches;
mod decode;
pub mod generated;

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use zoo_datasets::prepare::{PrepareOptions, PreparedSplit, PreparedTranslation};
use zoo_models::models::{Cost, PairBatch, Seq2Seq, TranslationLoss, Vocabularies, cost};
use zoo_recipes::{EvalSetSpec, Recipe};
use zoo_results::report::page::SplitCounts;

pub use decode::Translator;

use self::batches::{TrainingBatches, validation_batches};
use super::task::{Aim, Decoded, EvaluationBatches, Material, Source, Task};
use crate::context::Context;
use crate::environment::hex;
use crate::error::Result;

/// Sentence pairs to train on.
pub struct Text {
    /// A split for each target language.
    pub train: Vec<Arc<PreparedSplit>>,
    /// Sizes and special ids.
    pub vocabularies: Vocabularies,
}

impl Material for Text {
    type Model = Seq2Seq;
    type Batch = PairBatch;

    const UNIT: &'static str = "tokens";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> Seq2Seq {
        Seq2Seq::new(&recipe.model, &self.vocabularies, seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<Seq2Seq, PairBatch> {
        Aim { objective: Box::new(TranslationLoss::new(&recipe.loss)), running: None }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<PairBatch>>> {
        let splits: Vec<&Arc<PreparedSplit>> = self.train.iter().collect();
        // It counts in the lengths that buckets are made by.
        let before_target = u32::from(PrepareOptions::of(recipe).begins_before_target(&recipe.data));
        let batching = &recipe.data.batching;
        Ok(Box::new(TrainingBatches::new(&splits, batching, before_target, seed, &self.vocabularies)?))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        cost(&recipe.model, &self.vocabularies)
    }

    fn classes(&self) -> usize {
        self.vocabularies.target
    }

    fn amounts(batch: &PairBatch) -> (u64, u64) {
        (batch.source.tokens.len() as u64, batch.target.tokens.len() as u64)
    }

    fn examples(batch: &PairBatch) -> u64 {
        batch.source.lengths.len() as u64
    }
}

impl Task for PreparedTranslation {
    type Material = Text;

    fn material(&self, _: &Recipe) -> Result<Text> {
        let train = self.train()?.into_iter().cloned().collect();
        Ok(Text { train, vocabularies: vocabularies(self) })
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        let digest = |split: &PreparedSplit| {
            let mut hash = Sha256::new();
            for sequence in split.source.iter().chain(split.target.iter()) {
                hash.update((sequence.len() as u64).to_le_bytes());
                sequence.iter().for_each(|id| hash.update(id.to_le_bytes()));
            }
            hex(&hash.finalize())
        };
        self.splits.iter().map(|(name, split)| (name.clone(), digest(split))).collect()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        let of = |split: &PreparedSplit| {
            let counts = &split.statistics;
            let left_out = [
                ("a side is empty", counts.skipped_empty),
                ("the corpus's preparation", counts.dropped_by_cleaning),
                ("too long", counts.dropped_too_long),
                ("too unequal", counts.dropped_unequal),
            ];
            let amounts = [
                ("source tokens", counts.source_tokens),
                ("target tokens", counts.target_tokens),
                ("source tokens unknown", counts.source_unknown),
                ("target tokens unknown", counts.target_unknown),
                ("source sides cut", counts.truncated_source),
                ("target sides cut", counts.truncated_target),
                ("longest source", counts.longest_source),
                ("longest target", counts.longest_target),
            ];
            let left_out = left_out.into_iter().filter(|(_, count)| *count > 0);
            SplitCounts {
                read: counts.pairs_read,
                kept: counts.pairs,
                left_out: left_out.map(|(why, count)| (why.to_owned(), count)).collect(),
                amounts: amounts.into_iter().map(|(what, count)| (what.to_owned(), count as f64)).collect(),
            }
        };
        self.splits.iter().map(|(name, split)| (name.clone(), of(split))).collect()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        Ok(self.train()?.into_iter().map(|split| split.name.clone()).collect())
    }

    fn evaluation_splits(&self, name: &str, set: &EvalSetSpec) -> Result<Vec<String>> {
        Ok(self.eval_sets(name, set)?.into_iter().map(|set| set.split.name.clone()).collect())
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, PairBatch>> {
        let sets = self.eval_sets(name, &recipe.data.eval[name])?;
        Ok(Box::new(sets.into_iter().flat_map(|set| validation_batches(&set)).map(Ok)))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &Seq2Seq,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, self, wanted, model)
    }
}

/// Sizes and special ids of prepared data.
pub fn vocabularies(prepared: &PreparedTranslation) -> Vocabularies {
    let (source, target) = (&prepared.pipeline.source, &prepared.pipeline.target);
    let ids = target.specials();
    Vocabularies {
        source: source.len(),
        target: target.len(),
        languages: prepared.targets.len(),
        pad: ids.pad,
        begin: ids.begin,
        end: ids.end,
    }
}

#[cfg(test)]
mod tests {
    use zoo_datasets::prepare::Sequences;
    use zoo_recipes::{BatchingSpec, Document, Selection};

    use super::*;

    #[test]
    fn buckets_count_a_begin_token_that_is_no_part_of_the_target() {
        let (mut source, mut target) = (Sequences::default(), Sequences::default());
        for length in [8, 9] {
            source.push(&[5; 3]);
            target.push(&vec![5; length]);
        }
        let split = PreparedSplit { source, target, lines: vec![0, 1], ..PreparedSplit::default() };
        let vocabularies = Vocabularies { source: 8, target: 8, languages: 1, pad: 3, begin: 0, end: 2 };
        let text = Text { train: vec![Arc::new(split)], vocabularies };
        let mut recipe =
            Document::load("multi30k-gnmt").unwrap().resolve(&Selection::arm("fp32")).unwrap().recipe;
        let BatchingSpec::Buckets { sentences, .. } = &mut recipe.data.batching else { panic!("buckets") };
        *sentences = 2;
        // The longer target goes to the next bucket, and neither bucket fills a batch.
        assert!(text.source(&recipe, 1).is_err());
        recipe.data.begin_token_in_source = false;
        assert_eq!(text.source(&recipe, 1).unwrap().epoch_len(0).unwrap(), 1);
    }
}
