//! Synthesis of speech: the symbols of a text to the frames of a spectrogram, and from there to sound.

mod batches;
mod decode;
pub mod generated;
mod measures;
mod samples;
mod speak;

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::speech::{Classes, PreparedSpeech, SpeechBatches};
use zoo_models::models::Cost;
use zoo_models::models::synthesis::{self, FrameWidth, SpectrogramLoss, SynthesisBatch, Synthesiser};
use zoo_recipes::{Architecture, DecodeSpec, EvalSetSpec, FeaturesSpec, LossSpec, Recipe, SynthesisModel};
use zoo_results::metrics::{CepstralOptions, Convention, Signature};
use zoo_results::report::page::SplitCounts;

pub use decode::limits;
pub use samples::keep;
pub use speak::{Said, Speaker};

use self::batches::{evaluation, of_models};
use super::speech::{Recordings, Speech};
use super::task::{Aim, Decoded, EvaluationBatches, Material, Source, Task};
use crate::context::Context;
use crate::error::Result;

/// Texts and how they sound, to train on.
pub struct SynthesisMaterial {
    /// Symbols that a text may have.
    pub symbols: usize,
    /// Numbers of a frame.
    pub width: FrameWidth,
    /// The recordings; none where a caller makes its own batches.
    prepared: Option<Arc<PreparedSpeech>>,
}

impl SynthesisMaterial {
    /// Of a recipe alone: a model without data.
    ///
    /// # Errors
    /// The tokenizer has no symbols.
    pub fn of(recipe: &Recipe) -> Result<Self> {
        let symbols = Classes::of(&recipe.data.tokenizer)?.names().len();
        Ok(Self { symbols, width: frame_width(recipe), prepared: None })
    }
}

/// What an evaluation is scored by where nothing is claimed: the error of frames that were told the truth, the distortion of others.
pub fn usual_signature(recipe: &Recipe, decode: &str) -> String {
    let mels = frame_width(recipe).mels;
    let convention = match recipe.decode[decode] {
        DecodeSpec::TeacherForced {} => Convention::MelError { mels },
        _ => Convention::MelCepstral(CepstralOptions { mels, ..CepstralOptions::default() }),
    };
    Signature::own(convention, None).to_string()
}

/// The parts of a recipe of synthesis.
///
/// # Panics
/// If it is of another task; a recipe that was checked and writes frames has them.
pub fn parts(recipe: &Recipe) -> SynthesisModel<'_> {
    match recipe.model.architecture() {
        Some(Architecture::Synthesis(parts)) => parts,
        _ => panic!("a model that writes frames"),
    }
}

/// Numbers of a frame of the recipe's features.
pub fn frame_width(recipe: &Recipe) -> FrameWidth {
    match &recipe.data.features {
        Some(FeaturesSpec::Tacotron { filters, magnitude, .. }) => FrameWidth {
            mels: *filters as usize,
            bins: magnitude.as_ref().map_or(0, |magnitude| magnitude.bins as usize),
        },
        Some(features) => FrameWidth { mels: features.features() as usize, bins: 0 },
        None => FrameWidth { mels: 1, bins: 0 },
    }
}

impl Material for SynthesisMaterial {
    type Model = Synthesiser;
    type Batch = SynthesisBatch;

    const UNIT: &'static str = "frames";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> Synthesiser {
        Synthesiser::new(parts(recipe), self.symbols, self.width, seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<Synthesiser, SynthesisBatch> {
        let LossSpec::Spectrogram { padding, guide } = recipe.loss else { panic!("a loss of spectrograms") };
        let loss = SpectrogramLoss::new(padding, self.width.bins, guide);
        Aim { objective: Box::new(loss.clone()), running: Some(Box::new(loss)) }
    }

    fn source(&self, recipe: &Recipe, seed: u64) -> Result<Box<dyn Source<SynthesisBatch>>> {
        let prepared =
            self.prepared.as_ref().expect("recordings are there where their batches are asked for");
        let batches = SpeechBatches::training(prepared, &recipe.data, seed)?;
        Ok(Box::new(Recordings::new(batches, |batch| Ok(of_models(batch)), |batch| Self::amounts(batch).1)))
    }

    fn cost(&self, recipe: &Recipe) -> Cost {
        synthesis::cost(parts(recipe), self.symbols as u64, self.width)
    }

    fn classes(&self) -> usize {
        self.width.mels + self.width.bins
    }

    /// Frames are what is counted; symbols are the other side.
    fn amounts(batch: &SynthesisBatch) -> (u64, u64) {
        let symbols: usize = batch.symbols.iter().map(Vec::len).sum();
        (symbols as u64, batch.lengths.iter().sum::<usize>() as u64)
    }

    fn examples(batch: &SynthesisBatch) -> u64 {
        batch.lengths.len() as u64
    }
}

/// Prepared recordings, to be spoken.
pub struct Synthesis {
    /// Splits and symbols.
    pub speech: Speech,
}

impl Task for Synthesis {
    type Material = SynthesisMaterial;

    fn material(&self, recipe: &Recipe) -> Result<SynthesisMaterial> {
        let prepared = self.speech.prepared.clone();
        let symbols = prepared.classes.names().len();
        Ok(SynthesisMaterial { symbols, width: frame_width(recipe), prepared: Some(prepared) })
    }

    fn fingerprints(&self) -> BTreeMap<String, String> {
        self.speech.fingerprints()
    }

    fn counts(&self) -> BTreeMap<String, SplitCounts> {
        self.speech.counts()
    }

    fn training_splits(&self) -> Result<Vec<String>> {
        self.speech.training_splits()
    }

    fn evaluation_splits(&self, name: &str, set: &EvalSetSpec) -> Result<Vec<String>> {
        self.speech.evaluation_splits(name, set)
    }

    fn evaluation(&self, recipe: &Recipe, name: &str) -> Result<EvaluationBatches<'_, SynthesisBatch>> {
        let split = self.speech.prepared.eval_set(name, &recipe.data.eval[name])?;
        let batches = evaluation(&self.speech.prepared, split);
        Ok(Box::new(batches.map(|batch| Ok(of_models(batch?)))))
    }

    fn decode(
        &self,
        ctx: &Context,
        recipe: &Recipe,
        wanted: (&str, &str),
        model: &Synthesiser,
    ) -> Result<Decoded> {
        decode::decode(ctx, recipe, self, wanted, model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_of_synthesis_is_counted_in_frames_without_padding() {
        let batch = SynthesisBatch {
            symbols: vec![vec![1; 4], vec![1; 2]],
            frames: vec![0.0; 2 * 7],
            width: 1,
            lengths: vec![7, 3],
            stops: vec![6, 2],
        };
        assert_eq!(SynthesisMaterial::amounts(&batch), (6, 10));
    }
}
