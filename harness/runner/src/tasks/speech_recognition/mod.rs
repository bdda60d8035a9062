//! Speech recognition: recordings to class probabilities per frame, and from there to words.

mod ask;
mod batches;
mod data;
mod decode;
mod generated;
mod infer;
mod material;
mod parity;
mod recogniser;
mod search;
mod searching;
mod sweep;

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use zoo_datasets::audio::Features;
use zoo_datasets::speech::Classes;
use zoo_models::Cost;
use zoo_models::tasks::speech_recognition;
use zoo_recipes::RecipeOf;
use zoo_recipes::tasks::speech_recognition::{
    AcousticLayerSpec, ClassTokenizerSpec, CtcDenominator, CtcLossSpec,
};
use zoo_results::metrics::{OfTerm, Unit};

use self::data::RecognitionData;
use self::material::SpeechMaterial;
use super::recordings::{self, RecordingData};
use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::Result;
use crate::run::conventions::claimed_signatures;
use crate::run::data::{Material, Sets};
use crate::run::ready::Ready;
use crate::run::timed_arm::{Making, Measurable, Updates, of_updates};
use crate::task::Task;
use crate::task::aligner::{Aligner, Found, learned};
use crate::task::inference::Inference;
use crate::task::searching::Searching;
use crate::task::shape::Shape;
use crate::task::size::{ModelSize, Workload};

/// Signature for recipes without claims: word error rate in lower case.
const USUAL_SIGNATURE: &str = "metric:wer|nrefs:1|case:lc|space:collapse|align:jiwer";

/// A recipe of this task.
pub type Recipe = RecipeOf<zoo_recipes::SpeechRecognition>;

/// The task of a recipe.
pub struct SpeechRecognition<'r> {
    /// The recipe.
    pub recipe: &'r Recipe,
}

impl Task for SpeechRecognition<'_> {
    fn name(&self) -> &'static str {
        "speech-recognition"
    }

    fn size(&self) -> Option<ModelSize> {
        let rows = classes(&self.recipe.data.tokenizer)?;
        Some(ModelSize { rows, exact: true, cost: cost(self.recipe, rows) })
    }

    fn cost(&self) -> Cost {
        cost(self.recipe, classes(&self.recipe.data.tokenizer).unwrap_or(1))
    }

    fn width(&self) -> usize {
        let width = |layer: &AcousticLayerSpec| match layer {
            AcousticLayerSpec::Convolution2d(layer) => layer.channels,
            AcousticLayerSpec::Convolution(layer) => layer.channels,
            AcousticLayerSpec::Recurrent(layer) => layer.hidden,
            AcousticLayerSpec::Dense(layer) => layer.units,
            AcousticLayerSpec::RowConvolution(_) => 1,
        };
        self.recipe.model.layers().layer.iter().map(width).max().unwrap_or(1) as usize
    }

    fn workload(&self) -> Workload {
        recordings::workload(self.recipe)
    }

    fn unit(&self) -> &'static str {
        SpeechMaterial::UNIT
    }

    fn shape(&self) -> Shape {
        recordings::shape(self.recipe)
    }

    fn own_examples(&self, base: &Path) -> Result<Option<usize>> {
        recordings::own_examples(&self.recipe.data, base)
    }

    fn own_files(&self, base: &Path) -> Result<Vec<(String, String)>> {
        recordings::own_files(&self.recipe.data, base)
    }

    fn prepared_folder(&self, ctx: &Context, base: &Path) -> Result<Option<PathBuf>> {
        Ok(Some(recordings::folder(ctx, &self.recipe.data, base)))
    }

    fn generated(&self) -> Option<String> {
        recordings::generated(&self.recipe.data)
    }

    fn signatures(&self, eval: &str, _: &str) -> Vec<String> {
        claimed_signatures(self.recipe, eval, || USUAL_SIGNATURE.to_owned())
    }

    fn training_unit(&self, of: OfTerm) -> Option<Unit> {
        let per_utterance = CtcLossSpec::Ctc { denominator: CtcDenominator::Utterances };
        (of == OfTerm::Objective && self.recipe.loss == per_utterance).then_some(Unit::Sentence)
    }

    fn features(&self, file: &Path, training: bool) -> Result<Features> {
        recordings::features(self.recipe, file, training)
    }

    fn parity(&self) -> Found {
        parity::parity(self.recipe.model.layers())
    }

    fn align(&self, aligner: &mut Aligner) -> Found {
        parity::align(self.recipe.model.layers(), aligner)
    }

    fn counted(&self) -> std::result::Result<(u64, String), String> {
        let frames = SpeechMaterial::of(self.recipe).map_err(|failure| failure.to_string())?;
        Ok((frames.cost(self.recipe).parameters, format!("{} classes", frames.classes(self.recipe))))
    }

    fn built(&self) -> std::result::Result<u64, String> {
        let frames = SpeechMaterial::of(self.recipe).map_err(|failure| failure.to_string())?;
        Ok(learned(&frames.model(self.recipe, 0, &Device::flex())))
    }

    fn prepare(&self, ctx: &Context, base: &Path, sets: Sets<'_>) -> Result<Box<dyn Ready>> {
        let recordings = RecordingData::prepare(ctx, self.recipe, base, sets)?;
        Ok(Box::new(RecognitionData { recordings }))
    }

    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>> {
        recordings::references(ctx, self.recipe, base, eval)
    }

    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable> {
        let frames = SpeechMaterial::of(self.recipe)?;
        let updates = match shape {
            None => generated::updates(self.recipe, &frames),
            Some(Shape { sentences, tokens }) => {
                searching::readable(self.recipe, Shape { sentences, tokens })?;
                Updates::full(generated::full_batches(self.recipe, &frames, sentences, tokens))
            }
        };
        of_updates(ctx, self.recipe, &frames, updates, making)
    }

    fn searching(&self, seed: u64, device: &Device, shape: Shape, search: &str) -> Result<Searching> {
        searching::searching(self.recipe, seed, device, shape, search)
    }

    fn hub_name(&self) -> &'static str {
        "automatic-speech-recognition"
    }

    fn example_use(&self) -> &'static str {
        "infer MODEL speech.wav"
    }

    fn keeps_vocabulary(&self) -> bool {
        false
    }

    fn open(&self, inference: &Inference) -> Result<()> {
        ask::open(inference, self.recipe)
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::transcribe(inference, self.recipe, args)
    }
}

/// Classes of a frame, including the blank; `None` if the tokenizer's values are not valid.
fn classes(tokenizer: &ClassTokenizerSpec) -> Option<usize> {
    Classes::of(tokenizer).ok().map(|classes| classes.len())
}

fn cost(recipe: &Recipe, classes: usize) -> Cost {
    let features = recipe.data.features.features();
    speech_recognition::cost(recipe.model.layers(), features.into(), classes as u64)
}
