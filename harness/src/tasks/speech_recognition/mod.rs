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
mod sweep;

use std::path::Path;

use burn::tensor::Device;
use zoo_datasets::speech::Classes;
use zoo_models::models::Cost;
use zoo_models::models::acoustic::{self, FrameGrid};
use zoo_recipes::{
    AcousticLayerSpec, Architecture, CtcDenominator, DataSpec, DecodeSpec, FeaturesSpec, LossSpec, ModelSpec,
    Recipe, Resolved, TokenizerSpec,
};
use zoo_results::metrics::{OfTerm, Unit};

use self::data::RecognitionData;
use self::material::{SpeechMaterial, layers};
use super::Task;
use super::recordings::{self, RecordingData};
use crate::cli::InferArgs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::evidence::{Aligner, Found, learned};
use crate::size::{ModelSize, Workload};
use crate::stages::Inference;
use crate::stages::bench::{Searching, Shape};
use crate::stages::data::{Material, Sets};
use crate::stages::evaluate::claimed_signatures;
use crate::stages::ready::Ready;
use crate::stages::timed_arm::{Making, Measurable, Updates, of_updates};

/// Signature for recipes without claims: word error rate in lower case.
const USUAL_SIGNATURE: &str = "metric:wer|nrefs:1|case:lc|space:collapse|align:jiwer";

/// The speech recognition task.
pub struct SpeechRecognition;

impl Task for SpeechRecognition {
    fn name(&self) -> &'static str {
        "speech-recognition"
    }

    fn fits(&self, recipe: &Recipe) -> bool {
        let model = matches!(recipe.model.architecture(), Some(Architecture::Acoustic(_)));
        model && matches!(recipe.loss, LossSpec::Ctc { .. }) && !searches_with_attention(recipe)
    }

    fn size(&self, recipe: &Recipe) -> Option<ModelSize> {
        let rows = classes(&recipe.data.tokenizer)?;
        Some(ModelSize { rows, exact: true, cost: cost(recipe, rows) })
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        cost(recipe, classes(&recipe.data.tokenizer).unwrap_or(1))
    }

    fn width(&self, model: &ModelSpec) -> usize {
        let width = |layer: &AcousticLayerSpec| match layer {
            AcousticLayerSpec::Convolution2d(layer) => layer.channels,
            AcousticLayerSpec::Convolution(layer) => layer.channels,
            AcousticLayerSpec::Recurrent(layer) => layer.hidden,
            AcousticLayerSpec::Dense(layer) => layer.units,
            AcousticLayerSpec::RowConvolution(_) => 1,
        };
        match model.architecture() {
            Some(Architecture::Acoustic(spec)) => spec.layer.iter().map(width).max().unwrap_or(1) as usize,
            _ => 1,
        }
    }

    fn workload(&self, recipe: &Recipe) -> Workload {
        recordings::workload(recipe)
    }

    fn shape(&self, recipe: &Recipe) -> Shape {
        recordings::shape(recipe)
    }

    fn own_examples(&self, data: &DataSpec, base: &Path) -> Result<Option<usize>> {
        recordings::own_examples(data, base)
    }

    fn own_files(&self, data: &DataSpec, base: &Path) -> Result<Vec<(String, String)>> {
        recordings::own_files(data, base)
    }

    fn generated(&self, data: &DataSpec) -> Option<String> {
        recordings::generated(data)
    }

    fn signatures(&self, recipe: &Recipe, eval: &str, _: &str) -> Vec<String> {
        claimed_signatures(recipe, eval, || USUAL_SIGNATURE.to_owned())
    }

    fn training_unit(&self, recipe: &Recipe, of: OfTerm) -> Option<Unit> {
        let per_utterance = LossSpec::Ctc { denominator: CtcDenominator::Utterances };
        (of == OfTerm::Objective && recipe.loss == per_utterance).then_some(Unit::Sentence)
    }

    fn parity(&self, recipe: &Recipe) -> Found {
        parity::parity(layers(recipe))
    }

    fn align(&self, recipe: &Recipe, aligner: &mut Aligner) -> Found {
        parity::align(layers(recipe), aligner)
    }

    fn counted(&self, recipe: &Recipe) -> std::result::Result<(u64, String), String> {
        let frames = SpeechMaterial::of(recipe).map_err(|failure| failure.to_string())?;
        Ok((frames.cost(recipe).parameters, format!("{} classes", frames.classes())))
    }

    fn built(&self, recipe: &Recipe) -> std::result::Result<u64, String> {
        let frames = SpeechMaterial::of(recipe).map_err(|failure| failure.to_string())?;
        Ok(learned(&frames.model(recipe, 0, &Device::flex())))
    }

    fn prepare(&self, ctx: &Context, recipe: &Recipe, base: &Path, sets: Sets<'_>) -> Result<Box<dyn Ready>> {
        let recordings = RecordingData::prepare(ctx, recipe, base, sets)?;
        Ok(Box::new(RecognitionData { recordings }))
    }

    fn references(&self, ctx: &Context, resolved: &Resolved, eval: &str) -> Result<Vec<String>> {
        recordings::references(ctx, resolved, eval)
    }

    fn made_up(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        shape: Option<Shape>,
        making: Making<'_>,
    ) -> Result<Measurable> {
        let frames = SpeechMaterial::of(recipe)?;
        let updates = match shape {
            None => generated::updates(recipe, &frames),
            Some(Shape { sentences, tokens }) => {
                let least = FrameGrid::of(layers(recipe)).least();
                if (tokens as usize) < least {
                    let message = format!("the model reads {least} frames at least, and {tokens} are given");
                    return Err(Failure::usage(message).hint(format!("--shape {sentences}x{least}")));
                }
                Updates::full(generated::full_batches(recipe, &frames, sentences, tokens))
            }
        };
        of_updates(ctx, recipe, &frames, updates, making)
    }

    fn searching(&self, _: &Recipe, _: u64, _: &Device, _: Shape, _: &DecodeSpec) -> Result<Searching> {
        Err(Failure::usage("searches of a speech recognition recipe are not timed alone")
            .hint("`zoo infer RUN RECORDING --format json` prints the time per recording"))
    }

    fn infer(&self, inference: &Inference, args: &InferArgs) -> Result<()> {
        ask::transcribe(inference, args)
    }
}

/// Whether a search sums the attention of a recurrent decoder, which this task's models do not
/// have.
fn searches_with_attention(recipe: &Recipe) -> bool {
    recipe.decode.values().any(DecodeSpec::counts_attention)
}

/// Classes of a frame, including the blank; `None` for a tokenizer of text.
fn classes(tokenizer: &TokenizerSpec) -> Option<usize> {
    Classes::of(tokenizer).ok().map(|classes| classes.len())
}

fn cost(recipe: &Recipe, classes: usize) -> Cost {
    let features = recipe.data.features.as_ref().map_or(0, FeaturesSpec::features);
    acoustic::cost(layers(recipe), features.into(), classes as u64)
}
