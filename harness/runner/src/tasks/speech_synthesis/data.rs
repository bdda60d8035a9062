//! Prepared recordings for training and evaluation of a synthesizer.

use std::collections::BTreeMap;

use zoo_models::tasks::speech_synthesis::{SynthesisBatch, Synthesiser};
use zoo_results::report::page::SplitCounts;

use super::batches::{evaluation, of_models};
use super::material::{SynthesisMaterial, frame_width};
use super::{Recipe, decode};
use crate::context::Context;
use crate::error::Result;
use crate::run::data::{Decoded, EvaluationBatches, TaskData};
use crate::tasks::recordings::RecordingData;

/// Prepared recordings with the symbols of their texts.
pub struct SynthesisData {
    /// Splits and symbols.
    pub recordings: RecordingData,
}

impl TaskData for SynthesisData {
    type Task = zoo_recipes::SpeechSynthesis;
    type Material = SynthesisMaterial;

    fn material(&self, recipe: &Recipe) -> Result<SynthesisMaterial> {
        let prepared = self.recordings.prepared.clone();
        let symbols = prepared.classes.names().len();
        Ok(SynthesisMaterial { symbols, width: frame_width(recipe), prepared: Some(prepared) })
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

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, SynthesisBatch>> {
        let prepared = &self.recordings.prepared;
        let split = prepared.eval_set(name, &recipe.data.eval[name])?;
        Ok(Box::new(evaluation(prepared, split).map(|batch| Ok(of_models(batch?)))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &Synthesiser,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, &self.recordings, wanted, model)
    }
}
