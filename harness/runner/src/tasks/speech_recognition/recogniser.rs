//! Recognition of features to words, with a model and a search.

use std::path::Path;

use zoo_datasets::speech::Classes;
use zoo_models::Pass;
use zoo_models::parameters::host_values;
use zoo_models::precision::Compute;
use zoo_models::search::Logits;
use zoo_models::search::ctc::Frames;
use zoo_models::tasks::speech_recognition::{AcousticModel, SpeechBatch};
use zoo_recipes::tasks::speech_recognition::CtcSearchSpec;

use super::search::{Recognised, Searcher};
use crate::error::Result;

/// A model with a search.
pub struct Recogniser<'a> {
    model: &'a AcousticModel,
    compute: Compute,
    blank: u32,
    search: Searcher<'a>,
}

/// Log-probabilities of a batch's frames, on the host.
pub struct LogProbs {
    /// First frame and number of frames of each utterance.
    places: Vec<(usize, usize)>,
    /// Shape [frames, classes].
    values: Vec<f32>,
    classes: usize,
    blank: u32,
}

impl LogProbs {
    /// Computes the log-probabilities of a batch. The result for an utterance does not depend on
    /// the other utterances.
    pub fn of(model: &AcousticModel, batch: &SpeechBatch, compute: Compute, blank: u32) -> Self {
        let frames = batch.frames(&model.device());
        let (logits, _) = model.forward(frames, &mut Pass::evaluation(compute));
        let (places, rows) = (logits.places(), logits.rows());
        let [_, classes] = rows.dims();
        let mut log_probs = Logits { vocabulary: classes, values: host_values(rows) };
        log_probs.log_softmax();
        Self { places, values: log_probs.values, classes, blank }
    }

    /// Log-probabilities of each utterance.
    pub fn utterances(&self) -> Vec<Frames<'_>> {
        let (classes, blank) = (self.classes, self.blank);
        let of = |&(first, frames): &(usize, usize)| Frames {
            log_probs: &self.values[first * classes..][..frames * classes],
            classes,
            blank,
        };
        self.places.iter().map(of).collect()
    }
}

impl<'a> Recogniser<'a> {
    /// A recogniser with a search of a recipe. Paths are relative to `base`.
    ///
    /// # Errors
    /// The language model cannot be read.
    pub fn new(
        model: &'a AcousticModel,
        classes: &'a Classes,
        spec: &CtcSearchSpec,
        base: &Path,
        compute: Compute,
    ) -> Result<Self> {
        Ok(Self { model, compute, blank: classes.blank(), search: Searcher::new(classes, spec, base)? })
    }

    /// The best transcript of each utterance of a batch.
    pub fn recognise(&self, batch: &SpeechBatch) -> Vec<Recognised> {
        use rayon::prelude::*;
        let log_probs = LogProbs::of(self.model, batch, self.compute, self.blank);
        log_probs.utterances().into_par_iter().map(|frames| self.search.best(frames)).collect()
    }

    /// Up to `count` transcripts of each utterance of a batch, in descending order of score.
    pub fn hypotheses(&self, batch: &SpeechBatch, count: usize) -> Vec<Vec<Recognised>> {
        use rayon::prelude::*;
        let log_probs = LogProbs::of(self.model, batch, self.compute, self.blank);
        log_probs.utterances().into_par_iter().map(|frames| self.search.hypotheses(frames, count)).collect()
    }
}
