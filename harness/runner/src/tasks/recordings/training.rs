//! Training batches of recordings in the models' format.

use std::sync::{Arc, PoisonError};

use zoo_datasets::speech::{self, SpeechBatches};
use zoo_training::batches::{BatchSource, Batches, Fetched, Share};
use zoo_training::error::OtherError;

use crate::run::data::{LeftOut, MadeHere, Source};

/// Training batches of recordings, converted to the batch type `B` of a model.
pub struct Recordings<B> {
    batches: Arc<SpeechBatches>,
    convert: Box<dyn Fn(speech::SpeechBatch) -> Result<B, String> + Send>,
    /// Number of frames of a batch, for speed measurements.
    frames: fn(&B) -> u64,
    left_out: LeftOut,
}

impl<B> Recordings<B> {
    /// `convert` makes a batch of the model; `frames` counts the frames of such a batch.
    pub fn new(
        batches: Arc<SpeechBatches>,
        convert: impl Fn(speech::SpeechBatch) -> Result<B, String> + Send + 'static,
        frames: fn(&B) -> u64,
    ) -> Self {
        Self { batches, convert: Box::new(convert), frames, left_out: LeftOut::default() }
    }

    fn fetched(&self, batch: speech::SpeechBatch) -> Result<Fetched<B>, OtherError> {
        if !batch.skipped.is_empty() {
            let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
            left_out.extend(batch.skipped.iter().map(|one| (one.utterance.clone(), one.problem.clone())));
        }
        let batch = (self.convert)(batch)?;
        let tokens = (self.frames)(&batch);
        Ok(Fetched { batch, tokens })
    }
}

impl<B> BatchSource<B> for Recordings<B> {
    fn epoch_len(&mut self, epoch: u64) -> Result<u64, OtherError> {
        Ok(self.batches.per_epoch(epoch) as u64)
    }

    fn batches(&mut self, epoch: u64, from: u64, share: Share) -> Result<Batches<'_, B>, OtherError> {
        let ahead = self.batches.ahead(epoch, from, move |index| share.has(index));
        Ok(Box::new(ahead.map(|made| self.fetched(made?.1))))
    }
}

impl<B> Source<B> for Recordings<B> {
    fn padding(&self) -> f64 {
        self.batches.padding()
    }

    fn left_out(&self) -> LeftOut {
        self.left_out.clone()
    }

    fn made_here(&self) -> MadeHere<'_, B> {
        let indices = 0..self.batches.per_epoch(0);
        Box::new(indices.map(|index| self.fetched(self.batches.batch(0, index)?)))
    }
}
