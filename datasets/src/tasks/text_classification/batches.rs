//! Batches of texts for training.

use std::sync::Arc;

use zoo_recipes::tasks::text_classification::{LabelledDataSpec, LabelledOrder, LabelledRemainder};

use super::error::LabelledTextError;
use super::prepared::{PreparedTexts, TextSplit};
use crate::batches::Ahead;
use crate::random::{Purpose, RandomStream};

/// Texts with their classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextBatch {
    /// Numbers `[texts, positions]`; 0 is padding.
    pub ids: Vec<u32>,
    /// Positions of a text.
    pub positions: usize,
    /// Class of each text.
    pub labels: Vec<u32>,
}

/// The training batches of a recipe. A batch is a function of the seed, the epoch and its index.
#[derive(Debug, Clone)]
pub struct TrainingTexts {
    prepared: Arc<PreparedTexts>,
    split: String,
    batch: usize,
    order: LabelledOrder,
    remainder: LabelledRemainder,
    seed: u64,
}

impl TrainingTexts {
    /// The batches of a recipe's training split.
    ///
    /// # Errors
    /// There is no batch.
    pub fn new(
        prepared: &Arc<PreparedTexts>,
        data: &LabelledDataSpec,
        seed: u64,
    ) -> Result<Self, LabelledTextError> {
        let train = prepared.train(data)?;
        let batch = (data.batching.texts as usize).max(1);
        let (texts, remainder) = (train.texts.len(), data.batching.remainder);
        if texts == 0 || (texts < batch && remainder == LabelledRemainder::Drop) {
            return Err(LabelledTextError::NoBatch { split: train.name.clone(), texts, batch });
        }
        let (split, order) = (train.name.clone(), data.batching.order);
        Ok(Self { prepared: prepared.clone(), split, batch, order, remainder, seed })
    }

    fn train(&self) -> &TextSplit {
        &self.prepared.splits[&self.split]
    }

    /// Number of batches of an epoch.
    pub fn per_epoch(&self) -> usize {
        let texts = self.train().texts.len();
        match self.remainder {
            LabelledRemainder::Short => texts.div_ceil(self.batch),
            LabelledRemainder::Drop => texts / self.batch,
        }
    }

    /// The texts of each batch of an epoch.
    fn texts(&self, epoch: u64) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.train().texts.len()).collect();
        let mut of_epoch = RandomStream::new(self.seed, Purpose::EpochOrder, epoch);
        match self.order {
            LabelledOrder::Shuffled => of_epoch.shuffle(&mut order),
            LabelledOrder::ShuffledBatches => {
                RandomStream::new(self.seed, Purpose::Bucketing, 0).shuffle(&mut order);
            }
        }
        let batches = order.chunks(self.batch).take(self.per_epoch());
        let mut batches: Vec<Vec<usize>> = batches.map(<[usize]>::to_vec).collect();
        if self.order == LabelledOrder::ShuffledBatches {
            of_epoch.shuffle(&mut batches);
        }
        batches
    }

    /// The batches of an epoch from index `from` on of which `wanted` says yes, made on a thread of
    /// their own.
    pub fn ahead(
        self: &Arc<Self>,
        epoch: u64,
        from: u64,
        wanted: impl Fn(u64) -> bool + Send + 'static,
    ) -> Ahead<TextBatch, LabelledTextError> {
        let (all, batches) = (self.clone(), (0u64..).zip(self.texts(epoch)));
        let wanted = batches.filter(move |(index, _)| *index >= from && wanted(*index));
        Ahead::new("texts", wanted.map(move |(_, texts)| Ok(all.train().batch(&texts))))
    }

    /// The batches of an epoch, made here.
    pub fn epoch(&self, epoch: u64) -> impl Iterator<Item = TextBatch> + '_ {
        self.texts(epoch).into_iter().map(|texts| self.train().batch(&texts))
    }
}
