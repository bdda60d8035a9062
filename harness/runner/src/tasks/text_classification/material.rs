//! Training material of a classifier of texts.

use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::tasks::text_classification::{self as datasets, PreparedTexts, TrainingTexts};
use zoo_models::Cost;
use zoo_models::tasks::text_classification::{TextBatch, TextLoss, TextModel, cost};
use zoo_results::exit::Exit;
use zoo_training::batches::{BatchSource, Batches, Fetched, Share};
use zoo_training::error::OtherError;

use super::{Recipe, prepare, rows};
use crate::error::{Failure, Result};
use crate::run::data::{Aim, MadeHere, Material, Source};

/// Texts to train on.
pub struct Texts {
    /// The texts; `None` if a caller makes its own batches.
    pub prepared: Option<Arc<PreparedTexts>>,
}

impl Texts {
    /// Positions of the model's input, and rows of its embedding. Without the texts, those that the
    /// recipe states, or assumed ones.
    fn sizes(&self, recipe: &Recipe) -> (u32, usize) {
        match &self.prepared {
            Some(prepared) => {
                (u32::try_from(prepared.positions).unwrap_or(u32::MAX), prepared.vocabulary.rows())
            }
            None => (recipe.data.positions(), rows(recipe).0),
        }
    }
}

impl Material for Texts {
    type Task = zoo_recipes::TextClassification;
    type Model = TextModel;
    type Batch = TextBatch;

    const UNIT: &'static str = "texts";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> TextModel {
        let (positions, rows) = self.sizes(recipe);
        // Without prepared texts, one model stands for all parts of a cross-validation.
        let folds = self.prepared.as_ref().map_or(1, |_| recipe.data.models());
        TextModel::new(&recipe.model, [positions as usize, rows], folds, seed, device)
    }

    fn aim(&self, _: &Recipe) -> Aim<TextModel, TextBatch> {
        let loss = TextLoss::default();
        Aim { objective: Box::new(loss.clone()), running: Some(Box::new(loss)) }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<TextBatch>>> {
        let missing = || Failure::new(Exit::Internal, "batches are asked for without texts");
        let prepared = self.prepared.as_ref().ok_or_else(missing)?;
        let texts = TrainingTexts::new(prepared, &recipe.data, seed).map_err(prepare::failure)?;
        Ok(Box::new(TextSource { texts: Arc::new(texts) }))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        let nothing = Cost { parameters: 0, source_token: 0, target_token: 0 };
        let (positions, rows) = self.sizes(recipe);
        cost(&recipe.model, positions, rows as u64).unwrap_or(nothing)
    }

    fn classes(&self, recipe: &Recipe) -> usize {
        recipe.data.classes as usize
    }

    fn amounts(batch: &TextBatch) -> (u64, u64) {
        (batch.len() as u64, batch.len() as u64)
    }

    fn examples(batch: &TextBatch) -> u64 {
        batch.len() as u64
    }
}

/// A batch in the form that the model reads.
pub fn of_models(batch: datasets::TextBatch) -> TextBatch {
    let datasets::TextBatch { ids, labels, fold } = batch;
    TextBatch { ids, labels, fold }
}

/// Training batches of texts.
struct TextSource {
    texts: Arc<TrainingTexts>,
}

impl TextSource {
    fn fetched(batch: datasets::TextBatch) -> Fetched<TextBatch> {
        let batch = of_models(batch);
        Fetched { tokens: batch.len() as u64, batch }
    }
}

impl BatchSource<TextBatch> for TextSource {
    fn epoch_len(&mut self, _: u64) -> std::result::Result<u64, OtherError> {
        Ok(self.texts.per_epoch() as u64)
    }

    fn batches(
        &mut self,
        epoch: u64,
        from: u64,
        share: Share,
    ) -> std::result::Result<Batches<'_, TextBatch>, OtherError> {
        let ahead = self.texts.ahead(epoch, from, move |index| share.has(index));
        Ok(Box::new(ahead.map(|batch| Ok(Self::fetched(batch?)))))
    }
}

impl Source<TextBatch> for TextSource {
    fn padding(&self) -> f64 {
        self.texts.padding()
    }

    fn made_here(&self) -> MadeHere<'_, TextBatch> {
        let batches: Vec<datasets::TextBatch> = self.texts.epoch(0).collect();
        Box::new(batches.into_iter().map(|batch| Ok(Self::fetched(batch))))
    }
}
