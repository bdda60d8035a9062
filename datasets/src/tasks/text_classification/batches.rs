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
    /// Numbers `[texts, positions]`; padding is 0, or `NO_WORD` if 0 is the number of a word.
    pub ids: Vec<u32>,
    /// Class of each text.
    pub labels: Vec<u32>,
    /// Part of a cross-validation that the texts belong to; 0 without one.
    pub fold: u32,
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
    /// [`LabelledTextError::NoBatch`] if the training texts do not fill a batch.
    pub fn new(
        prepared: &Arc<PreparedTexts>,
        data: &LabelledDataSpec,
        seed: u64,
    ) -> Result<Self, LabelledTextError> {
        let train = prepared.train(data)?;
        let batch = (data.batching.texts as usize).max(1);
        let (texts, remainder) = (train.texts.len(), data.batching.remainder);
        let (split, order) = (train.name.clone(), data.batching.order);
        let found = Self { prepared: prepared.clone(), split, batch, order, remainder, seed };
        match found.per_epoch() {
            0 => Err(LabelledTextError::NoBatch { split: found.split, texts, batch }),
            _ => Ok(found),
        }
    }

    fn train(&self) -> &TextSplit {
        &self.prepared.splits[&self.split]
    }

    /// Number of batches of an epoch.
    pub fn per_epoch(&self) -> usize {
        let batches = |texts: Vec<usize>| match self.remainder {
            LabelledRemainder::Short => texts.len().div_ceil(self.batch),
            LabelledRemainder::Drop => texts.len() / self.batch,
        };
        self.train().by_fold().into_iter().map(batches).sum()
    }

    /// Share of padding in the training texts.
    pub fn padding(&self) -> f64 {
        let (train, positions) = (self.train(), self.prepared.positions);
        let words: usize = train.texts.iter().map(|text| text.len().min(positions)).sum();
        1.0 - words as f64 / (train.texts.len() * positions).max(1) as f64
    }

    /// The texts of each batch of an epoch. The parts of a cross-validation have batches of their
    /// own, in a random order.
    fn texts(&self, epoch: u64) -> Vec<Vec<usize>> {
        let mut of_epoch = RandomStream::new(self.seed, Purpose::EpochOrder, epoch);
        let parts = self.train().by_fold();
        let several = parts.len() > 1;
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for (part, mut order) in (0u64..).zip(parts) {
            match self.order {
                LabelledOrder::Shuffled => of_epoch.shuffle(&mut order),
                LabelledOrder::ShuffledBatches => {
                    RandomStream::new(self.seed, Purpose::Bucketing, part).shuffle(&mut order);
                }
            }
            let whole =
                |texts: &&[usize]| texts.len() == self.batch || self.remainder == LabelledRemainder::Short;
            batches.extend(order.chunks(self.batch).filter(whole).map(<[usize]>::to_vec));
        }
        if several || self.order == LabelledOrder::ShuffledBatches {
            of_epoch.shuffle(&mut batches);
        }
        batches
    }

    /// The batches of an epoch from index `from` on for which `wanted` returns true, made on a
    /// thread of their own.
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
