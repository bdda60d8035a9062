//! Training material of a language model: windows of a text.

use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::tasks::language_modelling::{self as datasets, PreparedLanguage, TrainingWindows};
use zoo_models::Cost;
use zoo_models::tasks::language_modelling::{LanguageLoss, LanguageModel, WindowBatch, cost};
use zoo_recipes::tasks::language_modelling::EvaluationWindowsSpec;
use zoo_results::exit::Exit;
use zoo_training::batches::{BatchSource, Batches, Fetched, Share};
use zoo_training::error::OtherError;

use super::{Recipe, prepare};
use crate::error::{Failure, Result};
use crate::run::data::{Aim, MadeHere, Material, Source};

/// A text to train on.
pub struct Text {
    /// The text; `None` if a caller makes its own batches.
    pub prepared: Option<Arc<PreparedLanguage>>,
}

impl Text {
    /// Number of units of the text; without a text, that of the recipe.
    fn units(&self, recipe: &Recipe) -> usize {
        let of_text = self.prepared.as_ref().map(|prepared| prepared.units.len());
        of_text.unwrap_or(recipe.data.vocabulary.size as usize)
    }
}

impl Material for Text {
    type Task = zoo_recipes::LanguageModelling;
    type Model = LanguageModel;
    type Batch = WindowBatch;

    const UNIT: &'static str = "tokens";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> LanguageModel {
        let batching = recipe.data.batching;
        let rows = if batching.carries() { batching.shape()[0] as usize } else { 0 };
        LanguageModel::new(&recipe.model, self.units(recipe), rows, seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<LanguageModel, WindowBatch> {
        let [_, steps] = recipe.data.batching.shape();
        let validation = recipe.data.eval.get("valid").map(|set| set.windows);
        let carries = validation.is_some_and(EvaluationWindowsSpec::carries);
        let loss = LanguageLoss::new(&recipe.loss, steps, carries);
        Aim { objective: Box::new(loss.clone()), running: Some(Box::new(loss)) }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<WindowBatch>>> {
        let missing = || Failure::new(Exit::Internal, "batches are asked for without a text");
        let prepared = self.prepared.as_ref().ok_or_else(missing)?;
        let windows = TrainingWindows::new(prepared, &recipe.data, seed).map_err(prepare::failure)?;
        Ok(Box::new(WindowSource { windows }))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        cost(&recipe.model, self.units(recipe) as u64)
    }

    fn classes(&self, recipe: &Recipe) -> usize {
        self.units(recipe)
    }

    fn amounts(batch: &WindowBatch) -> (u64, u64) {
        (batch.inputs.len() as u64, batch.predicted() as u64)
    }

    fn examples(batch: &WindowBatch) -> u64 {
        batch.rows as u64
    }
}

/// A batch in the form that the model reads.
pub fn of_models(batch: datasets::WindowBatch) -> WindowBatch {
    let datasets::WindowBatch { inputs, targets, rows, begins } = batch;
    WindowBatch { inputs, targets, rows, begins }
}

/// Training batches of windows.
struct WindowSource {
    windows: TrainingWindows,
}

impl WindowSource {
    fn fetched(batch: datasets::WindowBatch) -> Fetched<WindowBatch> {
        let batch = of_models(batch);
        Fetched { tokens: batch.predicted() as u64, batch }
    }
}

impl BatchSource<WindowBatch> for WindowSource {
    fn epoch_len(&mut self, _: u64) -> std::result::Result<u64, OtherError> {
        Ok(self.windows.per_epoch())
    }

    fn batches(
        &mut self,
        epoch: u64,
        from: u64,
        share: Share,
    ) -> std::result::Result<Batches<'_, WindowBatch>, OtherError> {
        let ahead = self.windows.ahead(epoch, from, move |index| share.has(index));
        Ok(Box::new(ahead.map(|batch| Ok(Self::fetched(batch?)))))
    }
}

impl Source<WindowBatch> for WindowSource {
    fn padding(&self) -> f64 {
        0.0
    }

    fn made_here(&self) -> MadeHere<'_, WindowBatch> {
        let indices = 0..self.windows.per_epoch() as usize;
        Box::new(indices.map(|index| Ok(Self::fetched(self.windows.batch(0, index as u64)))))
    }
}
