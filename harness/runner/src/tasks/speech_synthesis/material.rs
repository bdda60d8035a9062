//! What a synthesizer is trained on: symbols of texts and frames of their recordings.

use std::sync::Arc;

use burn::tensor::Device;
use zoo_datasets::speech::{Classes, PreparedSpeech, SpeechBatches};
use zoo_models::Cost;
use zoo_models::tasks::speech_synthesis::{self, FrameWidth, SpectrogramLoss, SynthesisBatch, Synthesiser};
use zoo_recipes::FeaturesSpec;
use zoo_recipes::tasks::speech_synthesis::SpectrogramLossSpec;

use super::Recipe;
use super::batches::of_models;
use crate::error::Result;
use crate::run::data::{Aim, Material, Source};
use crate::tasks::recordings::Recordings;

/// Texts and how they sound, to train on.
pub struct SynthesisMaterial {
    /// Symbols that a text may have.
    pub symbols: usize,
    /// Numbers of a frame.
    pub width: FrameWidth,
    /// The recordings; none where a caller makes its own batches.
    pub prepared: Option<Arc<PreparedSpeech>>,
}

impl SynthesisMaterial {
    /// Of a recipe alone: a model without data.
    ///
    /// # Errors
    /// The tokenizer's values are not valid.
    pub fn of(recipe: &Recipe) -> Result<Self> {
        let symbols = Classes::of(&recipe.data.tokenizer)?.names().len();
        Ok(Self { symbols, width: frame_width(recipe), prepared: None })
    }
}

/// Numbers of a frame of the recipe's features.
pub fn frame_width(recipe: &Recipe) -> FrameWidth {
    match &recipe.data.features {
        FeaturesSpec::Tacotron { filters, magnitude, .. } => FrameWidth {
            mels: *filters as usize,
            bins: magnitude.as_ref().map_or(0, |magnitude| magnitude.bins as usize),
        },
        features => FrameWidth { mels: features.features() as usize, bins: 0 },
    }
}

impl Material for SynthesisMaterial {
    type Task = zoo_recipes::SpeechSynthesis;
    type Model = Synthesiser;
    type Batch = SynthesisBatch;

    const UNIT: &'static str = "frames";

    fn model(&self, recipe: &Recipe, seed: u64, device: &Device) -> Synthesiser {
        Synthesiser::new(&recipe.model, self.symbols, self.width, seed, device)
    }

    fn aim(&self, recipe: &Recipe) -> Aim<Synthesiser, SynthesisBatch> {
        let SpectrogramLossSpec::Spectrogram { padding, guide } = recipe.loss;
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
        speech_synthesis::cost(&recipe.model, self.symbols as u64, self.width)
    }

    fn classes(&self, _: &Recipe) -> usize {
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
