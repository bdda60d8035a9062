//! Batches of prepared sentences in the models' format.

use std::sync::Arc;

use zoo_datasets::batches::{
    Batch, BatchPlan, Collator, EvalLimit, Groups, PaddedSequences, PaddingWaste, PairSource, Position,
    Prefetch, PrefetchOptions, eval_batches,
};
use zoo_datasets::prepare::{EvalSet, PreparedSplit};
use zoo_models::Packed;
use zoo_models::tasks::translation::{PairBatch, Vocabularies};
use zoo_recipes::tasks::translation::TextBatchingSpec;
use zoo_training::batches::{BatchSource, Batches, Fetched, Share};
use zoo_training::error::OtherError;

use crate::error::Result;
use crate::stages::data::{MadeHere, Source};

/// Training batches. All pairs of a batch have the same target language.
pub struct TrainingBatches {
    pairs: Arc<Groups>,
    plan: Arc<BatchPlan>,
    collator: Collator,
}

impl TrainingBatches {
    /// Batches over one split per target language. Every target counts `before_target` tokens more
    /// than it has.
    ///
    /// # Errors
    /// The batching cannot form a batch from the sentences.
    pub fn new(
        languages: &[&Arc<PreparedSplit>],
        batching: &TextBatchingSpec,
        before_target: u32,
        seed: u64,
        vocabularies: &Vocabularies,
    ) -> Result<Self> {
        let pairs = languages.iter().map(|&split| split.clone() as Arc<dyn PairSource>);
        let pairs = Groups::new(pairs.collect());
        let mut lengths = pairs.lengths();
        lengths.iter_mut().for_each(|(_, target)| *target += before_target);
        let plan = BatchPlan::of_groups(&lengths, &pairs.sizes(), batching, seed)?;
        let collator = Collator {
            source_pad: vocabularies.pad,
            target_pad: vocabularies.pad,
            pad_length_to: plan.pad_length_to(),
        };
        Ok(Self { pairs: Arc::new(pairs), plan: Arc::new(plan), collator })
    }

    fn fetched(&self, batch: &Batch) -> Fetched<PairBatch> {
        let tokens = batch.source.token_count() + batch.target.token_count();
        let language = batch.ids.first().map_or(0, |&id| self.pairs.group(id));
        Fetched { batch: pair_batch(batch, language), tokens }
    }
}

impl BatchSource<PairBatch> for TrainingBatches {
    fn epoch_len(&mut self, _: u64) -> std::result::Result<u64, OtherError> {
        Ok(self.plan.batches_per_epoch() as u64)
    }

    fn batches(
        &mut self,
        epoch: u64,
        from: u64,
        share: Share,
    ) -> std::result::Result<Batches<'_, PairBatch>, OtherError> {
        let start = Position { epoch, batch: from };
        let options = PrefetchOptions { start, rank: 0, world: 1, collator: self.collator };
        let ahead = Prefetch::new(self.pairs.clone(), self.plan.clone(), options)?;
        let of_epoch = ahead.take_while(move |placed| placed.position.epoch == epoch);
        let mine = of_epoch.filter(move |placed| share.has(placed.position.batch));
        Ok(Box::new(mine.map(|placed| Ok(self.fetched(&placed.batch)))))
    }
}

impl Source<PairBatch> for TrainingBatches {
    fn padding(&self) -> f64 {
        let mut waste = PaddingWaste::default();
        self.plan.epoch(0).iter().for_each(|ids| waste.add(&self.collator.batch(self.pairs.as_ref(), ids)));
        waste.share()
    }

    fn made_here(&self) -> MadeHere<'_, PairBatch> {
        let ids = self.plan.epoch(0).into_iter();
        Box::new(ids.map(|ids| Ok(self.fetched(&self.collator.batch(self.pairs.as_ref(), &ids)))))
    }
}

/// Converts a padded batch to the models' format.
fn pair_batch(batch: &Batch, language: usize) -> PairBatch {
    let packed = |side: &PaddedSequences| {
        let rows: Vec<&[u32]> = (0..side.rows).filter_map(|row| side.sequence(row)).collect();
        Packed::new(&rows)
    };
    PairBatch {
        source: packed(&batch.source),
        target: packed(&batch.target),
        language,
        target_positions: (batch.target.rows * batch.target.cols) as u64,
    }
}

/// All pairs of an evaluation set, in batches of up to 4,096 tokens.
pub fn validation_batches(set: &EvalSet<'_>) -> Vec<PairBatch> {
    let split = set.split;
    let ids = eval_batches(&split.lengths(), EvalLimit::Tokens(4096));
    let batch = |ids: Vec<u32>| {
        let pairs: Vec<_> = ids.iter().map(|&id| split.pair(id)).collect();
        let (source, target): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let longest = target.iter().map(|t| t.len()).max().unwrap_or(0);
        let target_positions = (longest * target.len()) as u64;
        let (source, target) = (Packed::new(&source), Packed::new(&target));
        PairBatch { source, target, language: set.target, target_positions }
    };
    ids.into_iter().map(batch).collect()
}
