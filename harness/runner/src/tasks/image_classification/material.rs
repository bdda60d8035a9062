//! Training material of a classifier: pictures with their classes.

use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::tasks::image_classification::{self as datasets, PreparedPictures, TrainingPictures};
use zoo_models::Cost;
use zoo_models::tasks::image_classification::{Classifier, ClassifierLoss, PictureBatch, cost};
use zoo_results::exit::Exit;
use zoo_training::batches::{BatchSource, Batches, Fetched, Share};
use zoo_training::error::OtherError;

use super::{Recipe, size};
use crate::error::{Failure, Result};
use crate::run::data::{Aim, MadeHere, Material, Source};

/// Pictures to train on.
pub struct Pictures {
    /// The pictures; `None` if a caller makes its own batches.
    pub prepared: Option<Arc<PreparedPictures>>,
}

impl Material for Pictures {
    type Task = zoo_recipes::ImageClassification;
    type Model = Classifier;
    type Batch = PictureBatch;

    const UNIT: &'static str = "pictures";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> Classifier {
        Classifier::new(&recipe.model, size(recipe), seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<Classifier, PictureBatch> {
        Aim { objective: Box::new(ClassifierLoss::new(&recipe.loss)), running: None }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<PictureBatch>>> {
        let missing = || Failure::new(Exit::Internal, "batches are asked for without pictures");
        let prepared = self.prepared.as_ref().ok_or_else(missing)?;
        let pictures = TrainingPictures::new(prepared, &recipe.data, seed);
        let pictures = pictures.map_err(|error| Failure::new(Exit::Data, error.to_string()))?;
        Ok(Box::new(PictureSource { pictures: Arc::new(pictures) }))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        let nothing = Cost { parameters: 0, source_token: 0, target_token: 0 };
        cost(&recipe.model, size(recipe)).unwrap_or(nothing)
    }

    fn classes(&self, recipe: &Recipe) -> usize {
        recipe.data.classes as usize
    }

    fn amounts(batch: &PictureBatch) -> (u64, u64) {
        (batch.len() as u64, batch.len() as u64)
    }

    fn examples(batch: &PictureBatch) -> u64 {
        batch.len() as u64
    }
}

/// A batch in the form that the model reads.
pub fn of_models(batch: datasets::PictureBatch) -> PictureBatch {
    let datasets::PictureBatch { pixels, size, labels } = batch;
    PictureBatch { pixels, size, labels }
}

/// Training batches of pictures.
struct PictureSource {
    pictures: Arc<TrainingPictures>,
}

impl PictureSource {
    fn fetched(batch: datasets::PictureBatch) -> Fetched<PictureBatch> {
        let batch = of_models(batch);
        Fetched { tokens: batch.len() as u64, batch }
    }
}

impl BatchSource<PictureBatch> for PictureSource {
    fn epoch_len(&mut self, epoch: u64) -> std::result::Result<u64, OtherError> {
        Ok(self.pictures.per_epoch(epoch) as u64)
    }

    fn batches(
        &mut self,
        epoch: u64,
        from: u64,
        share: Share,
    ) -> std::result::Result<Batches<'_, PictureBatch>, OtherError> {
        let ahead = self.pictures.ahead(epoch, from, move |index| share.has(index));
        Ok(Box::new(ahead.map(|batch| Ok(Self::fetched(batch?)))))
    }
}

impl Source<PictureBatch> for PictureSource {
    fn padding(&self) -> f64 {
        0.0
    }

    fn made_here(&self) -> MadeHere<'_, PictureBatch> {
        let indices = 0..self.pictures.per_epoch(0);
        Box::new(indices.map(|index| Ok(Self::fetched(self.pictures.batch(0, index)?))))
    }
}
