//! What a translation model is trained on: pairs of token sequences.

use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::tasks::translation::prepare::{PrepareOptions, PreparedSplit};
use zoo_models::Cost;
use zoo_models::tasks::translation::{PairBatch, Seq2Seq, TranslationLoss, Vocabularies, cost};

use super::Recipe;
use super::batches::TrainingBatches;
use crate::error::Result;
use crate::run::data::{Aim, Material, Source};

/// Sentence pairs to train on.
pub struct Text {
    /// A split for each target language.
    pub train: Vec<Arc<PreparedSplit>>,
    /// Sizes and special ids.
    pub vocabularies: Vocabularies,
}

impl Text {
    /// A model without data, with vocabularies of so many rows.
    pub fn of_rows(recipe: &Recipe, rows: usize) -> Self {
        let languages = recipe.data.reader.targets().len();
        let vocabularies = Vocabularies { source: rows, target: rows, languages, pad: 0, begin: 2, end: 1 };
        Self { train: Vec::new(), vocabularies }
    }
}

impl Material for Text {
    type Task = zoo_recipes::Translation;
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

    fn classes(&self, _: &Recipe) -> usize {
        self.vocabularies.target
    }

    fn amounts(batch: &PairBatch) -> (u64, u64) {
        (batch.source.tokens.len() as u64, batch.target.tokens.len() as u64)
    }

    fn examples(batch: &PairBatch) -> u64 {
        batch.source.lengths.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use zoo_datasets::tasks::translation::prepare::Sequences;
    use zoo_models::parameters::{host_values, reads};
    use zoo_models::precision::Compute;
    use zoo_recipes::TextBatchingSpec;
    use zoo_recipes::{Document, ListedTask, Selection};
    use zoo_training::timing::{Timed, TimedArm};

    use super::super::{generated, size};
    use super::*;
    use crate::run::data::phase;

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
        let recipe =
            Document::load("multi30k-gnmt").unwrap().resolve(&Selection::arm("fp32")).unwrap().recipe;
        let mut recipe = zoo_recipes::Translation::take(recipe).unwrap();
        let TextBatchingSpec::Buckets { sentences, .. } = &mut recipe.data.batching else {
            panic!("buckets")
        };
        *sentences = 2;
        // The longer target goes to the next bucket, and neither bucket fills a batch.
        assert!(text.source(&recipe, 1).is_err());
        recipe.data.begin_token_in_source = false;
        assert_eq!(text.source(&recipe, 1).unwrap().epoch_len(0).unwrap(), 1);
    }

    /// The arms of the variants, and what their phases round.
    #[test]
    fn a_phase_has_the_masters_and_islands_of_its_arm() {
        let document = Document::load("multi30k-transformer-tiny-precision").unwrap();
        let all = [true; 3];
        for (arm, weights, islands) in [
            ("fp32", "fp32", all),
            ("mixed", "fp32", all),
            ("mixed-no-masters", "fp16", all),
            ("bf16-no-masters", "bf16", all),
            ("mixed-half-norms", "fp32", [false, false, true]),
            ("mixed-no-islands", "fp32", [false; 3]),
        ] {
            let recipe = document.resolve(&Selection::arm(arm)).unwrap().recipe;
            let recipe = zoo_recipes::Translation::take(recipe).unwrap();
            let text = Text { train: Vec::new(), vocabularies: size::vocabularies(&recipe) };
            let phase = phase(&recipe, text.aim(&recipe), None).unwrap();
            let of = phase.islands;
            assert_eq!((phase.weights.name(), [of.softmax, of.norms, of.loss]), (weights, islands), "{arm}");
        }
    }

    #[test]
    fn an_update_of_several_batches_reads_from_its_device_once() {
        let document = Document::load("transformer-big-nvidia").unwrap();
        for arm in ["fp32", "mixed"] {
            let selection =
                Selection { arm: Some(arm.into()), tier: Some("smoke".into()), ..Selection::default() };
            let recipe = document.resolve(&selection).unwrap().recipe;
            let recipe = zoo_recipes::Translation::take(recipe).unwrap();
            let text = Text { train: Vec::new(), vocabularies: size::vocabularies(&recipe) };
            let batches: Vec<_> =
                generated::full_batches(&text.vocabularies, 4, 6).take(3).flatten().collect();
            assert!(batches.len() > 1, "several batches an update");
            let model = text.model(&recipe, 1, &Device::flex().autodiff());
            let compute = Compute::of(&recipe.precision);
            let phases = vec![phase(&recipe, text.aim(&recipe), Some(100_000)).unwrap()];
            let mut timed = TimedArm::new(model, phases, vec![batches], compute, 1).unwrap();
            let before = reads();
            timed.lap(2).unwrap();
            assert_eq!(reads() - before, 2, "{arm}: loss, norm and finiteness are read together");
        }
        let before = reads();
        host_values(burn::tensor::Tensor::<1>::zeros([1], &Device::flex()));
        assert_eq!(reads() - before, 1, "another read is seen");
    }
}
