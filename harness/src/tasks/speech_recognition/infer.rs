//! What is said in recordings that are no part of a corpus.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use zoo_datasets::audio::FrontEnd;
use zoo_datasets::speech::Classes;
use zoo_models::models::SpeechBatch;
use zoo_models::models::acoustic::{AcousticModel, FrameGrid};
use zoo_models::precision::Compute;
use zoo_recipes::{DecodeSpec, Recipe};
use zoo_results::exit::Exit;

use super::material::{SpeechMaterial, layers};
use super::recogniser::Recogniser;
use super::search::Recognised;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::stages::evaluate::{evaluated_weights, load_model};
use crate::stages::run::Run;
use crate::tasks::recordings::{decoded, front_end, hop_ms};

/// What was recognised in a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transcription {
    /// The recording.
    pub file: String,
    /// What is said.
    pub text: String,
    /// Words and when they are said.
    pub words: Vec<TimedWord>,
    /// The best texts, the best first, where several were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hypotheses: Vec<Hypothesis>,
    /// Length of the recording, seconds.
    pub seconds: f64,
    /// Seconds from its samples to its text.
    pub latency: f64,
}

/// One of the texts that a recording may say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hypothesis {
    /// The text.
    pub text: String,
    /// Natural logarithm of what the search maximises: `acoustic` + `language_model`.
    pub score: f64,
    /// Natural logarithm of the probability that the model gives the labels; absent where the search does not keep it apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acoustic: Option<f64>,
    /// alpha times the language model's log10 of the words, and beta times their number; absent as `acoustic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language_model: Option<f64>,
    /// Words and when they are said.
    pub words: Vec<TimedWord>,
}

/// A word and when it is said, to within a few frames.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimedWord {
    /// As it is written.
    pub word: String,
    /// Seconds from the start of the recording.
    pub start: f64,
    /// The same.
    pub end: f64,
}

/// A run's model, ready to listen.
pub struct Listener {
    model: AcousticModel,
    classes: Arc<Classes>,
    front_end: FrontEnd,
    search: DecodeSpec,
    hop: f64,
    grid: FrameGrid,
    compute: Compute,
    base: PathBuf,
}

impl Listener {
    /// Of a run and one of its searches.
    ///
    /// # Errors
    /// The weights cannot be read.
    pub fn new(ctx: &Context, run: &Run, recipe: &Recipe, search: &DecodeSpec) -> Result<Self> {
        let weights = evaluated_weights(run, recipe)?.values;
        let material = SpeechMaterial::of(recipe)?;
        let model = load_model(recipe, &material, weights, &ctx.open_device()?)?;
        Ok(Self {
            model,
            classes: material.classes,
            front_end: front_end(recipe)?,
            search: search.clone(),
            hop: hop_ms(recipe) / 1000.0,
            grid: FrameGrid::of(layers(recipe)),
            compute: Compute::of(&recipe.precision),
            base: run.card.base.clone(),
        })
    }

    /// Recognises recordings one by one, each alone, and gives each to `found` as soon as it is there. `read` gives their bytes; `nbest`
    /// is how many texts are wanted of each.
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
        let recogniser = Recogniser::new(&self.model, &self.classes, &self.search, &self.base, self.compute)?;
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

    /// With the times of its words; the first frame begins `start` seconds behind the recording's beginning.
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
