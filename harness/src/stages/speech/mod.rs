//! Speech recognition: recordings to the classes of frames, and from there to words.

mod batches;
mod decode;
pub mod generated;
mod infer;
mod recogniser;
mod search;
mod sweep;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::speech::{Classes, Fault, PreparedSpeech, SpeechBatches, SpeechSplit};
use zoo_models::models::acoustic::{self, AcousticModel, FrameGrid};
use zoo_models::models::{Cost, CtcClasses, CtcLoss, SpeechBatch};
use zoo_recipes::{AcousticSpec, Architecture, EvalSetSpec, LossSpec, Recipe};
use zoo_results::report::page::SplitCounts;

pub use infer::{Hypothesis, Listener, Transcription, features};
pub use recogniser::Recogniser;
pub use sweep::{Swept, SweptWeights};

pub use self::batches::Recordings;
use self::batches::{evaluation, of_models};
use super::task::{Aim, Decoded, EvaluationBatches, Material, Source, Task};
use crate::context::Context;
use crate::error::Result;

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
    /// The tokenizer has no classes.
    pub fn of(recipe: &Recipe) -> Result<Self> {
        let features = recipe.data.features.as_ref().map_or(0, |features| features.features() as usize);
        Ok(Self { features, classes: Arc::new(Classes::of(&recipe.data.tokenizer)?), prepared: None })
    }
}

/// The layers of a recipe of speech.
///
/// # Panics
/// If it is of text; a recipe that was checked and reads recordings has layers.
pub fn layers(recipe: &Recipe) -> &AcousticSpec {
    match recipe.model.architecture() {
        Some(Architecture::Acoustic(spec)) => spec,
        _ => panic!("a model of frames"),
    }
}

impl Material for SpeechMaterial {
    type Model = AcousticModel;
    type Batch = SpeechBatch;

    const UNIT: &'static str = "frames";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> AcousticModel {
        AcousticModel::new(layers(recipe), self.features, self.classes.len(), seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<AcousticModel, SpeechBatch> {
        let LossSpec::Ctc { denominator } = recipe.loss else { panic!("a loss of frames") };
        let classes = CtcClasses { blank: self.classes.blank(), optional: self.classes.silence() };
        let loss = CtcLoss::new(denominator, classes);
        Aim { objective: Box::new(loss.clone()), running: Some(Box::new(loss)) }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<SpeechBatch>>> {
        let prepared =
            self.prepared.as_ref().expect("recordings are there where their batches are asked for");
        let batches = SpeechBatches::training(prepared, &recipe.data, seed)?;
        let grid = FrameGrid::of(layers(recipe));
        Ok(Box::new(Recordings::new(
            batches,
            move |batch| of_models(batch, grid),
            |batch| Self::amounts(batch).0,
        )))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        acoustic::cost(layers(recipe), self.features as u64, self.classes.len() as u64)
    }

    fn classes(&self) -> usize {
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

/// Prepared recordings.
pub struct Speech {
    /// Splits and classes.
    pub prepared: Arc<PreparedSpeech>,
    /// What paths of the recipe are relative to.
    pub base: PathBuf,
}

impl Task for Speech {
    type Material = SpeechMaterial;

    fn material(&self, _: &Recipe) -> Result<SpeechMaterial> {
        let prepared = self.prepared.clone();
        let features = prepared.front_end().width();
        Ok(SpeechMaterial { features, classes: prepared.classes.clone(), prepared: Some(prepared) })
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), split.fingerprint())).collect()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        let of = |split: &SpeechSplit| {
            let counts = &split.statistics;
            let named = |fault: &Fault| {
                let name = serde_json::to_value(fault).ok();
                name.as_ref().and_then(|name| name.as_str()).unwrap_or("other").replace('-', " ")
            };
            let mut left_out: BTreeMap<String, u64> =
                counts.skipped.iter().map(|(fault, count)| (named(fault), *count)).collect();
            for (why, count) in [("too short", counts.too_short), ("too long", counts.too_long)] {
                if count > 0 {
                    left_out.insert(why.to_owned(), count);
                }
            }
            let amounts = [
                ("seconds", counts.seconds),
                ("shortest, s", counts.shortest_seconds),
                ("longest, s", counts.longest_seconds),
                ("words", counts.words as f64),
                ("labels", counts.labels as f64),
            ];
            SplitCounts {
                read: counts.read,
                kept: counts.utterances,
                left_out,
                amounts: amounts.into_iter().map(|(what, amount)| (what.to_owned(), amount)).collect(),
            }
        };
        self.prepared.splits.iter().map(|(name, split)| (name.clone(), of(split))).collect()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        Ok(vec![self.prepared.train()?.name.clone()])
    }

    fn evaluation_splits(&self, name: &str, set: &EvalSetSpec) -> Result<Vec<String>> {
        Ok(vec![self.prepared.eval_set(name, set)?.name.clone()])
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, SpeechBatch>> {
        let split = self.prepared.eval_set(name, &recipe.data.eval[name])?;
        let grid = FrameGrid::of(layers(recipe));
        let batches = evaluation(&self.prepared, split, &recipe.data.batching);
        Ok(Box::new(batches.map(move |batch| Ok(of_models(batch?, grid)?))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &AcousticModel,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, self, wanted, model)
    }
}
