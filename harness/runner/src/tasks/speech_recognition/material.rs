//! What a recogniser is trained on: frames of recordings and their labels.

use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::speech::{Classes, PreparedSpeech, SpeechBatches};
use zoo_models::Cost;
use zoo_models::tasks::speech_recognition::{
    self, AcousticModel, CtcClasses, CtcLoss, FrameGrid, SpeechBatch,
};
use zoo_recipes::tasks::speech_recognition::CtcLossSpec;

use super::Recipe;
use super::batches::of_models;
use crate::error::Result;
use crate::run::data::{Aim, Material, Source};
use crate::tasks::recordings::Recordings;

/// Utterances to train on.
pub struct SpeechMaterial {
    /// Features of a frame.
    pub features: usize,
    /// What a frame may be.
    pub classes: Arc<Classes>,
    /// The recordings; none where a caller makes its own batches.
    pub prepared: Option<Arc<PreparedSpeech>>,
}

impl SpeechMaterial {
    /// Of a recipe alone: a model without data.
    ///
    /// # Errors
    /// The tokenizer's values are not valid.
    pub fn of(recipe: &Recipe) -> Result<Self> {
        let features = recipe.data.features.features() as usize;
        Ok(Self { features, classes: Arc::new(Classes::of(&recipe.data.tokenizer)?), prepared: None })
    }
}

impl Material for SpeechMaterial {
    type Task = zoo_recipes::SpeechRecognition;
    type Model = AcousticModel;
    type Batch = SpeechBatch;

    const UNIT: &'static str = "frames";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> AcousticModel {
        AcousticModel::new(recipe.model.layers(), self.features, self.classes.len(), seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<AcousticModel, SpeechBatch> {
        let CtcLossSpec::Ctc { denominator } = recipe.loss;
        let classes = CtcClasses { blank: self.classes.blank(), optional: self.classes.silence() };
        let loss = CtcLoss::new(denominator, classes);
        Aim { objective: Box::new(loss.clone()), running: Some(Box::new(loss)) }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<SpeechBatch>>> {
        let prepared =
            self.prepared.as_ref().expect("recordings are there where their batches are asked for");
        let batches = SpeechBatches::training(prepared, &recipe.data, seed)?;
        let grid = FrameGrid::of(recipe.model.layers());
        Ok(Box::new(Recordings::new(
            batches,
            move |batch| of_models(batch, grid),
            |batch| Self::amounts(batch).0,
        )))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        speech_recognition::cost(recipe.model.layers(), self.features as u64, self.classes.len() as u64)
    }

    fn classes(&self, _: &Recipe) -> usize {
        self.classes.len()
    }

    fn amounts(batch: &SpeechBatch) -> (u64, u64) {
        let labels: usize = batch.labels.iter().map(Vec::len).sum();
        (batch.lengths.iter().sum::<usize>() as u64, labels as u64)
    }

    fn examples(batch: &SpeechBatch) -> u64 {
        batch.lengths.len() as u64
    }
}
