//! Speech synthesis: symbols of a text to spectrogram frames, and from there to audio.

mod ask;
mod batches;
mod data;
mod decode;
mod generated;
mod kinds;
mod material;
mod measures;
mod parity;
mod sample;
mod search;
mod speak;

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use zoo_datasets::audio::Features;
use zoo_models::Cost;
use zoo_models::tasks::speech_synthesis;
use zoo_recipes::tasks::speech_synthesis::SynthesisSearchSpec;
use zoo_recipes::{ClaimSpec, RecipeOf};
use zoo_results::metrics::{CepstralOptions, Convention, MelErrorOptions, Signature};
use zoo_results::verdict::trained_term;

use self::data::SynthesisData;
use self::material::{SynthesisMaterial, frame_width};
use super::recordings::{self, RecordingData};
use crate::cli::{InferArgs, SynthesizeArgs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::data::{Material, Sets};
use crate::run::ready::Ready;
use crate::run::timed_arm::{Making, Measurable, Updates, of_updates};
use crate::task::Task;
use crate::task::aligner::{Aligner, Found, learned};
use crate::task::inference::Inference;
use crate::task::searching::Searching;
use crate::task::shape::Shape;
use crate::task::size::{ModelSize, Workload};

/// A recipe of this task.
pub type Recipe = RecipeOf<zoo_recipes::SpeechSynthesis>;

/// The task of a recipe.
pub struct SpeechSynthesis<'r> {
    /// The recipe.
    pub recipe: &'r Recipe,
}

impl Task for SpeechSynthesis<'_> {
    fn name(&self) -> &'static str {
        "speech-synthesis"
    }

    fn size(&self) -> Option<ModelSize> {
        let rows = symbols(self.recipe);
        Some(ModelSize { rows, exact: true, cost: cost(self.recipe, rows) })
    }

    fn cost(&self) -> Cost {
        cost(self.recipe, symbols(self.recipe))
    }

    fn width(&self) -> usize {
        self.recipe.model.parts().1.units as usize
    }

    fn workload(&self) -> Workload {
        recordings::workload(self.recipe)
    }

    fn unit(&self) -> &'static str {
        SynthesisMaterial::UNIT
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

    /// Conventions depend on the search: with teacher forcing, frames are compared position by
    /// position.
    fn signatures(&self, _: &str, decode: &str) -> Vec<String> {
        let here =
            |claim: &&ClaimSpec| claim.decode.as_deref() == Some(decode) && trained_term(claim).is_none();
        let mut found: Vec<String> =
            self.recipe.claim.iter().filter(here).filter_map(|claim| claim.signature.clone()).collect();
        found.dedup();
        if found.is_empty() {
            found.push(usual_signature(self.recipe, decode));
        }
        found
    }

    fn writes_spectrograms(&self) -> bool {
        true
    }

    fn features(&self, file: &Path, training: bool) -> Result<Features> {
        recordings::features(self.recipe, file, training)
    }

    fn parity(&self) -> Found {
        parity::parity(self.recipe)
    }

    fn align(&self, aligner: &mut Aligner) -> Found {
        parity::align(self.recipe, aligner)
    }

    fn counted(&self) -> std::result::Result<(u64, String), String> {
        let material = SynthesisMaterial::of(self.recipe).map_err(|failure| failure.to_string())?;
        Ok((material.cost(self.recipe).parameters, format!("{} symbols", material.symbols)))
    }

    fn built(&self) -> std::result::Result<u64, String> {
        let material = SynthesisMaterial::of(self.recipe).map_err(|failure| failure.to_string())?;
        Ok(learned(&material.model(self.recipe, 0, &Device::flex())))
    }

    fn prepare(&self, ctx: &Context, base: &Path, sets: Sets<'_>) -> Result<Box<dyn Ready>> {
        let recordings = RecordingData::prepare(ctx, self.recipe, base, sets)?;
        Ok(Box::new(SynthesisData { recordings }))
    }

    fn references(&self, ctx: &Context, base: &Path, eval: &str) -> Result<Vec<String>> {
        recordings::references(ctx, self.recipe, base, eval)
    }

    fn made_up(&self, ctx: &Context, shape: Option<Shape>, making: Making<'_>) -> Result<Measurable> {
        let material = SynthesisMaterial::of(self.recipe)?;
        let updates = match shape {
            None => generated::updates(self.recipe, &material),
            Some(Shape { sentences, tokens }) => {
                Updates::full(generated::full_batches(self.recipe, &material, sentences, tokens))
            }
        };
        of_updates(ctx, self.recipe, &material, updates, making)
    }

    fn searching(&self, seed: u64, device: &Device, shape: Shape, search: &str) -> Result<Searching> {
        search::searching(self.recipe, seed, device, shape, search)
    }

    /// A free-running search, because a new text has no true frames.
    fn own_search(&self) -> Option<&str> {
        let mut all = self.recipe.decode.iter();
        all.find(|(_, search)| matches!(search, SynthesisSearchSpec::FreeRunning(_)))
            .map(|(name, _)| name.as_str())
    }

    fn hub_name(&self) -> &'static str {
        "text-to-speech"
    }

    fn example_use(&self) -> &'static str {
        "synthesize MODEL \"some words\" -o out.wav"
    }

    fn keeps_vocabulary(&self) -> bool {
        false
    }

    fn open(&self, inference: &Inference) -> Result<()> {
        ask::speaker(inference, self.recipe).map(drop)
    }

    fn infer(&self, _: &Inference, args: &InferArgs) -> Result<()> {
        let hint = format!("zoo synthesize {} \"some words\" -o out.wav", args.run.display());
        Err(Failure::usage("the run is a speech synthesis run: its output is audio").hint(hint))
    }

    fn synthesize(&self, inference: &Inference, args: &SynthesizeArgs) -> Result<()> {
        ask::synthesize(inference, self.recipe, args)
    }
}

/// Number of symbols that a text may contain.
fn symbols(recipe: &Recipe) -> usize {
    recipe.data.tokenizer.names().len()
}

fn cost(recipe: &Recipe, symbols: usize) -> Cost {
    speech_synthesis::cost(&recipe.model, symbols as u64, frame_width(recipe))
}

/// The convention of a search on which nothing is claimed: the error of frames with teacher
/// forcing, the distortion of others.
fn usual_signature(recipe: &Recipe, decode: &str) -> String {
    let mels = frame_width(recipe).mels;
    let convention = match recipe.decode[decode] {
        SynthesisSearchSpec::TeacherForced {} => MelErrorOptions { mels }.into(),
        SynthesisSearchSpec::FreeRunning(_) => {
            Convention::MelCepstral(CepstralOptions { mels, ..CepstralOptions::default() })
        }
    };
    Signature::own(convention, None).to_string()
}
