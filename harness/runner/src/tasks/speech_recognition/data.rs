//! Prepared recordings for training and evaluation of an acoustic model.

use std::collections::BTreeMap;

use zoo_models::tasks::speech_recognition::{AcousticModel, FrameGrid, SpeechBatch};
use zoo_results::metrics::Scorer;
use zoo_results::report::page::SplitCounts;

use super::batches::{evaluation, of_models};
use super::material::SpeechMaterial;
use super::{Recipe, decode};
use crate::context::Context;
use crate::error::Result;
use crate::run::data::{Decoded, EvaluationBatches, TaskData};
use crate::run::sweep::{Swept, SweptWeights};
use crate::tasks::recordings::RecordingData;

/// Prepared recordings with the label classes of their transcripts.
pub struct RecognitionData {
    /// Splits and label classes.
    pub recordings: RecordingData,
}

impl TaskData for RecognitionData {
    type Task = zoo_recipes::SpeechRecognition;
    type Material = SpeechMaterial;

    fn material(&self, _: &Recipe) -> Result<SpeechMaterial> {
        let prepared = self.recordings.prepared.clone();
        let features = prepared.front_end().width();
        Ok(SpeechMaterial { features, classes: prepared.classes.clone(), prepared: Some(prepared) })
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        self.recordings.fingerprints()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        self.recordings.counts()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        self.recordings.training_splits()
    }

    fn evaluation_splits(&self, recipe: &Recipe, name: &str) -> Result<Vec<String>> {
        self.recordings.evaluation_splits(&recipe.data, name)
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, SpeechBatch>> {
        let prepared = &self.recordings.prepared;
        let split = prepared.eval_set(name, &recipe.data.eval[name])?;
        let grid = FrameGrid::of(recipe.model.layers());
        let batches = evaluation(prepared, split, &recipe.data.batching);
        Ok(Box::new(batches.map(move |batch| Ok(of_models(batch?, grid)?))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &AcousticModel,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, &self.recordings, wanted, model)
    }

    fn sweep(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &AcousticModel,
        weights: &SweptWeights,
        scorer: Scorer,
    ) -> Result<Swept> {
        self.recordings.sweep(ctx, recipe, wanted, model, weights, scorer)
    }
}
