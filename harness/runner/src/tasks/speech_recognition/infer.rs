//! Recognition of recordings that are not part of a corpus.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use zoo_datasets::audio::FrontEnd;
use zoo_datasets::speech::Classes;
use zoo_models::precision::Compute;
use zoo_models::tasks::speech_recognition::{AcousticModel, FrameGrid, SpeechBatch};
use zoo_recipes::tasks::speech_recognition::CtcSearchSpec;
use zoo_results::exit::Exit;

use super::Recipe;
use super::material::SpeechMaterial;
use super::recogniser::Recogniser;
use super::search::Recognised;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::run::evaluate::{evaluated_weights, load_model};
use crate::run::folder::Run;
use crate::tasks::recordings::{decoded, front_end, hop_ms};

/// Recognition result of one recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transcription {
    /// Path of the recording.
    pub file: String,
    /// Best transcript.
    pub text: String,
    /// Words of the best transcript with their times.
    pub words: Vec<TimedWord>,
    /// The best transcripts in descending order of score, if several were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hypotheses: Vec<Hypothesis>,
    /// Length of the recording, in seconds.
    pub seconds: f64,
    /// Seconds from decoded samples to transcript.
    #[serde(rename = "latency_seconds")]
    pub latency: f64,
}

/// One candidate transcript of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hypothesis {
    pub text: String,
    /// Natural logarithm of the search's objective: `acoustic` + `language_model`.
    pub score: f64,
    /// Natural logarithm of the label probability under the acoustic model; absent if the search
    /// does not report it separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acoustic: Option<f64>,
    /// alpha times the language model's log10 probability of the words, plus beta times their
    /// number; absent if `acoustic` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language_model: Option<f64>,
    /// Words with their times.
    pub words: Vec<TimedWord>,
}

/// A word with its times, accurate to a few frames.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimedWord {
    /// Spelling of the word.
    pub word: String,
    /// Start, in seconds from the start of the recording.
    pub start: f64,
    /// End, in seconds from the start of the recording.
    pub end: f64,
}

/// Recogniser for single recordings with the model of a run.
pub struct Listener {
    model: AcousticModel,
    classes: Arc<Classes>,
    front_end: FrontEnd,
    search: CtcSearchSpec,
    hop: f64,
    grid: FrameGrid,
    compute: Compute,
    base: PathBuf,
}

impl Listener {
    /// Loads the model of `run` for one of its searches.
    ///
    /// # Errors
    /// The weights cannot be read.
    pub fn new(ctx: &Context, run: &Run, recipe: &Recipe, search: &CtcSearchSpec) -> Result<Self> {
        let weights = evaluated_weights(run, recipe)?.values;
        let material = SpeechMaterial::of(recipe)?;
        let model = load_model(recipe, &material, weights, &ctx.open_device()?)?;
        Ok(Self {
            model,
            classes: material.classes,
            front_end: front_end(recipe)?,
            search: search.clone(),
            hop: hop_ms(recipe) / 1000.0,
            grid: FrameGrid::of(recipe.model.layers()),
            compute: Compute::of(&recipe.precision),
            base: run.card.base.clone(),
        })
    }

    /// The model with its search.
    ///
    /// # Errors
    /// The language model or the word list cannot be read.
    pub fn recogniser(&self) -> Result<Recogniser<'_>> {
        Recogniser::new(&self.model, &self.classes, &self.search, &self.base, self.compute)
    }

    /// Recognises recordings one at a time and passes each result to `found` as soon as it is done.
    /// `read` returns the bytes of a recording. `nbest` is the number of requested transcripts per
    /// recording.
    ///
    /// # Errors
    /// A recording cannot be used.
    pub fn listen<'f>(
        &self,
        files: impl Iterator<Item = &'f Path>,
        nbest: Option<usize>,
        mut read: impl FnMut(&Path) -> Result<Vec<u8>>,
        mut found: impl FnMut(Transcription) -> Result<()>,
    ) -> Result<()> {
        let recogniser = self.recogniser()?;
        for file in files {
            let audio = decoded(read(file)?, file, self.front_end.rate())?;
            let start = Instant::now();
            let features = self.front_end.evaluation(&audio.samples, 0);
            let frames = features.frames();
            if frames < self.grid.least() {
                let (file, least) = (file.display(), self.grid.least());
                let message = format!("{file} has {frames} frames, and the model reads {least} at least");
                return Err(Failure::new(Exit::Data, message).hint("a longer recording"));
            }
            let batch =
                SpeechBatch { features: features.values, lengths: vec![frames], labels: vec![Vec::new()] };
            let all = recogniser.hypotheses(&batch, nbest.unwrap_or(1)).remove(0);
            let latency = start.elapsed().as_secs_f64();
            let start = self.front_end.kept(&audio.samples).start as f64 / f64::from(self.front_end.rate());
            let hypotheses: Vec<Hypothesis> = all.into_iter().map(|one| self.timed(one, start)).collect();
            let (text, words) =
                hypotheses.first().map(|best| (best.text.clone(), best.words.clone())).unwrap_or_default();
            found(Transcription {
                file: file.display().to_string(),
                text,
                words,
                hypotheses: if nbest.is_some() { hypotheses } else { Vec::new() },
                seconds: audio.seconds(),
                latency,
            })?;
        }
        Ok(())
    }

    /// Adds word times to a result. `start` is the time of the first frame, in seconds from the
    /// start of the recording.
    fn timed(&self, found: Recognised, start: f64) -> Hypothesis {
        let second = |frame: usize| start + self.hop * self.grid.position(frame);
        let words = found.words.into_iter().map(|word| TimedWord {
            word: word.text,
            start: second(word.frames.start),
            end: second(word.frames.end),
        });
        let Recognised { text, score, language_model, .. } = found;
        let acoustic = language_model.map(|of_model| score - of_model);
        Hypothesis { text, score, acoustic, language_model, words: words.collect() }
    }
}
