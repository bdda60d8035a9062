//! Batches of frames, as the models read them.

use std::sync::Arc;

use zoo_datasets::speech::{self, PreparedSpeech, SpeechBatches, SpeechError, SpeechSplit};
use zoo_models::models::SpeechBatch;
use zoo_training::batches::{BatchSource, Batches, Fetched, Share};
use zoo_training::error::OtherError;

use crate::stages::task::{MadeHere, Source};

/// Seconds of speech that are evaluated together.
const EVALUATION_SECONDS: f64 = 120.0;

/// Batches of the training split.
pub struct TrainingBatches {
    batches: Arc<SpeechBatches>,
}

impl TrainingBatches {
    pub fn new(batches: Arc<SpeechBatches>) -> Self {
        Self { batches }
    }
}

impl BatchSource<SpeechBatch> for TrainingBatches {
    fn epoch_len(&mut self, epoch: u64) -> Result<u64, OtherError> {
        Ok(self.batches.per_epoch(epoch) as u64)
    }

    fn batches(
        &mut self,
        epoch: u64,
        from: u64,
        share: Share,
    ) -> Result<Batches<'_, SpeechBatch>, OtherError> {
        let ahead = self.batches.ahead(epoch, from, move |index| share.has(index));
        Ok(Box::new(ahead.map(|made| Ok(fetched(made?.1)))))
    }
}

impl Source<SpeechBatch> for TrainingBatches {
    fn padding(&self) -> f64 {
        self.batches.padding()
    }

    fn made_here(&self) -> MadeHere<'_, SpeechBatch> {
        let indices = 0..self.batches.per_epoch(0);
        Box::new(indices.map(|index| Ok(fetched(self.batches.batch(0, index)?))))
    }
}

/// Speed is counted in frames.
fn fetched(batch: speech::SpeechBatch) -> Fetched<SpeechBatch> {
    let batch = of_models(batch);
    let tokens = batch.lengths.iter().sum::<usize>() as u64;
    Fetched { batch, tokens }
}

/// A padded batch as models read it.
pub fn of_models(batch: speech::SpeechBatch) -> SpeechBatch {
    SpeechBatch { features: batch.features, lengths: batch.lengths, labels: batch.labels }
}

/// All utterances of a split, those of like length together.
pub fn evaluation<'a>(
    prepared: &'a PreparedSpeech,
    split: &'a SpeechSplit,
) -> impl Iterator<Item = Result<speech::SpeechBatch, SpeechError>> + use<'a> {
    speech::evaluation_batches(prepared, split, EVALUATION_SECONDS)
}
