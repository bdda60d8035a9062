//! Conversion of frames to audio, and of any text to both.

use zoo_datasets::audio::mel::MelFilters;
use zoo_datasets::audio::synthesis::{GriffinLimSpec, MelInverse, MelMethod, Vocoder, VocoderSpec};
use zoo_datasets::speech::Classes;
use zoo_models::Pass;
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_synthesis::{Limits, Spoken, Synthesiser};
use zoo_recipes::tasks::speech_synthesis::{FreeRunningSpec, SynthesisSearchSpec};
use zoo_recipes::{FeaturesSpec, MaxLength, Padding, WindowFunction};
use zoo_results::exit::Exit;

use super::Recipe;
use super::material::{SynthesisMaterial, frame_width};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::stages::evaluate::{evaluated_weights, load_model};
use crate::stages::run::Run;

/// Seed of the vocoder's initial phases.
const SEED: u64 = 1;
/// Texts per batch.
const TOGETHER: usize = 16;

/// Converts frames of a recipe to audio.
pub struct Voice {
    vocoder: Vocoder,
    /// Estimates magnitudes from mel frames if the model has no magnitudes.
    inverse: MelInverse,
    mels: usize,
    bins: usize,
    logarithms: bool,
    rate: u32,
    hop: u32,
}

impl Voice {
    /// Converter with the vocoder settings of a search. A search without settings uses
    /// OpenSeq2Seq's 50 iterations.
    ///
    /// # Errors
    /// The recipe has no frames that can be converted to audio.
    pub fn new(recipe: &Recipe, search: &SynthesisSearchSpec) -> Result<Self> {
        let unfit = |what: &str| Failure::new(Exit::Recipe, what.to_owned());
        let rate = recipe.data.reader.sample_rate_hz();
        let FeaturesSpec::Tacotron { mel, floor, magnitude, fft, window_samples, hop_samples, .. } =
            &recipe.data.features
        else {
            return Err(unfit("the features are no frames that can be heard")
                .hint("[data.features] kind = \"tacotron\""));
        };
        let (iterations, power, momentum) = match search {
            SynthesisSearchSpec::FreeRunning(FreeRunningSpec { vocoder, .. }) => {
                (vocoder.iterations, vocoder.power, vocoder.momentum)
            }
            SynthesisSearchSpec::TeacherForced {} => (50, 1.5, 0.0),
        };
        let width = frame_width(recipe);
        let griffin_lim = GriffinLimSpec {
            n_fft: *fft as usize,
            hop: *hop_samples as usize,
            window: WindowFunction::HannPeriodic,
            window_length: *window_samples as usize,
            padding: Padding::Reflect,
            iterations,
            momentum,
        };
        let floor = magnitude.as_ref().map_or(*floor, |magnitude| magnitude.floor);
        let spec =
            VocoderSpec { griffin_lim, seed: SEED, floor, features_power: 1.0, ceiling: Some(255.0), power };
        let failed = |error: zoo_datasets::audio::synthesis::SynthesisError| unfit(&error.to_string());
        let filters = MelFilters::triangular(rate, *fft as usize, width.mels, mel);
        Ok(Self {
            vocoder: Vocoder::new(&spec).map_err(failed)?,
            inverse: MelInverse::new(filters, MelMethod::LeastSquares, 1.0).map_err(failed)?,
            mels: width.mels,
            bins: width.bins,
            logarithms: magnitude.as_ref().is_some_and(|magnitude| magnitude.log),
            rate,
            hop: *hop_samples,
        })
    }

    /// Mel bands of a frame.
    pub fn mels(&self) -> usize {
        self.mels
    }

    /// Sample rate, in Hz.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Hop between frames, in seconds.
    pub fn seconds_a_frame(&self) -> f64 {
        f64::from(self.hop) / f64::from(self.rate)
    }

    /// Audio samples of an output: from its magnitudes if it has them, else from its mel frames.
    ///
    /// # Errors
    /// The frames are not finite.
    pub fn sound(&self, spoken: &Spoken, number: u64) -> Result<Vec<f32>> {
        let made = if spoken.magnitudes.is_empty() {
            self.vocoder.log_mels(&spoken.mels, &self.inverse, number)
        } else {
            let logarithm = |x: &f32| if self.logarithms { *x } else { x.max(1e-12).ln() };
            let logarithms: Vec<f32> = spoken.magnitudes.iter().map(logarithm).collect();
            self.vocoder.log_magnitudes(&logarithms, self.bins, number)
        };
        made.map(|speech| speech.samples).map_err(|error| Failure::new(Exit::Data, error.to_string()))
    }
}

/// A trained model that synthesizes any text.
pub struct Speaker {
    model: Synthesiser,
    classes: Classes,
    voice: Voice,
    search: FreeRunningSpec,
    compute: Compute,
}

/// Synthesis result of one text.
pub struct Said {
    /// Frames with their alignment to the text.
    pub spoken: Spoken,
    /// Names of the text's symbols.
    pub symbols: Vec<String>,
    /// Audio samples; 1 is full scale.
    pub samples: Vec<f32>,
}

impl Speaker {
    /// Loads the model of `run`.
    ///
    /// # Errors
    /// The weights cannot be read.
    pub fn new(ctx: &Context, run: &Run, recipe: &Recipe, search: &FreeRunningSpec) -> Result<Self> {
        let material = SynthesisMaterial::of(recipe)?;
        let weights = evaluated_weights(run, recipe)?.values;
        let model = load_model(recipe, &material, weights, &ctx.open_device()?)?;
        Ok(Self {
            model,
            classes: Classes::of(&recipe.data.tokenizer)?,
            voice: Voice::new(recipe, &SynthesisSearchSpec::FreeRunning(search.clone()))?,
            search: search.clone(),
            compute: Compute::of(&recipe.precision),
        })
    }

    /// Converter of frames to audio.
    pub fn voice(&self) -> &Voice {
        &self.voice
    }

    /// Sets the maximum number of frames.
    pub fn at_most(mut self, frames: u32) -> Self {
        self.search.max_frames = MaxLength::fixed(frames);
        self
    }

    /// Symbols of a text.
    ///
    /// # Errors
    /// The text is empty, or it has a character without a symbol.
    pub fn read(&self, text: &str) -> Result<Vec<u32>> {
        let labels =
            self.classes.labels(text).map_err(|unknown| Failure::new(Exit::Data, unknown.to_string()))?;
        match labels.is_empty() {
            true => Err(Failure::new(Exit::Data, "the text is empty").hint("give some words to speak")),
            false => Ok(labels),
        }
    }

    /// Synthesizes texts in batches and passes each result with its index to `heard`. The result
    /// for a text does not depend on the other texts.
    ///
    /// # Errors
    /// The model has diverged (its frames are not finite), or the user interrupted the call.
    pub fn say(
        &self,
        ctx: &Context,
        texts: &[Vec<u32>],
        mut heard: impl FnMut(usize, Said) -> Result<()>,
    ) -> Result<()> {
        for (first, group) in texts.chunks(TOGETHER).enumerate() {
            ctx.check_stop()?;
            let mut pass = Pass::evaluation(self.compute);
            let said = self.model.speak(group, limits(&self.search), &mut pass);
            for (i, (text, spoken)) in group.iter().zip(said).enumerate() {
                let number = first * TOGETHER + i;
                let samples = self.voice.sound(&spoken, number as u64)?;
                let name = |&symbol: &u32| self.classes.names()[symbol as usize].clone();
                heard(number, Said { symbols: text.iter().map(name).collect(), spoken, samples })?;
            }
        }
        Ok(())
    }
}

/// How far a search goes.
pub fn limits(spec: &FreeRunningSpec) -> Limits {
    Limits { threshold: spec.threshold, factor: spec.max_frames.factor, extra: spec.max_frames.extra }
}
